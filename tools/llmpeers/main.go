// Llmpeers asks models by the official Go client libraries of Anthropic and OpenAI,
// as they are, and prints what these make of the answers, one line each. Their own
// environment says where and with which key: ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY
// or ANTHROPIC_AUTH_TOKEN, OPENAI_BASE_URL, OPENAI_API_KEY. Its tests hold what is
// printed of a provider against what is printed of the same one behind the gateway.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	askAnthropic(ctx)
	askOpenAI(ctx)
}

// say prints a line: what was asked, what came, and which error there was.
func say(name string, got any, err error) {
	line := map[string]any{"asked": name, "got": got}
	if err != nil {
		line["got"], line["error"] = nil, fault(err)
	}
	b, err := json.Marshal(line)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(b))
}

// fault is what a program can tell of a library's error.
func fault(err error) map[string]any {
	var a *anthropic.Error
	var o *openai.Error
	switch {
	case errors.As(err, &a):
		return map[string]any{"status": a.StatusCode, "type": string(a.Type()), "body": json.RawMessage(a.RawJSON())}
	case errors.As(err, &o):
		return map[string]any{"status": o.StatusCode, "type": o.Type, "code": o.Code, "message": o.Message}
	}
	return map[string]any{"text": err.Error()}
}

func askAnthropic(ctx context.Context) {
	c := anthropic.NewClient()
	ask := func(model string) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{Model: anthropic.Model(model), MaxTokens: 64,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Why is the sky blue?"))},
			Tools:    []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: anthropic.ToolInputSchemaParam{}}}}}
	}
	for _, model := range []string{"messages_text", "messages_tool", "messages_invalid", "messages_overloaded"} {
		m, err := c.Messages.New(ctx, ask(model))
		say(model, m, err)
	}
	for _, model := range []string{"messages_text_stream", "messages_tool_stream", "messages_broken_stream"} {
		s := c.Messages.NewStreaming(ctx, ask(model))
		var m anthropic.Message
		n := 0
		for s.Next() {
			n++
			if err := m.Accumulate(s.Current()); err != nil {
				say(model, nil, err)
			}
		}
		say(model, map[string]any{"events": n, "content": m.Content, "stop": m.StopReason, "usage": m.Usage}, s.Err())
	}
	n, err := c.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: "count_tokens",
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("x"))}})
	say("count_tokens", n, err)
	list, err := c.Models.List(ctx, anthropic.ModelListParams{})
	say("models", list, err)
}

func askOpenAI(ctx context.Context) {
	c := openai.NewClient()
	chat := func(model string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Why is the sky blue?")}}
	}
	for _, model := range []string{"chat_text", "chat_tool", "openai_key", "openai_quota", "openai_overloaded"} {
		m, err := c.Chat.Completions.New(ctx, chat(model))
		say(model, m, err)
	}
	for _, model := range []string{"chat_text_stream", "chat_tool_stream", "chat_broken_stream"} {
		for _, usage := range []bool{false, true} {
			p := chat(model)
			if usage {
				p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
			}
			s := c.Chat.Completions.NewStreaming(ctx, p)
			acc, n := openai.ChatCompletionAccumulator{}, 0
			for s.Next() {
				n++
				acc.AddChunk(s.Current())
			}
			say(fmt.Sprint(model, " ", usage), map[string]any{"events": n, "choices": acc.Choices, "usage": acc.Usage}, s.Err())
		}
	}
	ask := func(model string) responses.ResponseNewParams {
		return responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Why is the sky blue?")}}
	}
	for _, model := range []string{"responses_text", "responses_tool"} {
		r, err := c.Responses.New(ctx, ask(model))
		say(model, r, err)
	}
	for _, model := range []string{"responses_text_stream", "responses_tool_stream", "responses_failed_stream", "responses_error_stream"} {
		s := c.Responses.NewStreaming(ctx, ask(model))
		var kinds []string
		var last any
		for s.Next() {
			e := s.Current()
			kinds, last = append(kinds, e.Type), json.RawMessage(e.RawJSON())
		}
		say(model, map[string]any{"events": kinds, "last": last}, s.Err())
	}
	e, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "embeddings", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("x")}})
	say("embeddings", e, err)
	list, err := c.Models.List(ctx)
	say("models", list, err)
}

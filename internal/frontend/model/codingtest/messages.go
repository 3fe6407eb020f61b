package codingtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// messagesRequest is what the model reads of a request of Anthropic Messages.
type messagesRequest struct {
	Model    string
	Tools    []struct{ Name string }
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
}

// block is a part of a message.
type block struct {
	Type, Text string
	Content    json.RawMessage
}

// listBlocks returns the parts of a message, whose content may be one text.
func listBlocks(content json.RawMessage) (blocks []block) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(content, &blocks)
	return blocks
}

// joinBlocks returns the texts of a message's parts.
func joinBlocks(content json.RawMessage) string {
	var texts []string
	for _, b := range listBlocks(content) {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n")
}

// answerMessages returns the events that answer a request of Anthropic Messages.
func answerMessages(body []byte, random *rand.Rand) string {
	var q messagesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		panic(err) // the caller has sent JSON
	}
	var told conversation
	for _, m := range q.Messages {
		if m.Role != "user" {
			continue
		}
		for _, b := range listBlocks(m.Content) {
			switch b.Type {
			case "text":
				told.prompt += b.Text + "\n"
			case "tool_result":
				told.results = append(told.results, joinBlocks(b.Content))
			}
		}
	}
	next := turn{say: "ok"}
	if slices.ContainsFunc(q.Tools, func(t struct{ Name string }) bool { return t.Name == "Bash" }) {
		next = told.chooseForClaude()
	}
	return writeMessages(q.Model, len(told.results), next, random)
}

// writeMessages returns a turn as events of Anthropic Messages: a signed thought, a text and a call.
func writeMessages(model string, step int, next turn, random *rand.Rand) string {
	var b strings.Builder
	writeEvent(&b, "message_start", document{"message": document{"id": fmt.Sprintf("msg_%02d", step),
		"type": "message", "role": "assistant", "model": model, "content": []any{}, "stop_reason": nil,
		"stop_sequence": nil, "usage": document{"input_tokens": 5, "output_tokens": 1}}})
	index := 0
	writeBlock := func(head document, kind, member, text string, last ...document) {
		writeEvent(&b, "content_block_start", document{"index": index, "content_block": head})
		for _, piece := range cutText(text, 12, random) {
			writeEvent(&b, "content_block_delta", document{"index": index, "delta": document{"type": kind,
				member: piece}})
		}
		for _, delta := range last {
			writeEvent(&b, "content_block_delta", document{"index": index, "delta": delta})
		}
		writeEvent(&b, "content_block_stop", document{"index": index})
		index++
	}
	if next.think != "" {
		writeBlock(document{"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking",
			next.think, document{"type": "signature_delta", "signature": signature})
	}
	if next.say != "" {
		writeBlock(document{"type": "text", "text": ""}, "text_delta", "text", next.say)
	}
	stop := "end_turn"
	if next.tool != "" {
		stop = "tool_use"
		writeBlock(document{"type": "tool_use", "id": fmt.Sprintf("toolu_%02d", step), "name": next.tool,
			"input": document{}}, "input_json_delta", "partial_json", encodeArguments(next.arguments))
	}
	writeEvent(&b, "message_delta", document{"delta": document{"stop_reason": stop, "stop_sequence": nil},
		"usage": document{"output_tokens": 5}})
	writeEvent(&b, "message_stop", document{})
	return b.String()
}

package codingtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// responsesRequest is what the model reads of a request of OpenAI Responses.
type responsesRequest struct {
	Model string
	Input []struct {
		Type, Role string
		Content    json.RawMessage
		Output     json.RawMessage
	}
}

// answerResponses returns the events that answer a request of OpenAI Responses.
func answerResponses(body []byte, random *rand.Rand) string {
	var q responsesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		panic(err) // the caller has sent JSON
	}
	var told conversation
	for _, item := range q.Input {
		switch {
		case item.Type == "message" && item.Role == "user":
			told.prompt += joinBlocks(item.Content) + "\n"
		case item.Type == "function_call_output":
			told.results = append(told.results, joinBlocks(item.Output))
		}
	}
	return writeResponses(q.Model, len(told.results), told.chooseForCodex(), random)
}

// writeResponses returns a turn as events of OpenAI Responses: a sealed thought, a text and a call.
func writeResponses(model string, step int, next turn, random *rand.Rand) string {
	var b strings.Builder
	var output []any
	id := func(kind string) string { return fmt.Sprintf("%s_%02d", kind, step) }
	response := func(status string) document {
		return document{"id": id("resp"), "object": "response", "model": model, "status": status, "output": output,
			"usage": document{"input_tokens": 5, "input_tokens_details": nil, "output_tokens": 5,
				"output_tokens_details": nil, "total_tokens": 10}}
	}
	writeItem := func(item document, kind, member, text string) {
		index := len(output)
		empty := document{}
		for name, value := range item {
			empty[name] = value
		}
		if member == "arguments" {
			empty[member] = ""
		} else if member != "" {
			empty["content"] = []any{}
		}
		writeEvent(&b, "response.output_item.added", document{"output_index": index, "item": empty})
		for _, piece := range cutText(text, 12, random) {
			writeEvent(&b, kind+".delta", document{"item_id": item["id"], "output_index": index, "content_index": 0,
				"delta": piece})
		}
		if member != "" {
			writeEvent(&b, kind+".done", document{"item_id": item["id"], "output_index": index, "content_index": 0,
				member: text})
		}
		writeEvent(&b, "response.output_item.done", document{"output_index": index, "item": item})
		output = append(output, item)
	}
	writeEvent(&b, "response.created", document{"response": response("in_progress")})
	if next.think != "" {
		writeItem(document{"type": "reasoning", "id": id("rs"), "summary": []any{document{"type": "summary_text",
			"text": next.think}}, "encrypted_content": signature}, "", "", "")
	}
	if next.say != "" {
		writeItem(document{"type": "message", "id": id("msg"), "role": "assistant", "status": "completed",
			"content": []any{document{"type": "output_text", "text": next.say, "annotations": []any{}}}},
			"response.output_text", "text", next.say)
	}
	if next.tool != "" {
		arguments := encodeArguments(next.arguments)
		writeItem(document{"type": "function_call", "id": id("fc"), "call_id": id("call"), "name": next.tool,
			"status": "completed", "arguments": arguments}, "response.function_call_arguments", "arguments", arguments)
	}
	writeEvent(&b, "response.completed", document{"response": response("completed")})
	return b.String()
}

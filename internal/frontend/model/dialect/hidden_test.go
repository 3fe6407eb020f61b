package dialect_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// TestNoCallHides: a call that some client would read from an answer is listed with
// the name and the arguments that it would read, or the answer says that there may
// be more than is listed.
func TestNoCallHides(t *testing.T) {
	sse := func(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }
	const (
		start  = `{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":100,"output_tokens":1}}}`
		block  = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"ls","input":{}}}`
		stop   = `{"type":"content_block_stop","index":0}`
		bash   = `{"type":"tool_use","id":"t","name":"bash","input":{"cmd":"rm"}}`
		rm     = `"delta":{"type":"input_json_delta","partial_json":"{\"cmd\":\"rm\"}"}`
		called = `"id":"c","type":"function","function":{"name":"bash","arguments":"{\"cmd\":\"rm\"}"}`
		ls     = `"type":"function_call","call_id":"c","name":"ls","arguments":"{}"`
		item   = `"type":"function_call","call_id":"c","name":"bash","arguments":"{\"cmd\":\"rm\"}"`
	)
	chunk := func(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }
	added := func(item string) string {
		return `{"type":"response.output_item.added","output_index":0,"item":{` + item + `}}`
	}
	done := func(item string) string {
		return `{"type":"response.output_item.done","output_index":0,"item":{` + item + `}}`
	}
	for _, c := range []struct{ name, shape, body string }{
		{"messages: in the beginning", "messages_x", sse(strings.Replace(start, `"content":[]`, `"content":[`+bash+`]`, 1))},
		{"messages: in an event of another name", "messages_x", sse(start, `{"type":"content_block","index":0,"content_block":`+bash+`}`)},
		{"messages: in an event without a name", "messages_x", sse(start, `{"index":0,"content_block":`+bash+`}`)},
		{"messages: in capitals", "messages_x", sse(start, `{"Type":"content_block_start","Index":0,"Content_Block":`+bash+`}`)},
		{"messages: in a block that is said to be two", "messages_x", sse(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","Type":"tool_use","name":"bash","input":{"cmd":"rm"}}}`)},
		{"messages: in a block of a kind to come", "messages_x", sse(start, `{"type":"content_block_start","index":0,"content_block":{"type":"action","id":"t","name":"bash","input":{"cmd":"rm"}}}`)},
		{"messages: arguments after the end", "messages_x", sse(start, strings.Replace(block, "ls", "bash", 1), stop, `{"type":"content_block_delta","index":0,`+rm+`}`)},
		{"messages: arguments by another name", "messages_x", sse(start, strings.Replace(block, "ls", "bash", 1), `{"type":"content_block_delta","index":0,`+strings.Replace(rm, "input_json_delta", "json_delta", 1)+`}`, stop)},
		{"messages: two in one block", "messages_x", sse(start, block, stop, `{"type":"content_block_start","index":0,"content_block":`+bash+`}`)},
		{"messages: a document where events were said", "messages_x", `{"model":"m","content":[` + bash + `],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`},
		{"messages: lines without a field", "messages_x", sse(start) + `{"type":"content_block_start","index":0,"content_block":` + bash + "}\n\n"},
		{"messages: behind a mark of the order of bytes", "messages_x", "\ufeff" + sse(`{"type":"content_block_start","index":0,"content_block":`+bash+`}`)},
		{"messages: a document with an error", "messages_document", `{"type":"error","error":{"type":"overloaded_error"},"model":"m","content":[` + bash + `],"stop_reason":"tool_use"}`},
		{"chat: two tools in one call", "chat_x", sse(chunk(`{"tool_calls":[{"index":0,"id":"c","type":"custom","function":{"name":"ls","arguments":"{}"},"custom":{"name":"bash","input":"rm"}}]}`))},
		{"chat: a name in pieces", "chat_x", sse(chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"ba","arguments":""}}]}`), chunk(`{"tool_calls":[{"index":0,"function":{"name":"sh","arguments":"rm"}}]}`))},
		{"chat: another name later", "chat_x", sse(chunk(`{"tool_calls":[{`+called+`}]}`), chunk(`{"tool_calls":[{"index":0,"function":{"name":"ls"}}]}`))},
		{"chat: two calls in one place", "chat_x", sse(chunk(`{"tool_calls":[{` + called + `},{"id":"d","function":{"name":"bash","arguments":"{\"cmd\":\"rm\"}"}}]}`))},
		{"chat: a message in an event", "chat_x", sse(`{"choices":[{"index":0,"delta":{},"message":{"tool_calls":[{` + called + `}]}}]}`)},
		{"chat: an old call of a message in an event", "chat_x", sse(`{"choices":[{"index":0,"message":{"function_call":{"name":"bash","arguments":"rm"}}}]}`)},
		{"chat: a piece in a document", "chat_document", `{"choices":[{"index":0,"delta":{"tool_calls":[{` + called + `}]}}]}`},
		{"chat: an event with an error", "chat_x", sse(`{"error":{"message":"x"},"choices":[{"index":0,"delta":{"tool_calls":[{` + called + `}]}}]}`)},
		{"chat: a document with an error", "chat_document", `{"error":{"message":"x"},"choices":[{"index":0,"message":{"tool_calls":[{` + called + `}]}}]}`},
		{"chat: arguments after the end", "chat_x", sse(chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"bash","arguments":"{}"}}]}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"rm"}}]}`))},
		{"chat: in capitals", "chat_x", sse(`{"Choices":[{"index":0,"delta":{"Tool_Calls":[{` + called + `}]}}]}`)},
		{"chat: parts", "chat_document", `{"choices":[{"message":{"content":[` + bash + `]}}]}`},
		{"responses: in the beginning", "responses_x", sse(`{"type":"response.created","response":{"status":"in_progress","output":[{` + item + `}]}}`)},
		{"responses: at the end, for another", "responses_x", sse(added(ls), done(ls), `{"type":"response.completed","response":{"status":"completed","output":[{`+item+`}]}}`)},
		{"responses: at the end, a client's action for another", "responses_x", sse(added(`"type":"local_shell_call","call_id":"c","action":{"command":["ls"]}`), done(`"type":"local_shell_call","call_id":"c","action":{"command":["ls"]}`),
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"local_shell_call","call_id":"c","action":{"command":["bash","rm"]}}]}}`)},
		{"responses: at the end, for a message", "responses_x", sse(added(`"type":"message"`), done(`"type":"message"`), `{"type":"response.completed","response":{"status":"completed","output":[{`+item+`}]}}`)},
		{"responses: arguments told otherwise", "responses_x", sse(added(strings.Replace(item, `{\"cmd\":\"rm\"}`, "", 1)), `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`,
			`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"cmd\":\"rm\"}"}`, done(strings.Replace(item, "rm", "ls", 1)))},
		{"responses: arguments that came otherwise", "responses_x", sse(added(strings.Replace(item, `{\"cmd\":\"rm\"}`, "", 1)), `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"cmd\":\"rm\"}"}`, done(strings.Replace(item, "rm", "ls", 1)))},
		{"responses: another name later", "responses_x", sse(added(item), done(ls))},
		{"responses: two in one place", "responses_x", sse(added(item), added(strings.Replace(ls, `"c"`, `"d"`, 1)))},
		{"responses: an item of a kind to come", "responses_x", sse(added(strings.Replace(item, "function_call", "tool_use", 1)), done(strings.Replace(item, "function_call", "tool_use", 1)))},
		{"responses: an event of another name", "responses_x", sse(`{"type":"response.done","response":{"status":"completed","output":[{` + item + `}]}}`)},
		{"responses: an item in an event of another name", "responses_x", sse(`{"type":"response.item","output_index":0,"item":{` + item + `}}`)},
		{"responses: a document with an error", "responses_document", `{"error":{"code":"server_overloaded"},"status":"completed","output":[{` + item + `}]}`},
	} {
		kind := "text/event-stream"
		if strings.HasSuffix(c.shape, "_document") {
			kind = "application/json"
		}
		m := dialect.NewMeter(asked(t, c.shape), bound, 200, kind)
		_, _ = m.Write([]byte(c.body))
		m.Close()
		a, listed := m.Answer(), false
		for _, call := range a.Calls {
			listed = listed || call.Name == "bash" && strings.Contains(call.Arguments, "rm")
		}
		if !listed && !a.Unread {
			t.Errorf("%s: %+v", c.name, a)
		}
		if tokens, how := m.Charge(); tokens.All() == 0 {
			t.Errorf("%s: costs nothing (%s)", c.name, how)
		}
	}
}

// TestUsageIsNoEndBeforeTheEnd: usage that was said at an end which was none, is not
// all that was used.
func TestUsageIsNoEndBeforeTheEnd(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	for shape, stream := range map[string]string{
		"messages_x": `data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":100,"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + long + `"}}` + "\n\n",
		"chat_x": `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":2}}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"` + long + `"}}]}` + "\n\n",
		"responses_x": `data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":100,"output_tokens":2}}}` + "\n\n" +
			`data: {"type":"response.output_text.delta","output_index":0,"delta":"` + long + `"}` + "\n\n",
	} {
		m := dialect.NewMeter(asked(t, shape), bound, 200, "text/event-stream")
		_, _ = m.Write([]byte(stream))
		m.Close()
		if got, how := m.Charge(); how != "partial" || got.Input != 100 || got.Output < 1000 {
			t.Errorf("%s: %+v (%s)", shape, got, how)
		}
	}
	// What was used is charged, whatever the answer says went wrong.
	for shape, doc := range map[string]string{
		"messages_x":   `{"type":"message","model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":2},"error":{"type":"overloaded_error"}}`,
		"chat_x":       `{"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":2},"error":{"code":"server_overloaded"}}`,
		"embeddings_x": `{"model":"m","data":[],"usage":{"prompt_tokens":102},"error":{"code":"server_overloaded"}}`,
	} {
		m := dialect.NewMeter(asked(t, shape), bound, 200, "application/json")
		m.Document([]byte(doc))
		if got, how := m.Charge(); how != "complete" || got.All() != 102 {
			t.Errorf("%s with an error: %+v (%s)", shape, got, how)
		}
	}
}

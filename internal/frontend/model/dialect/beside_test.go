package dialect

import (
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func TestToolsHaveNoVersion(t *testing.T) {
	for kind, want := range map[string]string{
		"web_search": "web_search", "web_search_20250305": "web_search", "web_search_preview": "web_search", "web_search_preview_2025_03_11": "web_search",
		"web_search_2025_08_26": "web_search", "tool_search_tool_bm25_20251119": "tool_search_tool_bm25", "_20250305": "_20250305", "": "", "x_2025030": "x_2025030", "x_2025-03-11": "x_2025-03-11",
	} {
		if got := ToolOf(kind); got != want {
			t.Errorf("%q is %q, not %q", kind, got, want)
		}
	}
}

// What a request may cost beside its tokens: a tier that it names, or leaves to the
// provider, and uses of tools, for which the request or the row says how many.
func TestTermsAndUsesOfARequest(t *testing.T) {
	type use = []holdfast.ToolUse
	for _, c := range []struct {
		d     Dialect
		body  string
		terms string
		uses  use
	}{
		{Messages, ``, "inference_geo= service_tier=", nil},
		{Messages, `"service_tier":"auto"`, "inference_geo= service_tier=", nil},
		{Messages, `"service_tier":"standard_only","inference_geo":"global"`, "", nil},
		{Messages, `"service_tier":"standard_only","inference_geo":"us","speed":"fast"`, "inference_geo=us speed=fast", nil},
		{Chat, `"service_tier":null`, "service_tier=", nil},
		{Chat, `"service_tier":"priority"`, "service_tier=priority", nil},
		{Responses, `"service_tier":"default"`, "", nil},
		{Responses, `"service_tier":"flex"`, "", nil},
		{Embeddings, ``, "", nil},
		{Messages, `"service_tier":"standard_only","inference_geo":"global","tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3}]`, "", use{{Name: "web_search", N: 3}}},
		{Messages, `"service_tier":"standard_only","inference_geo":"global","tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"web_fetch_20250910","name":"web_fetch","max_uses":2}]`, "", use{{Name: "web_search", N: -1}, {Name: "web_fetch", N: 2}}},
		{Messages, `"service_tier":"standard_only","inference_geo":"global","tools":[{"type":"web_search_20250305","name":"a","max_uses":3},{"type":"web_search_20260209","name":"b","max_uses":4}]`, "", use{{Name: "web_search", N: 7}}},
		{Messages, `"service_tier":"standard_only","inference_geo":"global","tools":[{"type":"web_search_20250305","name":"a","max_uses":3},{"type":"web_search_20260209","name":"b"}]`, "", use{{Name: "web_search", N: -1}}},
		{Messages, `"service_tier":"standard_only","inference_geo":"global","fallbacks":[{"model":"x"}],"tools":[{"type":"web_search_20250305","name":"a","max_uses":3}]`, "", use{{Name: "web_search", N: 6}}},
		{Messages, `"service_tier":"standard_only","inference_geo":"global","tools":[{"type":"bash_20250124","name":"bash"},{"name":"own","input_schema":{}}]`, "", nil},
		{Responses, `"service_tier":"default","tools":[{"type":"web_search_preview"},{"type":"function","name":"f"}]`, "", use{{Name: "web_search", N: 5}}},
		{Responses, `"service_tier":"default","max_tool_calls":2,"tools":[{"type":"web_search"},{"type":"code_interpreter","container":{}}]`, "", use{{Name: "web_search", N: 2}, {Name: "code_interpreter", N: 2}}},
		{Chat, `"service_tier":"default","n":3,"web_search_options":{}`, "", use{{Name: "web_search", N: 15}}},
	} {
		body := `{"model":"m"` + strings.TrimSuffix(","+c.body, ",") + `}`
		r := parsed(t, c.d, body)
		b, err := r.Bound(Limits{MaxOutput: 10, Window: 1000, ServerCalls: 5, Dearer: true})
		if got := strings.Join(r.Terms(), " "); err != nil || got != c.terms || !reflect.DeepEqual(b.Uses(), c.uses) {
			t.Errorf("%s: terms %q, uses %v, %v", body, got, b.Uses(), err)
		}
	}
}

// What an answer says of its tier and of its tools is charged; what it does not say is
// as reserved, and what cannot be is not believed.
func TestTermsAndUsesOfAnAnswer(t *testing.T) {
	type use = []holdfast.ToolUse
	const search = `{"model":"m","max_tokens":100,"max_output_tokens":100,"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3}]}`
	const web = `{"model":"m","max_output_tokens":100,"max_tool_calls":4,"tools":[{"type":"web_search"}]}`
	const chat = `{"model":"m","max_completion_tokens":100,"web_search_options":{}}`
	message := func(usage string) string {
		return `{"type":"message","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":9,"output_tokens":3` + usage + `}}`
	}
	response := func(more string, items ...string) string {
		return `{"model":"m","status":"completed","output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":9,"output_tokens":3}` + more + `}`
	}
	call := `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`
	for _, c := range []struct {
		name       string
		d          Dialect
		ask, tells string
		how, terms string
		uses       use
	}{
		{"nothing of it", Messages, search, message(``), "complete", "inference_geo= service_tier=", use{{Name: "web_search"}}},
		{"an ordinary tier", Messages, search, message(`,"service_tier":"standard","inference_geo":"not_available","server_tool_use":{"web_search_requests":2,"web_fetch_requests":0}`), "complete", "", use{{Name: "web_search", N: 2}, {Name: "web_fetch"}}},
		{"other tiers", Messages, search, message(`,"service_tier":"priority","inference_geo":"us","speed":"fast"`), "complete", "service_tier=priority inference_geo=us speed=fast", use{{Name: "web_search"}}},
		{"an odd tier", Messages, search, message(`,"service_tier":"a b=c","inference_geo":{"x":1}`), "complete", "service_tier= inference_geo=", use{{Name: "web_search"}}},
		{"more searches than asked", Messages, search, message(`,"server_tool_use":{"web_search_requests":20}`), "complete", "inference_geo= service_tier=", use{{Name: "web_search", N: 20}}},
		{"an absurd count", Messages, search, message(`,"server_tool_use":{"web_search_requests":2000}`), "reserved", "inference_geo= service_tier=", use{{Name: "web_search", N: 3}}},
		{"less than none", Messages, search, message(`,"server_tool_use":{"web_search_requests":-1}`), "reserved", "inference_geo= service_tier=", use{{Name: "web_search", N: 3}}},
		{"a count that is none", Messages, search, message(`,"server_tool_use":{"web_search_requests":"many"}`), "reserved", "inference_geo= service_tier=", use{{Name: "web_search", N: 3}}},
		{"other counts", Messages, search, message(`,"server_tool_use":{"note":"x","deep":{"a":1}}`), "complete", "inference_geo= service_tier=", use{{Name: "web_search"}}},
		{"seen and not told", Messages, search, strings.Replace(message(``), `[{`, `[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{`, 1), "complete", "inference_geo= service_tier=", use{{Name: "web_search", N: 1}}},
		{"refused", Messages, search, `{"type":"error","error":{"type":"overloaded_error","message":"no"}}`, "refused", "", nil},
		{"searches", Responses, web, response(`,"service_tier":"flex"`, call, call), "complete", "service_tier=flex", use{{Name: "web_search", N: 2}}},
		{"pages turned", Responses, web, response(`,"service_tier":"default"`, call, strings.Replace(call, `"search"`, `"open_page"`, 1)), "complete", "", use{{Name: "web_search", N: 1}}},
		{"an odd action", Responses, web, response(``, strings.Replace(call, `{"type":"search","query":"x"}`, `7`, 1)), "complete", "service_tier=", use{{Name: "web_search", N: 1}}},
		{"of a chat nobody tells", Chat, chat, `{"model":"m","service_tier":"priority","choices":[{"index":0,"finish_reason":"stop","message":{"content":"x"}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, "complete", "service_tier=priority", use{{Name: "web_search", N: 5}}},
	} {
		r := parsed(t, c.d, c.ask)
		b, err := r.Bound(Limits{MaxOutput: 100, Window: 1000, ServerCalls: 5})
		if err != nil {
			t.Fatal(err)
		}
		m := NewMeter(r, b, 200, "application/json")
		_, _ = m.Write([]byte(c.tells))
		m.Close()
		_, how := m.Charge()
		terms, uses := m.Beside(how)
		if got := strings.Join(terms, " "); how != c.how || got != c.terms || !reflect.DeepEqual(uses, c.uses) {
			t.Errorf("%s: %s, terms %q, uses %v", c.name, how, got, uses)
		}
	}
}

// A stream tells its searches once each, and one that breaks off is charged those that
// were reserved.
func TestUsesOfAStream(t *testing.T) {
	r := parsed(t, Responses, `{"model":"m","max_output_tokens":100,"max_tool_calls":4,"tools":[{"type":"web_search"}]}`)
	b, err := r.Bound(Limits{Window: 1000, ServerCalls: 5})
	if err != nil {
		t.Fatal(err)
	}
	item := func(kind, index, action string) string {
		return `{"type":"response.output_item.` + kind + `","output_index":` + index + `,"item":{"type":"web_search_call","id":"w` + index + `"` + action + `}}`
	}
	events := []string{`{"type":"response.created","response":{"model":"m","service_tier":"auto"}}`,
		item("added", "0", ""), item("done", "0", `,"action":{"type":"search"}`), item("added", "1", ""), item("done", "1", `,"action":{"type":"open_page"}`),
		`{"type":"response.completed","response":{"status":"completed","service_tier":"priority","output":[{"type":"web_search_call","id":"w0","action":{"type":"search"}},{"type":"web_search_call","id":"w1","action":{"type":"open_page"}}],"usage":{"input_tokens":1,"output_tokens":1}}}`}
	for left, want := range []int64{1, 4} {
		m := NewMeter(r, b, 200, "text/event-stream")
		for _, e := range events[:len(events)-left] {
			m.Event([]byte(e))
		}
		_, how := m.Charge()
		if _, uses := m.Beside(how); len(uses) != 1 || uses[0].N != want {
			t.Errorf("%d events are missing: %s, %v", left, how, uses)
		}
	}
}

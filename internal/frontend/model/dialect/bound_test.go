package dialect

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
)

func TestBoundsHoldWhatIsAsked(t *testing.T) {
	l := Limits{MaxOutput: 1000}
	for _, c := range []struct {
		name   string
		d      Dialect
		body   string
		in     int64 // at least
		out    int64
		refuse bool
	}{
		{"asked", Messages, `{"model":"m","max_tokens":100}`, 14, 100, false},
		{"not asked", Messages, `{"model":"m"}`, 6, 1000, false},
		{"null is not asked", Chat, `{"model":"m","max_completion_tokens":null}`, 6, 1000, false},
		{"too much", Messages, `{"model":"m","max_tokens":1001}`, 0, 0, true},
		{"too much by the old name", Chat, `{"model":"m","max_tokens":1001,"max_completion_tokens":1}`, 0, 0, true},
		{"the larger of two names", Chat, `{"model":"m","max_tokens":7,"max_completion_tokens":9}`, 6, 9, false},
		{"choices multiply", Chat, `{"model":"m","max_completion_tokens":10,"n":5}`, 6, 50, false},
		{"none of them", Chat, `{"model":"m","max_completion_tokens":10,"n":null}`, 6, 10, false},
		{"prompts and best_of multiply", Completions, `{"model":"m","prompt":["a","b"],"best_of":3,"n":2,"max_tokens":10}`, 6, 60, false},
		{"prompts of tokens multiply", Completions, `{"model":"m","prompt":[[1],[2],[3]],"max_tokens":10}`, 6, 30, false},
		{"a prompt of tokens is one", Completions, `{"model":"m","prompt":[1,2,3]}`, 6, 16, false},
		{"prediction is charged as output", Chat, `{"model":"m","max_completion_tokens":10,"prediction":{"type":"content","content":"` + strings.Repeat("x", 2200) + `"}}`, 2200, 2242, false},
		{"tokens as numbers", Embeddings, `{"model":"m","input":[` + strings.Repeat("1,", 999) + `1]}`, 1000, 0, false},
		{"an embedding has no output", Embeddings, `{"model":"m","input":"x"}`, 6, 0, false},
		{"counting is free", CountTokens, `{"model":"m","messages":[]}`, 0, 0, false},
		{"a byte of text is at most a token", Responses, `{"model":"m","max_output_tokens":16,"input":"` + strings.Repeat("x", 22000) + `"}`, 22_000, 16, false},
		{"an image is not its bytes", Responses, `{"model":"m","max_output_tokens":16,"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("x", 220000) + `"}]}]}`, 12_500, 16, false},
	} {
		b, err := parsed(t, c.d, c.body).Bound(l)
		if (err != nil) != c.refuse || b.Output != c.out || b.Input < c.in || b.Input > c.in+3000 {
			t.Errorf("%s: %+v, %v", c.name, b, err)
		}
	}
	if _, err := parsed(t, Messages, `{"model":"m"}`).Bound(Limits{}); holdfast.KindOf(err) != holdfast.KindBounds {
		t.Errorf("a request without a cap has a bound without limits: %v", err)
	}
	if _, err := (&Request{}).Bound(l); err == nil {
		t.Error("the zero request has a bound")
	}
}

// A conversation is read at once, and no provider reads beyond its window; lists of
// texts are read one by one. What the body does not show can be all of the window.
func TestBoundIsTheWindowAtMost(t *testing.T) {
	text := strings.Repeat("7", 5000)
	for _, c := range []struct {
		d           Dialect
		body        string
		least, most int64
	}{
		{Messages, `{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`, 1000, 1000},
		{Responses, `{"model":"m","input":"` + text + `"}`, 1000, 1000},
		{Chat, `{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`, 1000, 1000},
		{Messages, `{"model":"m","messages":[]}`, 27, 200},
		{Messages, `{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"x"}}]}]}`, 1000, 1000},
		{Messages, `{"model":"m","tools":[{"type":"web_search_20250305","name":"web_search","max_uses":2}],"messages":[]}`, 3000, 3000},
		{Completions, `{"model":"m","prompt":["` + text + `","` + text + `"]}`, 10_000, 10_200},
		{Embeddings, `{"model":"m","input":["` + text + `","` + text + `"]}`, 10_000, 10_200},
		{Messages, `{"model":"m","messages":[],"output_config":{"format":{"type":"json_schema","schema":{}}}}`, 1000, 1000},
	} {
		b, err := parsed(t, c.d, c.body).Bound(Limits{MaxOutput: 10, Window: 1000, ServerCalls: 5})
		if err != nil || b.Input < c.least || b.Input > c.most {
			t.Errorf("%.60s: %+v, %v", c.body, b, err)
		}
	}
	for value, want := range map[string]int64{"": 0, "context-1m-2025-08-07": 1 << 20, "a-b, context-2m-x": 2 << 20, "context-management-2025-06-27": 0, "context-": 0,
		"context-0m": 0, "context--1m": 0, "context-99999999999999999m": 1 << 40, "context-99999999999999999999m": 0} {
		if got := WindowAsked([]string{"first", value}); got != want {
			t.Errorf("%q asks for a window of %d, not %d", value, got, want)
		}
	}
}

// Text that only says of itself that it is an image, where the provider reads no
// content, is counted as text.
func TestTextInDisguiseIsText(t *testing.T) {
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", 22_000) + `"}}`
	part := `{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("A", 22_000) + `"}`
	for _, c := range []struct {
		d    Dialect
		body string
	}{
		{Messages, `{"model":"m","max_tokens":1,"metadata":` + image + `}`},
		{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":` + image + `}]}]}`},
		{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"","content":[` + image + `]}]}]}`},
		{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"text","data":"` + strings.Repeat("A", 22_000) + `"}}]}]}`},
		{Messages, `{"model":"m","max_tokens":1,"tools":[{"name":"a","input_schema":` + image + `}]}`},
		{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"` + strings.Repeat("A", 22_000) + `"}}]}]}`},
		{Responses, `{"model":"m","max_output_tokens":1,"metadata":` + part + `}`},
		{Responses, `{"model":"m","max_output_tokens":1,"input":[{"type":"shell_call_output","output":[` + part + `]}]}`},
		{Chat, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"","image_url":{"url":"data:` + strings.Repeat("A", 22_000) + `"}}]}]}`},
	} {
		b, err := parsed(t, c.d, c.body).Bound(Limits{})
		if err != nil || b.Input < 10_000 {
			t.Errorf("%.90s: %+v, %v", c.body, b, err)
		}
	}
}

func TestAmendOnlyAppends(t *testing.T) {
	l := Limits{MaxOutput: 4096, ServerCalls: 5, Window: 1000}
	for _, c := range []struct {
		d    Dialect
		body string
		want string // "" for the body itself
		did  Amended
	}{
		{Messages, `{"model":"m","max_tokens":5,"stream":true}`, "", Amended{}},
		{Messages, `{"model":"m"}`, `{"model":"m","max_tokens":4096}`, Amended{Cap: 4096}},
		{Messages, "{\"model\":\"m\" \n} \n", "{\"model\":\"m\",\"max_tokens\":4096 \n} \n", Amended{Cap: 4096}},
		{Chat, `{"model":"m","max_tokens":5}`, "", Amended{}},
		{Chat, `{"model":"m","max_completion_tokens":null, "n":1}`, `{"model":"m","max_completion_tokens":4096, "n":1}`, Amended{Cap: 4096}},
		{Chat, `{"model":"m","max_tokens":5,"stream":true}`, `{"model":"m","max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`, Amended{Usage: true}},
		{Chat, `{"model":"m","max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`, "", Amended{}},
		{Chat, `{"model":"m","max_tokens":5,"stream":true,"stream_options":{"include_usage":false}}`, `{"model":"m","max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`, Amended{Usage: true}},
		{Chat, `{"model":"m","max_tokens":5,"stream_options": {"include_obfuscation":false} ,"stream":true}`, `{"model":"m","max_tokens":5,"stream_options": {"include_obfuscation":false,"include_usage":true} ,"stream":true}`, Amended{Usage: true}},
		{Chat, `{"model":"m","max_tokens":5,"stream_options":{},"stream":true}`, `{"model":"m","max_tokens":5,"stream_options":{"include_usage":true},"stream":true}`, Amended{Usage: true}},
		{Chat, `{"max_tokens":null,"stream_options":null,"stream":true,"model":"m"}`, `{"max_tokens":null,"stream_options":{"include_usage":true},"stream":true,"model":"m","max_completion_tokens":4096}`, Amended{Cap: 4096, Usage: true}},
		{Completions, `{"model":"m","prompt":"x"}`, `{"model":"m","prompt":"x","max_tokens":16}`, Amended{Cap: 16}},
		{Responses, `{"model":"m","stream":true}`, `{"model":"m","stream":true,"max_output_tokens":4096}`, Amended{Cap: 4096}},
		{Responses, `{"model":"m","max_output_tokens":16,"tools":[{"type":"web_search"}]}`, `{"model":"m","max_output_tokens":16,"tools":[{"type":"web_search"}],"max_tool_calls":5}`, Amended{Calls: 5}},
		{Responses, `{"model":"m","max_output_tokens":16,"max_tool_calls":null,"tools":[{"type":"web_search"}]}`, `{"model":"m","max_output_tokens":16,"max_tool_calls":5,"tools":[{"type":"web_search"}]}`, Amended{Calls: 5}},
		{Responses, `{"model":"m","max_output_tokens":16,"max_tool_calls":2,"tools":[{"type":"web_search"}]}`, "", Amended{}},
		{Embeddings, `{"model":"m","input":"x"}`, "", Amended{}},
		{CountTokens, `{"model":"m","messages":[]}`, "", Amended{}},
	} {
		r := parsed(t, c.d, c.body)
		bound, err := r.Bound(l)
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		got, did := r.Amend([]byte(c.body), l)
		if c.want == "" {
			c.want = c.body
		}
		if string(got) != c.want || did != c.did {
			t.Errorf("%s\n became %s, %+v\n   want %s, %+v", c.body, got, did, c.want, c.did)
		}
		if !jsontext.Value(got).IsValid() {
			t.Errorf("%s is no JSON", got)
		}
		again := parsed(t, c.d, string(got))
		if b, err := again.Bound(l); err != nil || b.Output != bound.Output {
			t.Errorf("%s: the bound was %+v and is %+v, %v", c.body, bound, b, err)
		}
		if _, did := again.Amend(got, l); did != (Amended{}) {
			t.Errorf("%s is amended twice: %+v", got, did)
		}
	}
}

// TestBoundCountsReadDocuments: a document that was read needs no window; one more that was not does.
func TestBoundCountsReadDocuments(t *testing.T) {
	document := `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`
	ask := func(parts string) *Request {
		r, err := Parse(Messages, []byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[`+parts+`]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	read := Limits{MaxOutput: 9, Documents: Documents{Count: 1, Pages: 3, Text: 1000}}
	without, err := ask(`{"type":"text","text":"a"}`).Bound(read)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ask(document).Bound(read)
	if err != nil || b.Input < 3*5000+2*1000 || b.Input > without.Input+1000 {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := ask(document + "," + document).Bound(read); err == nil {
		t.Error("a document that was not read has a bound")
	}
	if _, err := ask(`{"type":"document","source":{"type":"file","file_id":"f"}},` + document).Bound(read); err == nil {
		t.Error("a file of the provider has a bound")
	}
}

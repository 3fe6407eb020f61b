package dialect

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func parsed(t *testing.T, d Dialect, body string) *Request {
	t.Helper()
	r, err := Parse(d, []byte(body))
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return r
}

func TestPathsAreDialects(t *testing.T) {
	for _, c := range []struct {
		p      Provider
		method string
		path   string
		want   Dialect
	}{
		{Anthropic, "POST", "/v1/messages", Messages},
		{Anthropic, "POST", "/v1/messages/count_tokens", CountTokens},
		{Anthropic, "POST", "/v1/messages/batches", Unknown},
		{Anthropic, "POST", "/v1/messages/", Unknown},
		{Anthropic, "POST", "/v1//messages", Unknown},
		{Anthropic, "POST", "/v1/responses", Unknown},
		{Anthropic, "PUT", "/v1/messages", Unknown},
		{Anthropic, "GET", "/v1/models/claude-x", Models},
		{Anthropic, "GET", "/v1/models/../files", Unknown},
		{OpenAI, "POST", "/v1/responses", Responses},
		{OpenAI, "POST", "/v1/responses/input_tokens", InputTokens},
		{OpenAI, "POST", "/v1/responses/compact", Unknown},
		{OpenAI, "GET", "/v1/responses/resp_1", Unknown},
		{OpenAI, "POST", "/v1/chat/completions", Chat},
		{OpenAI, "POST", "/v1/completions", Completions},
		{OpenAI, "POST", "/v1/embeddings", Embeddings},
		{OpenAI, "POST", "/v1/messages", Unknown},
		{OpenAI, "GET", "/v1/models", Models},
		{NoProvider, "GET", "/v1/models", Unknown},
		{NoProvider, "POST", "/v1/messages", Unknown},
	} {
		if got := Of(c.p, c.method, c.path); got != c.want {
			t.Errorf("%v %s %s is %v, want %v", c.p, c.method, c.path, got, c.want)
		}
	}
	for _, p := range []Provider{Anthropic, OpenAI} {
		if ProviderNamed(p.String()) != p || ProviderAt("api."+p.String()+".com") != p {
			t.Errorf("%v is not found by its name", p)
		}
	}
	if Of(0, "POST", "") != 0 || Dialect(200).String() != "unknown" || ProviderNamed("") != NoProvider {
		t.Error("what nobody knows has a name")
	}
}

func TestPathsThatServersTakeForOthers(t *testing.T) {
	for path, want := range map[string]string{
		"//v1/messages": "/v1/messages", "/v1//messages": "/v1/messages", "/v1/messages/": "/v1/messages", "/V1/Messages": "/v1/messages", "/v1/%6dessages": "/v1/messages",
		"/v1%2fmessages": "/v1/messages", "/v1%252Fmessages": "/v1/messages", "/v1/x/../messages": "/v1/messages", "/v1/x/%2e%2e/messages": "/v1/messages", "/v1/./messages": "/v1/messages",
		"/v1/messages;a=b": "/v1/messages", "/v1;a/messages": "/v1/messages", "/v1/messages%00": "/v1/messages", "/v1/messages.": "/v1/messages", "/v1/messages%20": "/v1/messages",
		"/v1\\responses": "/v1/responses", "/V1/chat/completions": "/v1/chat/completions",
		"/v1/messages": "", "/v1/messages/batches": "", "/v1/files": "", "/": "", "": "", "/v1/messages%": "", "/v1/messagesx": "", "/x/v1/messages": "",
	} {
		if got := Resembles(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestRequestsAreReadForWhatTheyAsk(t *testing.T) {
	r := parsed(t, Messages, `{"model":"claude-opus-4-5","max_tokens":1024,"stream":true,"system":[{"type":"text","text":"be kind"}],
		"messages":[{"role":"user","content":"hi"},
			{"role":"assistant","content":[{"type":"tool_use","id":"t0","name":"Read","input":{"type":"image"}}]},
			{"content":[{"type":"tool_result","tool_use_id":"t0","content":"old"}],"role":"user"},
			{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","is_error":true,"tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("A", 1000)+`"}}]}]}],
		"tools":[{"name":"Bash","input_schema":{}},{"type":"bash_20250124","name":"bash"}],"thinking":{"type":"enabled","budget_tokens":1000}}`)
	if r.Model != "claude-opus-4-5" || !r.Stream || !r.Capped || r.MaxOutput != 1024 || r.Choices != 1 || !r.Thinks || r.Images != 1 || r.Size-r.Text != 1002 {
		t.Errorf("%+v", r)
	}
	if !reflect.DeepEqual(r.Tools, []string{"Bash", "bash"}) || len(r.Unseen) != 0 {
		t.Errorf("tools %q, unseen %v", r.Tools, r.Unseen)
	}
	if len(r.ToolResults) != 2 || r.ToolResults[0].Name != "Read" || !r.ToolResults[0].Seen || r.ToolResults[1] != (ToolResult{"t1", "Bash", true, r.ToolResults[1].Bytes, false}) || r.ToolResults[1].Bytes < 1000 {
		t.Errorf("%+v", r.ToolResults)
	}

	r = parsed(t, Chat, `{"model":"gpt-5.2","n":3,"max_completion_tokens":10,"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"none",
		"messages":[{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"a b c"},
		{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],
		"tools":[{"type":"function","function":{"name":"ls"}},{"type":"custom","custom":{"name":"sql"}}]}`)
	if r.Choices != 3 || r.MaxOutput != 10 || !r.Usage || r.Images != 1 || r.Thinks || !reflect.DeepEqual(r.Tools, []string{"ls", "sql"}) || len(r.ToolResults) != 1 || r.ToolResults[0].Name != "ls" || r.ToolResults[0].Bytes != 7 {
		t.Errorf("%+v", r)
	}

	r = parsed(t, Responses, `{"model":"gpt-5.2-codex","max_output_tokens":99,"instructions":"x","stream":true,"store":false,"reasoning":{"effort":"high"},
		"tools":[{"type":"function","name":"shell"},{"type":"namespace","name":"ns","tools":[{"type":"function","name":"in"}]},{"type":"local_shell"}],
		"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c9","name":"shell","arguments":"{}"},
		{"type":"function_call_output","call_id":"c9","output":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]}`)
	if r.MaxOutput != 99 || !r.Thinks || r.Images != 1 || !reflect.DeepEqual(r.Tools, []string{"shell", "in", "local_shell"}) || len(r.Unseen) != 0 || len(r.ToolResults) != 1 || r.ToolResults[0].Name != "shell" || r.ToolResults[0].Seen {
		t.Errorf("%+v", r)
	}
}

// What stands before words of the model that something follows was there in an
// earlier request. Where two calls stand apart without such words, nobody knows
// whether they were of one answer: then the result between them may be new, and is.
// TestEachDialectIsParsed: a dialect without a parser is refused by Parse.
func TestEachDialectIsParsed(t *testing.T) {
	for d := range Dialect(len(names)) {
		if d.Provider() == NoProvider {
			continue
		}
		if r := parsed(t, d, `{"model":"m"}`); r.Model != "m" {
			t.Errorf("%s: the model is %q", d, r.Model)
		}
	}
}

func TestResultsThatAreNew(t *testing.T) {
	for name, c := range map[string]struct {
		d    Dialect
		body string
		new  string // the ids
	}{
		"messages":                   {Messages, `"messages":[{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"2"},{"type":"tool_result","tool_use_id":"3"}]}]`, "23"},
		"words behind the results":   {Messages, `"messages":[{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]},{"role":"user","content":"more"}]`, "1"},
		"the answer's first words":   {Messages, `"messages":[{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]},{"role":"assistant","content":"{"}]`, "1"},
		"a question behind":          {Messages, `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]},{"role":"assistant","content":"a"},{"role":"user","content":"more"}]`, ""},
		"chat":                       {Chat, `"messages":[{"role":"assistant"},{"role":"tool","tool_call_id":"1","content":"x"},{"role":"assistant"},{"role":"tool","tool_call_id":"2","content":"x"},{"role":"tool","tool_call_id":"3","content":"x"}]`, "23"},
		"a response that thought":    {Responses, `"input":[{"type":"reasoning"},{"type":"function_call","call_id":"1","name":"f"},{"type":"function_call_output","call_id":"1"},{"type":"reasoning"},{"type":"function_call","call_id":"2","name":"f"},{"type":"function_call_output","call_id":"2"}]`, "2"},
		"a response that spoke":      {Responses, `"input":[{"type":"function_call_output","call_id":"1"},{"role":"assistant","content":"a"},{"role":"user","content":"more"}]`, ""},
		"calls of one answer, maybe": {Responses, `"input":[{"type":"function_call","call_id":"1","name":"f"},{"type":"function_call_output","call_id":"1"},{"type":"function_call","call_id":"2","name":"f"},{"type":"function_call_output","call_id":"2"}]`, "12"},
	} {
		got := ""
		for _, r := range parsed(t, c.d, `{"model":"m",`+c.body+`}`).ToolResults {
			if !r.Seen {
				got += r.ID
			}
		}
		if got != c.new {
			t.Errorf("%s: new are %q, not %q", name, got, c.new)
		}
	}
}

func TestWhatTheBodyDoesNotShowIsNamed(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		body string
		want Unseen
	}{
		{Responses, `"previous_response_id":"resp_1"`, Unseen{Wide, "previous_response_id", 0}},
		{Responses, `"conversation":{"id":"conv_1"}`, Unseen{Wide, "conversation", 0}},
		{Responses, `"prompt":{"id":"pmpt_1"}`, Unseen{Beyond, "prompt", 0}},
		{Responses, `"background":true`, Unseen{Beyond, "background", 0}},
		{Responses, `"tools":[{"type":"web_search"}]`, Unseen{Loop, "web_search", 0}},
		{Responses, `"tools":[{"type":"mcp","server_url":"https://x.example"}]`, Unseen{Loop, "mcp", 0}},
		{Responses, `"tools":[{"type":"shell","environment":{"type":"container_auto"}}]`, Unseen{Loop, "shell", 0}},
		{Responses, `"tools":[{"type":"of tomorrow"}]`, Unseen{Loop, "of tomorrow", 0}},
		{Responses, `"input":[{"type":"item_reference","id":"msg_1"}]`, Unseen{Wide, "item_reference", 0}},
		{Responses, `"input":[{"id":"msg_1"}]`, Unseen{Wide, "item_reference", 0}},
		{Responses, `"input":[{"id":"msg_1","type":null}]`, Unseen{Wide, "item_reference", 0}},
		{Responses, `"input":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]`, Unseen{Wide, "file", 0}},
		{Responses, `"service_tier":"priority"`, Unseen{Dearer, "service_tier=priority", 0}},
		{Chat, `"web_search_options":{}`, Unseen{Loop, "web_search_options", 0}},
		{Chat, `"modalities":["text","audio"]`, Unseen{Dearer, "modalities=audio", 0}},
		{Chat, `"messages":[{"role":"user","content":[{"type":"tomorrow"}]}]`, Unseen{Wide, "part tomorrow", 0}},
		{Messages, `"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":8}]`, Unseen{Loop, "web_search_20250305", 8}},
		{Messages, `"mcp_servers":[{"type":"url","url":"https://x.example"}]`, Unseen{Loop, "mcp_servers", 0}},
		{Messages, `"fallbacks":"default"`, Unseen{Beyond, "fallbacks", 0}},
		{Messages, `"fallbacks":[{"model":"claude-dear"}]`, Unseen{Loop, "fallbacks", 1}},
		{Messages, `"speed":"fast"`, Unseen{Dearer, "speed=fast", 0}},
		{Messages, `"context_management":{"edits":[{"type":"clear_tool_uses_20250919"},{"type":"compact_20260112"}]}`, Unseen{Loop, "compact_20260112", 1}},
		{Messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]`, Unseen{Wide, "document", 0}},
	} {
		r := parsed(t, c.d, `{"model":"m","max_tokens":1,"max_output_tokens":1,`+c.body+`}`)
		if len(r.Unseen) != 1 || r.Unseen[0] != c.want {
			t.Errorf("%s: %+v, want %+v", c.body, r.Unseen, c.want)
		}
		if _, err := r.Bound(Limits{MaxOutput: 10}); holdfast.KindOf(err) != holdfast.KindBounds {
			t.Errorf("%s has a bound: %v", c.body, err)
		}
		b, err := r.Bound(Limits{MaxOutput: 10, Window: 1000, ServerCalls: 8, Dearer: true})
		if (err != nil) != (c.want.Kind == Beyond) || c.want.Kind == Wide && b.Input < 1000 || c.want.Kind == Loop && b.Input < 2000 {
			t.Errorf("%s: bound %+v, %v", c.body, b, err)
		}
	}
	r := parsed(t, Messages, `{"model":"m","max_tokens":1,"fallbacks":[{"model":"claude-dear"}]}`)
	if !reflect.DeepEqual(r.Others, []string{"claude-dear"}) {
		t.Errorf("others: %q", r.Others)
	}
	for _, plain := range []string{`"mcp_servers":[]`, `"container":null`, `"service_tier":"auto"`, `"thinking":{"type":"disabled"}`} {
		if r := parsed(t, Messages, `{"model":"m","max_tokens":1,`+plain+`}`); len(r.Unseen) > 0 || r.Thinks {
			t.Errorf("%s: %+v", plain, r)
		}
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for name, body := range map[string]string{
		"nothing":            ``,
		"a list":             `[]`,
		"no model":           `{"max_tokens":1}`,
		"odd model":          `{"model":"a b"}`,
		"dear\u202emodel":    `{"model":"claude\u202e"}`,
		"newline":            `{"model":"a\nb"}`,
		"model a number":     `{"model":1}`,
		"long model":         `{"model":"` + strings.Repeat("a", 129) + `"}`,
		"huge model":         `{"model":"` + strings.Repeat("a", 1<<20) + `"}`,
		"two models":         `{"model":"cheap","model":"dear"}`,
		"two caps":           `{"model":"m","max_tokens":1,"max_tokens":100000}`,
		"escaped twice":      `{"model":"cheap","\u006dodel":"dear"}`,
		"another model":      `{"model":"cheap","Model":"dear"}`,
		"a cap in capitals":  `{"model":"m","max_tokens":1,"MAX_TOKENS":100000}`,
		"a cap with a sign":  `{"model":"m","max_tokens":1,"max_to\u212aens":100000}`,
		"a long s":           `{"model":"m","max_tokens":1,"\u017ftream":true}`,
		"tools in capitals":  `{"model":"m","max_tokens":1,"Tools":[{"type":"web_search_20250305"}]}`,
		"a kind in capitals": `{"model":"m","max_tokens":1,"tools":[{"name":"x","Type":"web_search_20250305"}]}`,
		"negative":           `{"model":"m","max_tokens":-1}`,
		"a part":             `{"model":"m","max_tokens":1.5}`,
		"an exponent":        `{"model":"m","max_tokens":1e9}`,
		"overflow":           `{"model":"m","max_tokens":99999999999999999999}`,
		"a string":           `{"model":"m","max_tokens":"1"}`,
		"stream a string":    `{"model":"m","stream":"yes"}`,
		"bad UTF-8":          "{\"model\":\"m\xff\"}",
		"a tail":             `{"model":"m","max_tokens":1}{}`,
		"cut":                `{"model":"m","max_tokens":1`,
		"deep":               `{"model":"m","metadata":` + deep + `}`,
		"deep content":       `{"model":"m","messages":` + strings.Repeat(`[{"content":`, 100) + `1` + strings.Repeat(`}]`, 100) + `}`,
		"many tools":         `{"model":"m","tools":[` + strings.Repeat(`{"name":"a"},`, maxTools) + `{"name":"a"}]}`,
		"long tool":          `{"model":"m","tools":[{"name":"` + strings.Repeat("a", 1000) + `"}]}`,
		"messages no list":   `{"model":"m","messages":{}}`,
	} {
		r, err := Parse(Messages, []byte(body))
		var letter *holdfast.Error
		if r != nil && err == nil || !errors.As(err, &letter) || letter.Why == "" || letter.Hint == "" || len(letter.Why) > 200 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := Parse(Unknown, []byte(`{"model":"m"}`)); err == nil {
		t.Error("a request of no dialect was read")
	}
	if _, err := Parse(Models, []byte(`{}`)); err == nil {
		t.Error("a request for the models had a body")
	}
}

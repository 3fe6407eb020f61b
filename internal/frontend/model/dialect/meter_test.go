package dialect_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// bound is what the requests of these tests cost at most.
var bound = dialect.Bound{Input: 3000, Output: 4096}

// asked is a request that shows all of its output, in the dialect of that shape.
func asked(t testing.TB, shape string) *dialect.Request {
	t.Helper()
	body := `{"model":"gpt-5.2","max_tokens":4096,"max_output_tokens":4096,"reasoning_effort":"none","reasoning":{"effort":"none"}}`
	r, err := dialect.Parse(dialectOf(shape), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func dialectOf(shape string) dialect.Dialect {
	switch word, _, _ := strings.Cut(shape, "_"); word {
	case "messages":
		return dialect.Messages
	case "chat", "openai":
		return dialect.Chat
	case "responses":
		return dialect.Responses
	case "completions":
		return dialect.Completions
	case "embeddings":
		return dialect.Embeddings
	}
	return dialect.CountTokens
}

func metered(t testing.TB, s providertest.Shape, pieces ...[]byte) *dialect.Meter {
	t.Helper()
	m := dialect.NewMeter(asked(t, s.Name), bound, s.Status, s.Header.Get("Content-Type"))
	for _, p := range pieces {
		if n, err := m.Write(p); n != len(p) || err != nil {
			t.Fatalf("wrote %d of %d, %v", n, len(p), err)
		}
	}
	m.Close()
	return m
}

// TestWhatIsCharged is the table of charges: what the provider said, where it said
// all; what was seen, and no less, where it broke off; the bound where nobody knows;
// nothing where the provider refused.
func TestWhatIsCharged(t *testing.T) {
	reserved := holdfast.Tokens{Input: 3000, Output: 4096}
	type T = holdfast.Tokens
	for _, c := range []struct {
		shape string
		want  T
		how   string
		stop  string
		calls []dialect.ToolCall
	}{
		{"messages_text", T{Input: 25, Output: 7}, "complete", "end_turn", nil},
		{"messages_text_stream", T{Input: 25, Output: 7}, "complete", "end_turn", nil},
		{"messages_tool", T{Input: 410, CacheRead: 300, CacheWrite: 60, CacheWriteLong: 40, Output: 48}, "complete", "tool_use", []dialect.ToolCall{{ID: "toolu_01A", Name: "get_weather", Arguments: "{\n        \"location\": \"Oslo\"\n      }", Complete: true}}},
		{"messages_tool_stream", T{Input: 410, CacheRead: 300, CacheWrite: 60, CacheWriteLong: 40, Output: 89}, "complete", "tool_use", []dialect.ToolCall{{ID: "toolu_01A", Name: "get_weather", Arguments: `{"location": "Oslo"}`, Complete: true}}},
		{"messages_search_stream", T{Input: 10682, Output: 510}, "complete", "end_turn", []dialect.ToolCall{{ID: "srvtoolu_01", Name: "web_search", Arguments: `{"query":"weather"}`, Complete: true, Server: true}}},
		{"messages_broken_stream", T{Input: 25, Output: 7 + 256}, "partial", "", nil},
		{"messages_stillborn_stream", T{}, "refused", "", nil},
		{"messages_invalid", T{}, "refused", "", nil},
		{"messages_rate", T{}, "refused", "", nil},
		{"messages_overloaded", T{}, "refused", "", nil},
		{"messages_fault", reserved, "reserved", "", nil},
		{"count_tokens", T{}, "free", "", nil},
		{"chat_text", T{Input: 19, Output: 10}, "complete", "stop", nil},
		{"chat_text_stream", T{Input: 19, Output: 10}, "complete", "stop", nil},
		{"chat_tool", T{Input: 176, CacheRead: 1024, CacheWrite: 100, Output: 78}, "complete", "tool_calls", []dialect.ToolCall{{ID: "call_A", Name: "get_weather", Arguments: `{"location":"Oslo"}`, Complete: true}, {ID: "call_B", Name: "sql", Arguments: "select 1", Complete: true}}},
		{"chat_tool_stream", T{Input: 176, CacheRead: 1024, CacheWrite: 100, Output: 78}, "complete", "tool_calls", []dialect.ToolCall{{ID: "call_A", Name: "get_weather", Arguments: `{"location":"Oslo"}`, Complete: true}, {ID: "call_B", Name: "get_time", Arguments: "{}", Complete: true}}},
		{"chat_unmetered_stream", reserved, "reserved", "stop", nil},
		{"chat_broken_stream", reserved, "reserved", "", nil},
		{"openai_key", T{}, "refused", "", nil},
		{"openai_quota", T{}, "refused", "", nil},
		{"openai_rate", T{}, "refused", "", nil},
		{"openai_overloaded", T{}, "refused", "", nil},
		{"completions_text", T{Input: 5, Output: 2}, "complete", "stop", nil},
		{"embeddings", T{Input: 8}, "complete", "", nil},
		{"responses_text", T{Input: 36, Output: 17}, "complete", "completed", nil},
		{"responses_text_stream", T{Input: 36, Output: 17}, "complete", "completed", nil},
		{"responses_tool", T{Input: 176, CacheRead: 1024, CacheWrite: 100, Output: 78}, "complete", "completed", []dialect.ToolCall{{ID: "call_A", Name: "get_weather", Arguments: `{"location":"Oslo"}`, Complete: true}}},
		{"responses_tool_stream", T{Input: 176, CacheRead: 1024, CacheWrite: 100, Output: 78}, "complete", "completed", []dialect.ToolCall{{ID: "call_A", Name: "get_weather", Arguments: `{"location":"Oslo"}`, Complete: true}}},
		{"responses_incomplete_stream", T{Input: 36, Output: 16}, "complete", "max_output_tokens", nil},
		{"responses_failed_stream", reserved, "reserved", "failed", nil},
		{"responses_stillborn_stream", T{}, "refused", "failed", nil},
		{"responses_error_stream", reserved, "reserved", "", nil},
		{"responses_background", reserved, "reserved", "", nil},
	} {
		s := providertest.Read(c.shape)
		m := metered(t, s, s.Body)
		got, how := m.Charge()
		a := m.Answer()
		if got != c.want || how != c.how || a.Stop != c.stop || a.Unread || !(len(a.Calls) == 0 && len(c.calls) == 0 || reflect.DeepEqual(a.Calls, c.calls)) {
			t.Errorf("%s: charged %+v (%s), want %+v (%s); %+v", c.shape, got, how, c.want, c.how, a)
		}
		if failed := a.Failure != nil; failed != (s.Status >= 400 || strings.Contains(c.shape, "broken") || strings.Contains(c.shape, "stillborn") || strings.Contains(c.shape, "failed") || strings.Contains(c.shape, "error")) {
			t.Errorf("%s: failure %+v", c.shape, a.Failure)
		}
		if how == "complete" && (a.Model == "" || a.State != dialect.Complete) {
			t.Errorf("%s: %+v", c.shape, a)
		}
	}
}

// stride is the distance, in bytes, between the places at which an answer is cut: each
// place in full, otherwise one in seven.
func stride() int {
	if testrepeat.Enduring {
		return 1
	}
	return 7
}

// TestSplitsChangeNothing: in whatever pieces an answer comes, it is the same.
func TestSplitsChangeNothing(t *testing.T) {
	for _, name := range providertest.Names() {
		s := providertest.Read(name)
		whole := metered(t, s, s.Body)
		want, wantHow := whole.Charge()
		same := func(how string, m *dialect.Meter) {
			t.Helper()
			if got, gotHow := m.Charge(); got != want || gotHow != wantHow || !reflect.DeepEqual(m.Answer(), whole.Answer()) {
				t.Fatalf("%s, %s: charged %+v (%s), not %+v (%s); %+v", name, how, got, gotHow, want, wantHow, m.Answer())
			}
		}
		for i := 0; i < len(s.Body); i += stride() {
			same("in two", metered(t, s, s.Body[:i], s.Body[i:]))
		}
		bytewise := make([][]byte, len(s.Body))
		for i := range s.Body {
			bytewise[i] = s.Body[i : i+1]
		}
		same("byte by byte", metered(t, s, bytewise...))
		if s.Stream() {
			same("with CR LF", metered(t, s, bytes.ReplaceAll(s.Body, []byte("\n"), []byte("\r\n"))))
			same("with CR", metered(t, s, bytes.ReplaceAll(s.Body, []byte("\n"), []byte("\r"))))
			same("with comments", metered(t, s, bytes.ReplaceAll(s.Body, []byte("\n\n"), []byte("\n\n: still there\n\n"))))
			same("without a type", func() *dialect.Meter {
				bare := s
				bare.Header = nil
				return metered(t, bare, s.Body)
			}())
		}
	}
}

// TestLeavingIsNeverCheaper: an answer that ends anywhere before its end costs no
// less than what was seen of it, and no less input than all of it, unless the
// provider refused it.
func TestLeavingIsNeverCheaper(t *testing.T) {
	for _, name := range providertest.Names() {
		s := providertest.Read(name)
		full, how := metered(t, s, s.Body).Charge()
		if how != "complete" || dialectOf(name) == dialect.CountTokens {
			continue
		}
		for i := 0; i < len(s.Body); i += stride() {
			m := metered(t, s, s.Body[:i])
			got, how := m.Charge()
			if how == "complete" {
				if got != full {
					t.Fatalf("%s, %d bytes: %+v (%s), and all of it is %+v", name, i, got, how, full)
				}
				continue
			}
			if how == "refused" || how == "free" || got.Output < min(full.Output, 256) || name != "messages_search_stream" && got.All()-got.Output < full.All()-full.Output {
				t.Fatalf("%s, %d bytes: %+v (%s), and all of it is %+v", name, i, got, how, full)
			}
		}
	}
}

// TestHiddenOutputIsChargedAsReserved: where a stream need not show what was
// thought, its bytes say nothing about the output.
func TestHiddenOutputIsChargedAsReserved(t *testing.T) {
	s := providertest.Read("messages_tool_stream")
	for i, want := range map[int]int64{1: 256, 4: 4096} {
		got, how := metered(t, s, bytes.Join(s.Events()[:i], nil)).Charge()
		if how != "partial" || got.Output != want {
			t.Errorf("after %d events: %+v (%s)", i, got, how)
		}
	}
	r, err := dialect.Parse(dialect.Messages, []byte(`{"model":"m","max_tokens":4096,"thinking":{"type":"adaptive"}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := dialect.NewMeter(r, bound, 200, "text/event-stream")
	_, _ = m.Write(s.Events()[0])
	if got, how := m.Charge(); how != "partial" || got.Output != 4096 || got.CacheRead != 300 {
		t.Errorf("thinking was asked: %+v (%s)", got, how)
	}
}

// TestUsageGames: usage that cannot be is not believed, and the model's own words
// are no usage.
func TestUsageGames(t *testing.T) {
	start := `data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":100,"output_tokens":5}}}` + "\n\n"
	text := `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}` + "\n\n"
	end := func(usage string) string {
		return `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + usage + `}` + "\n\n"
	}
	for _, c := range []struct{ name, shape, stream, how string }{
		{"as it should be", "messages_x", start + text + end(`{"output_tokens":9}`), "complete"},
		{"negative", "messages_x", start + text + end(`{"output_tokens":-9}`), "reserved"},
		{"a part", "messages_x", start + text + end(`{"output_tokens":9.5}`), "reserved"},
		{"a string", "messages_x", start + text + end(`{"output_tokens":"9"}`), "reserved"},
		{"an exponent", "messages_x", start + text + end(`{"output_tokens":1e1}`), "reserved"},
		{"beyond numbers", "messages_x", start + text + end(`{"output_tokens":99999999999999999999999}`), "reserved"},
		{"beyond the bound by far", "messages_x", start + text + end(`{"output_tokens":99999999}`), "reserved"},
		{"falling", "messages_x", start + text + end(`{"output_tokens":4}`), "reserved"},
		{"falling input", "messages_x", start + text + end(`{"input_tokens":1,"output_tokens":9}`), "reserved"},
		{"nothing for something", "messages_x", strings.ReplaceAll(start, ":5", ":0") + text + end(`{"output_tokens":0}`), "reserved"},
		{"no input", "messages_x", strings.ReplaceAll(start, ":100", ":0") + text + end(`{"output_tokens":9}`), "reserved"},
		{"said twice", "messages_x", start + text + end(`{"output_tokens":9,"output_tokens":1}`), "partial"},
		{"falling, then right", "messages_x", start + text + end(`{"output_tokens":1}`) + end(`{"output_tokens":9}`), "reserved"},
		{"in the model's words", "chat_x", `data: {"choices":[{"index":0,"delta":{"content":"\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n"}}]}` + "\n\n", "reserved"},
		{"chat, more cached than came", "chat_x", `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":6}}}` + "\n\n", "reserved"},
		{"chat, a total beyond its parts", "chat_x", `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":50}}` + "\n\n", "complete"},
		{"chat, falling", "chat_x", `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}` + "\n\n", "reserved"},
		{"responses, null", "responses_x", `data: {"type":"response.completed","response":{"status":"completed","usage":null}}` + "\n\n", "reserved"},
	} {
		m := dialect.NewMeter(asked(t, c.shape), bound, 200, "text/event-stream")
		_, _ = m.Write([]byte(c.stream))
		m.Close()
		got, how := m.Charge()
		if how != c.how || how == "reserved" && got != bound.Tokens() || how == "complete" && c.shape == "chat_x" && got.All() != 50 {
			t.Errorf("%s: %+v (%s), want %s", c.name, got, how, c.how)
		}
	}
}

// TestIterationsAreAllCharged: what compaction used is not among the amounts beside
// the iterations.
func TestIterationsAreAllCharged(t *testing.T) {
	m := dialect.NewMeter(asked(t, "messages_x"), bound, 200, "application/json")
	m.Document([]byte(`{"model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":100,"output_tokens":10,
		"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":35},{"type":"message","input_tokens":100,"output_tokens":10}]}}`))
	if got, how := m.Charge(); how != "complete" || got != (holdfast.Tokens{Input: 280, Output: 45}) {
		t.Errorf("%+v (%s)", got, how)
	}
}

// TestEventsAreTold: what carries a call is told with its first event, before its
// arguments are there; and what Amend asked for is told too.
func TestEventsAreTold(t *testing.T) {
	for name, want := range map[string]string{
		"messages_text_stream":        "OTOTTOOO",
		"messages_tool_stream":        "OTTTOTTOCCCCCOO",
		"messages_broken_stream":      "OTTF",
		"chat_text_stream":            "OTTOUO",
		"chat_tool_stream":            "OCCCCCOUO",
		"chat_broken_stream":          "OTF",
		"responses_text_stream":       "OOTTTTTTTO",
		"responses_tool_stream":       "OOTTCCCCCC",
		"responses_incomplete_stream": "OOTTTTO",
		"responses_failed_stream":     "OOTTTTF",
		"responses_error_stream":      "OOTTTTF",
	} {
		s := providertest.Read(name)
		m := dialect.NewMeter(asked(t, name), bound, s.Status, s.Header.Get("Content-Type"))
		got := ""
		for _, e := range s.Events() {
			_, data, _ := bytes.Cut(e, []byte("data: "))
			got += string("OTCUFX"[m.Event(bytes.TrimSpace(data))])
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		whole := metered(t, s, s.Body)
		if !reflect.DeepEqual(m.Answer(), whole.Answer()) {
			t.Errorf("%s: by events %+v, by bytes %+v", name, m.Answer(), whole.Answer())
		}
	}
}

// TestAskedUsageIsTheClients: the event with the usage is the client's, where it asked
// for it.
func TestAskedUsageIsTheClients(t *testing.T) {
	for body, want := range map[string]dialect.Event{
		`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`:  dialect.Other,
		`{"model":"m","stream":true,"stream_options":{"include_usage":false}}`: dialect.Unasked,
		`{"model":"m","stream":true}`:                                          dialect.Unasked,
	} {
		r, err := dialect.Parse(dialect.Chat, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		m := dialect.NewMeter(r, bound, 200, "text/event-stream")
		if got := m.Event([]byte(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)); got != want {
			t.Errorf("%s: %d", body, got)
		}
	}
}

// TestWhatCannotBeReadMayBeACall: an answer with too much in it, or with what is no
// JSON, says so.
func TestWhatCannotBeReadMayBeACall(t *testing.T) {
	call := func(i int) string {
		return `{"type":"tool_use","id":"t` + strings.Repeat("i", i%7) + `","name":"n","input":{}}`
	}
	calls := make([]string, 300)
	for i := range calls {
		calls[i] = call(i)
	}
	for name, c := range map[string]struct{ kind, body string }{
		"no JSON":        {"application/json", `{"content":[`},
		"two members":    {"application/json", `{"content":[],"content":[{"type":"tool_use"}]}`},
		"many calls":     {"application/json", `{"content":[` + strings.Join(calls, ",") + `],"stop_reason":"tool_use"}`},
		"long arguments": {"application/json", `{"content":[{"type":"tool_use","id":"a","name":"b","input":{"x":"` + strings.Repeat("x", 2<<20) + `"}}],"stop_reason":"tool_use"}`},
		"a long name":    {"application/json", `{"content":[{"type":"tool_use","id":"a","name":"` + strings.Repeat("x", 1000) + `","input":{}}],"stop_reason":"tool_use"}`},
		"a huge answer":  {"application/json", `{"content":[{"type":"text","text":"` + strings.Repeat("x", 17<<20) + `"}]}`},
		"a huge event":   {"text/event-stream", "data: " + strings.Repeat("x", 9<<20) + "\n\n"},
		"a torn event":   {"text/event-stream", "data: {\"type\":\n\n"},
		"a delta alone":  {"text/event-stream", `data: {"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{}"}}` + "\n\n"},
	} {
		m := dialect.NewMeter(asked(t, "messages_x"), bound, 200, c.kind)
		_, _ = m.Write([]byte(c.body))
		m.Close()
		if a := m.Answer(); !a.Unread {
			t.Errorf("%s: %d calls, unread is not said", name, len(a.Calls))
		}
		if got, how := m.Charge(); how != "reserved" || got != bound.Tokens() {
			t.Errorf("%s: %+v (%s)", name, got, how)
		}
	}
}

func FuzzMeter(f *testing.F) {
	for _, name := range providertest.Names() {
		s := providertest.Read(name)
		f.Add(s.Body, uint8(dialectOf(name)), s.Stream(), uint16(s.Status), 17)
	}
	f.Fuzz(func(t *testing.T, body []byte, d uint8, stream bool, status uint16, at int) {
		r, err := dialect.Parse(dialect.Dialect(d), []byte(`{"model":"m","max_tokens":9,"max_output_tokens":9}`))
		if err != nil {
			return
		}
		kind := "application/json"
		if stream {
			kind = "text/event-stream"
		}
		whole, split := dialect.NewMeter(r, bound, int(status), kind), dialect.NewMeter(r, bound, int(status), kind)
		_, _ = whole.Write(body)
		whole.Close()
		if at = max(0, at); at > len(body) {
			at %= len(body) + 1
		}
		_, _ = split.Write(body[:at])
		_, _ = split.Write(body[at:])
		split.Close()
		got, how := whole.Charge()
		if again, howAgain := split.Charge(); again != got || how != howAgain || !reflect.DeepEqual(whole.Answer(), split.Answer()) {
			t.Fatalf("at %d: %+v (%s), %+v (%s)", at, got, how, again, howAgain)
		}
		for _, n := range []int64{got.Input, got.CacheRead, got.CacheWrite, got.CacheWriteLong, got.Output} {
			if n < 0 {
				t.Fatalf("%+v", got)
			}
		}
		if got.All() == 0 && how != "refused" && how != "free" {
			t.Fatalf("%s costs nothing", how)
		}
		if a := whole.Answer(); how == "refused" && (a.Began || len(a.Calls) > 0 || a.Said > 0) {
			t.Fatalf("refused, and began: %+v", a)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}],"tools":[{"name":"x"}]}`,
		`{"model":"m","stream":true,"stream_options":{"include_usage":false},"n":2,"messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}`,
		`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:x"}]}],"max_tool_calls":null}`,
		`{"model":"m","prompt":[[1,2],[3]],"best_of":2}`,
	} {
		for d := dialect.Messages; d < dialect.Models; d++ {
			f.Add([]byte(body), uint8(d))
		}
	}
	l := dialect.Limits{MaxOutput: 100, Window: 1000, ServerCalls: 3, Dearer: true}
	f.Fuzz(func(t *testing.T, body []byte, d uint8) {
		before := bytes.Clone(body)
		r, err := dialect.Parse(dialect.Dialect(d), body)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			return
		}
		if r.Text < 0 || r.Text > r.Size {
			t.Fatalf("%d of %d bytes are text", r.Text, r.Size)
		}
		b, err := r.Bound(l)
		if err != nil {
			return
		}
		out, did := r.Amend(body, l)
		if did == (dialect.Amended{}) != bytes.Equal(out, body) {
			t.Fatalf("%+v, and %q became %q", did, body, out)
		}
		if dialect.Dialect(d) == dialect.Models {
			return
		}
		again, err := dialect.Parse(dialect.Dialect(d), out)
		if err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		if nb, err := again.Bound(l); err != nil || nb.Output != b.Output {
			t.Fatalf("%q: %+v; %q: %+v, %v", body, b, out, nb, err)
		}
		if _, did := again.Amend(out, l); did != (dialect.Amended{}) {
			t.Fatalf("%q is amended twice: %+v", out, did)
		}
	})
}

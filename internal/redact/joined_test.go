package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// answers are streams as models send them: how one piece of an answer is
// written as an event.
var answers = map[string]struct {
	kind string
	one  func(piece string) string
}{
	"messages": {"text/event-stream", func(p string) string {
		return fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n", quote(p))
	}},
	"tool input": {"", func(p string) string {
		return fmt.Sprintf("data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":%s},\"index\":1}\r\n\r\n", quote(p))
	}},
	"completions": {"text/event-stream; charset=utf-8", func(p string) string {
		return fmt.Sprintf("data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quote(p))
	}},
	"responses": {"text/event-stream", func(p string) string {
		return fmt.Sprintf("data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":%s}\n\n", quote(p))
	}},
	"lines": {"application/x-ndjson", func(p string) string {
		return fmt.Sprintf("{\"message\":{\"role\":\"assistant\",\"content\":%s},\"done\":false}\n", quote(p))
	}},
}

// A secret whose parts come in several events is masked where it begins.
func TestASecretInPiecesIsMasked(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	for name, a := range answers {
		for _, s := range secrets {
			for _, size := range []int{1, 2, 5, 9} {
				text := "it says " + s.text + ", and then it goes on"
				var in strings.Builder
				for i := 0; i < len(text); i += size {
					in.WriteString(a.one(text[i:min(i+size, len(text))]))
				}
				in.WriteString(a.one(""))
				r, err := e.Body(a.kind, []byte(in.String()))
				if err != nil || !r.Found() {
					t.Errorf("%s, %s by %d: %v by %v", name, s.rule, size, err, r.Rules())
					continue
				}
				var all strings.Builder
				for line := range strings.Lines(string(r.Out)) {
					all.WriteString(saidIn(strings.TrimPrefix(line, "data:")))
				}
				want := string(e.Text([]byte(text)).Out)
				if all.String() != want {
					t.Errorf("%s, %s by %d: %q, want %q", name, s.rule, size, all.String(), want)
				}
				if strings.Count(in.String(), "\n") != strings.Count(string(r.Out), "\n") {
					t.Errorf("%s: lines are missing", name)
				}
				stable(t, e, a.kind, r.Out)
				ordered(t, []byte(in.String()), r)
			}
		}
	}
}

// Pieces of two streams are not put together.
func TestPiecesOfTwoStreamsStayApart(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	var in strings.Builder
	for i, p := range []string{"tenant-own", "xxxx", "-secret", "yyyy"} {
		fmt.Fprintf(&in, "data: {\"choices\":[{\"index\":%d,\"delta\":{\"content\":%q}}]}\n\n", i%2, p)
	}
	r, err := e.Body("text/event-stream", []byte(in.String()))
	if err != nil || !r.Found() {
		t.Errorf("%s, %v", r.Out, err)
	}
	other := strings.ReplaceAll(in.String(), `"-secret"`, `"-public"`)
	other = strings.ReplaceAll(other, `"yyyy"`, `"-secret"`)
	if r, err = e.Body("text/event-stream", []byte(other)); err != nil || r.Found() {
		t.Errorf("%s, %v", r.Out, err)
	}
}

// saidIn returns what an event of answers says: the strings of the members that
// hold a piece, or nothing where line is not JSON.
func saidIn(line string) string {
	var event any
	if json.Unmarshal([]byte(line), &event) != nil {
		return ""
	}
	var all strings.Builder
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case string:
			if slices.Contains([]string{"text", "partial_json", "content", "delta"}, name) {
				all.WriteString(v)
			}
		case []any:
			for _, e := range v {
				walk("", e)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(k, v[k])
			}
		}
	}
	walk("", event)
	return all.String()
}

package sample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Chat is at least size bytes of what a model's API is sent and answers: one
// JSON document to a line, with ids, numbers of tokens, times, addresses on
// the web, tool calls and the files they read. Each seed gives other bytes.
func Chat(seed uint64, size int) []byte {
	w := newWriter(seed)
	for w.Len() < size {
		w.exchange()
	}
	return []byte(w.String())
}

// Escaped is Chat as Go's encoder writes it by default: "<", ">" and "&" are
// \u003c, \u003e and \u0026, so that a scanner must undo escapes everywhere.
func Escaped(seed uint64, size int) []byte {
	var b bytes.Buffer
	json.HTMLEscape(&b, Chat(seed, size))
	return b.Bytes()
}

// quoted is s as most encoders write it.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// exchange is a request's messages and the answer to them.
func (w *writer) exchange() {
	at := w.stamp()
	w.f(`{"id":"msg_01%s","type":"message","created":%d,"at":%q,"model":"%s-%d-%d-2026%02d%02d","trace":%q,"temperature":%.1f,"max_tokens":%d,"messages":[`,
		w.of(base58, 22), at.Unix(), at.Format("2006-01-02T15:04:05.000Z07:00"), pick(w, []string{"atlas", "quartz", "heron"}), 3+w.r.IntN(3), w.r.IntN(9),
		1+w.r.IntN(12), 1+w.r.IntN(28), w.uuid(), w.r.Float64(), 1024*(1+w.r.IntN(16)))
	for i, n := 0, 2+w.r.IntN(5); i < n; i++ {
		if i > 0 {
			w.WriteByte(',')
		}
		w.message(i)
	}
	w.f(`],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,"service_tier":"standard"}}`+"\n",
		pick(w, []string{"end_turn", "tool_use", "max_tokens"}), w.r.IntN(90_000), w.r.IntN(9_000), w.r.IntN(90_000), w.r.IntN(4_000))
}

func (w *writer) message(i int) {
	switch {
	case i%2 == 0 && w.r.IntN(3) > 0:
		w.f(`{"role":"user","content":[{"type":"text","text":%s}]}`, quoted(w.paragraph()))
	case i%2 == 0:
		w.f(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01%s","is_error":%t,"content":[{"type":"text","text":%s}]}]}`,
			w.of(base58, 22), w.r.IntN(5) == 0, quoted(w.toolResult()))
	default:
		w.f(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":"toolu_01%s","name":%q,"input":%s}]}`,
			quoted(w.paragraph()), w.of(base58, 22), pick(w, []string{"read_file", "run_tests", "search_code", "fetch_page"}), w.toolInput())
	}
}

func (w *writer) toolInput() string {
	switch w.r.IntN(3) {
	case 0:
		return fmt.Sprintf(`{"path":%q,"offset":%d,"limit":%d}`, w.path(), w.r.IntN(900), 50*(1+w.r.IntN(9)))
	case 1:
		return fmt.Sprintf(`{"url":"https://%s.example.org/%s?id=%d&sort=%s","timeout_ms":%d}`, strings.ToLower(w.word()), w.name("/"), w.r.IntN(100_000), strings.ToLower(w.word()), 1000*w.r.IntN(60))
	}
	return fmt.Sprintf(`{"pattern":%s,"glob":"**/*.%s","max":%d,"case_sensitive":%t}`, quoted(w.camel()+`\(.*\)`), pick(w, []string{"go", "py", "ts"}), w.r.IntN(200), w.r.IntN(2) == 0)
}

// toolResult is what a tool printed: a listing, a log, or a piece of code.
func (w *writer) toolResult() string {
	var s strings.Builder
	switch w.r.IntN(3) {
	case 0:
		for range 4 + w.r.IntN(8) {
			fmt.Fprintf(&s, "-rw-r--r-- 1 root root %7d %s %s\n", w.r.IntN(90_000), w.stamp().Format("Jan _2 15:04"), w.path())
		}
	case 1:
		for range 4 + w.r.IntN(8) {
			fmt.Fprintf(&s, "%s %-5s %s/%d: %s latency=%.3fs status=%d bytes=%d\n", w.stamp().Format("2006-01-02T15:04:05.000Z"), pick(w, []string{"INFO", "WARN", "DEBUG"}),
				strings.ToLower(w.word()), w.r.IntN(30_000), w.sentence(), w.r.Float64()*3, 200+w.r.IntN(300), w.r.IntN(100_000))
		}
	default:
		c := newWriter(w.r.Uint64())
		c.snippet()
		return c.String()
	}
	return s.String()
}

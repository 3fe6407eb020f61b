package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// lineForms are ways to write the same events.
var lineForms = map[string]func(string) string{
	"LF":   func(s string) string { return s },
	"CRLF": func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"CR":   func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
	"comments": func(s string) string {
		return ": hello\n\n" + strings.ReplaceAll(s, "data: ", ": c\nevent: x\nid: 1\nretry: 5\ndata: ")
	},
	"no blank": func(s string) string { return strings.ReplaceAll(s, "data: ", "data:") },
	"lines":    func(s string) string { return strings.ReplaceAll(s, `,"type":`, ",\ndata: \"type\":") },
}

// brokenAfter reads b, n bytes at a time, and then fails with err.
type brokenAfter struct {
	cutting
	err error
}

func (r *brokenAfter) Read(p []byte) (int, error) {
	n, err := r.cutting.Read(p)
	if err == io.EOF {
		err = r.err
	}
	return n, err
}

// restoreStream returns what a client gets of a stream.
func restoreStream(t *testing.T, c cleaner.Cleaner, s *mapping.Snapshot, d dialect.Dialect, in io.Reader) (
	string, error,
) {
	t.Helper()
	p := &Proxy{}
	p.out.memory.Most, p.out.patience = 64<<20, time.Hour
	w := &sink{h: http.Header{}}
	m := &model{req: &dialect.Request{Dialect: d}, mapped: &mapped{placeholders: s, kinds: map[string]int{}}}
	a := &answer{ctx: t.Context(), p: p, d: &domain.Domain{}, w: w, c: c, most: 1 << 30, header: http.Header{},
		hash: noHash{}, mode: domain.Restore, model: m}
	a.resp = &http.Response{StatusCode: 200, Body: http.NoBody}
	err := a.events(t.Context(), in, frames.Events)
	return w.b.String(), err
}

// readPieces returns the texts at a path in events, joined, and reports the first event that is not JSON.
func readPieces(events []string, path ...any) (text, invalid string) {
	var b strings.Builder
	for _, data := range events {
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			invalid = data
			continue
		}
		if found, ok := lookUp(v, path...).(string); ok {
			b.WriteString(found)
		}
	}
	return b.String(), invalid
}

// D13a, D25b: wherever a stream of any dialect is cut, exactly what came is restored, in valid events;
// a placeholder of which only a part came stays as it is.
func TestModelsStreamIsCutAnywhere(t *testing.T) {
	engine, err := redact.New(redact.Options{Masks: redact.Egress})
	if err != nil {
		t.Fatal(err)
	}
	session := mapping.NewSessions([]byte("key"), time.Now).Find(mapping.Owner{Tenant: "t"})
	r := session.Begin(nil, nil)
	p := string(r.Replace("email", []byte(ownMail)))
	snapshot, c := r.Snapshot(), cleaner.New(engine)
	dialects := map[string]dialect.Dialect{"messages": dialect.Messages, "chat": dialect.Chat,
		"responses": dialect.Responses}
	for name, s := range listSpoken() {
		docs := append(slices.Clone(s.events("To "+p+" ok", encode(obj{"to": p}))), obj{"type": "ping", "é😀": p})
		paths := []list{s.textPiece, s.argumentsPiece}
		if name == "responses" {
			paths = []list{{"delta"}, s.textPiece, s.argumentsPiece}
		}
		for form, write := range lineForms {
			t.Run(name+" "+form, func(t *testing.T) {
				all, step := write(asEvents(docs...)), 1
				if form != "LF" && testrepeat.Times(2, 1) == 1 {
					step = 11
				}
				for n := 0; n <= len(all); n += step {
					came := all[:n]
					whole := wholeEvents(came)
					got, err := restoreStream(t, c, snapshot, dialects[name], &cutting{[]byte(came), 1 + n%7})
					if err != nil {
						t.Fatalf("cut at %d: %v", n, err)
					}
					broken, err := restoreStream(t, c, snapshot, dialects[name],
						&brokenAfter{cutting{[]byte(came), 1 + n%5}, errors.New("reset")})
					if err == nil {
						t.Fatalf("cut at %d: an answer that broke off looks whole", n)
					}
					for _, path := range paths {
						was, _ := readPieces(whole, path...)
						want := strings.ReplaceAll(was, p, ownMail)
						more, _ := readPieces(eventData(came), path...) // with an event that has no end
						more = strings.ReplaceAll(more, p, ownMail)
						if text, _ := readPieces(eventData(got), path...); text != want && text != more {
							t.Fatalf("cut at %d, %v: %q, want %q or %q", n, path, text, want, more)
						}
						if text, invalid := readPieces(wholeEvents(broken), path...); invalid != "" ||
							!strings.HasPrefix(more, text) {
							t.Fatalf("broken at %d, %v: %q of %q, invalid %q", n, path, text, want, invalid)
						}
					}
					for _, out := range []string{got, broken} {
						if bytes.Contains([]byte(out), []byte(`é😀":"`+ownMail)) {
							t.Fatalf("cut at %d: restored in structure", n)
						}
					}
				}
			})
		}
	}
}

// wholeEvents returns the data of the events that have an end.
func wholeEvents(s string) []string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	return eventData(s[:strings.LastIndex(s, "\n\n")+1])
}

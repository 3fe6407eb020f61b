package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// conversation is one JSON document of at least size bytes.
func conversation(size int) []byte {
	lines := bytes.TrimSuffix(sample.Chat(1, size), []byte("\n"))
	return append(append([]byte(`{"batch":[`), bytes.ReplaceAll(lines, []byte("\n"), []byte(","))...), `]}`...)
}

// measureBodies measures what a request's body costs, beside what reading it as
// JSON costs at least, and bodies that are made to be slow.
func measureBodies(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	doc := conversation(64 << 10)
	first, err := e.Body("application/json", doc)
	if err != nil {
		return nil, err
	}
	seen := 0
	p := race(len(doc), b.Span(2*time.Second), func() {
		r, _ := e.Body("application/json", doc) // looked at above
		seen += len(r.Findings)
	}, func() {
		if json.Valid(doc) {
			seen++
		}
	})
	runtime.KeepAlive(seen)
	out := []measure.Figure{{Name: "a body of model JSON, 64 KB, clean", Measured: p.rate(0), Unit: "MB/s"}}
	out[0] = out[0].RatioTo(p.rate(1), "encoding/json's check")
	markFound(&out[0], first, doc)
	hostile, err := measureHostileBodies(b, e)
	return append(out, hostile), err
}

// measureHostileBodies is the figure of the slowest. A body may be refused: then that
// must be as fast.
func measureHostileBodies(b *measure.Run, e *redact.Engine) (measure.Figure, error) {
	const size = 1 << 20
	of := func(open, unit, shut string) []byte {
		return []byte(open + strings.Repeat(unit, size/len(unit)) + shut)
	}
	text := base64.StdEncoding.EncodeToString(sample.Code(1, 3<<10))
	var all []slowness
	var table [256]bool
	seen := 0
	for _, t := range []sample.Text{
		{Name: "many small strings", Text: of(`["x"`, `,"a1"`, `]`)},
		{Name: "numbers", Text: of(`[0`, `,4111111111111112`, `]`)},
		{Name: "deep arrays", Text: of("", "[", "")},
		{Name: "names that say secret", Text: of(`[{}`, `,{"password":"x","ssn":1}`, `]`)},
		{Name: "JSON in strings", Text: of(`[0`, `,"{\"a\":\"{\\\"b\\\":1}\"}"`, `]`)},
		{Name: "escapes", Text: of(`["`, `\u0041\n\"\\`, `"]`)},
		{Name: "base64 of text", Text: of(`["x"`, `,"`+text+`"`, `]`)},
		{Name: "a form", Text: of("a=1", "&a%5B%5D=%7B%22x%22%3A1%7D", "")},
		{Name: "lines of JSON", Text: of("", `{"a":"b"}`+"\n", "")},
		{Name: "events", Text: of("", "data: {\"delta\":\"x\"}\n\n", "")},
		{Name: "elements", Text: of("<a>", "<b c='d'>&amp;</b>", "</a>")},
		{Name: "wide characters", Text: of("\xff\xfe", "a\x00:\x00", "")},
	} {
		var failed error
		p := race(len(t.Text), b.Span(300*time.Millisecond), func() {
			r, err := e.Body("", t.Text)
			if err != nil && holdfast.KindOf(err) != holdfast.KindRedaction {
				failed = err
			}
			seen += len(r.Findings)
		}, func() { seen += glance(&table, t.Text) })
		if failed != nil {
			return measure.Figure{}, fmt.Errorf("%s: %w", t.Name, failed)
		}
		all = append(all, slowness{t.Name, p.rate(0), p.rate(1)})
	}
	runtime.KeepAlive(seen)
	return worst(fmt.Sprintf("the slowest of %d hostile bodies of 1 MB", len(all)), all, 20), nil
}

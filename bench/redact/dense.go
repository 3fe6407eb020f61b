package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/substitute"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// measureDense measures texts with a finding on nearly every line, and shows the slowest.
func measureDense(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	var all []slowness
	var table [256]bool
	seen := 0
	for _, t := range sample.Dense(1 << 20) {
		found := len(e.Text(t.Text).Findings)
		lines := bytes.Count(t.Text, []byte("\n"))
		if found < lines*9/10 && t.Name != "private keys" && t.Name != "all of them" {
			return nil, fmt.Errorf("%s: %d findings in %d lines", t.Name, found, lines)
		}
		p := race(len(t.Text), b.Span(300*time.Millisecond), func() { seen += len(e.Text(t.Text).Findings) },
			func() { seen += glance(&table, t.Text) })
		all = append(all, slowness{t.Name, p.rate(0), p.rate(1)})
	}
	runtime.KeepAlive(seen)
	name := fmt.Sprintf("the slowest of %d texts of 1 MB dense with findings", len(all))
	return []measure.Figure{worst(name, all, 20)}, nil
}

// measurePlaceholders measures placeholders and their restoring next to masking of the same bodies.
func measurePlaceholders(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	texts := sample.Dense(64 << 10)
	dense := texts[len(texts)-1].Text
	clean := sample.Code(1, 64<<10)
	var out []measure.Figure
	for _, t := range []sample.Text{{Name: "clean", Text: clean},
		{Name: "a finding in each 2 KB", Text: addLines(clean, dense, 2<<10)},
		{Name: "dense with findings", Text: dense}} {
		figures, err := comparePlaceholders(b, e, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		out = append(out, figures...)
	}
	return out, nil
}

// addLines returns text with one line of lines after each distance bytes or more.
func addLines(text, lines []byte, distance int) []byte {
	var out []byte
	last := 0
	for line := range bytes.Lines(text) {
		if out = append(out, line...); len(out)-last >= distance {
			next, rest, _ := bytes.Cut(lines, []byte("\n"))
			out, lines, last = append(append(out, next...), '\n'), rest, len(out)
		}
	}
	return out
}

// comparePlaceholders measures a request with one text, sent for the first time and sent again, and an answer that
// repeats what the model got.
func comparePlaceholders(b *measure.Run, e *redact.Engine, t sample.Text) ([]measure.Figure, error) {
	request, err := json.Marshal(map[string]any{"model": "m",
		"messages": []any{map[string]any{"role": "user", "content": string(t.Text)}}})
	if err != nil {
		return nil, err
	}
	known := newSession()
	sentFirst, err := substitute.Replace(e, nil, known, dialect.Chat, request, substitute.AllowBinaries)
	if err != nil {
		return nil, err
	}
	var sent struct {
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(sentFirst.Body, &sent); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(map[string]any{"choices": []any{map[string]any{
		"message": map[string]any{"role": "assistant", "content": sent.Messages[0].Content}}}})
	if err != nil {
		return nil, err
	}
	var failed error
	mask := func(body []byte) func() {
		return func() {
			_, err := e.Body("application/json", body)
			failed = first(failed, err)
		}
	}
	replace := func(find func() *mapping.Session) func() {
		return func() {
			_, err := substitute.Replace(e, nil, find(), dialect.Chat, request, substitute.AllowBinaries)
			failed = first(failed, err)
		}
	}
	p := race(len(request), b.Span(2*time.Second), mask(request), replace(newSession),
		replace(func() *mapping.Session { return known }))
	q := race(len(answer), b.Span(time.Second), mask(answer),
		func() { substitute.Restore(sentFirst.Placeholders, dialect.Chat, answer) })
	figure := func(what string, rate, masking float64) measure.Figure {
		f := measure.Figure{Name: what + ", 64 KB, " + t.Name, Measured: masking / rate, Unit: "x the time",
			Target: "<= 1.2 x masking", Beside: masking, BesideIs: "MB/s masked"}
		f.Met, f.Ratio = f.Measured <= 1.2, f.Measured
		return f
	}
	return []measure.Figure{
		figure("placeholders in a first request", p.rate(1), p.rate(0)),
		figure("placeholders in a request sent again", p.rate(2), p.rate(0)),
		figure("restoring an answer", q.rate(1), q.rate(0)),
	}, failed
}

// newSession returns a mapping without values.
func newSession() *mapping.Session {
	return mapping.NewSessions(bytes.Repeat([]byte("key of figures. "), 2), time.Now).Find(mapping.Owner{Tenant: "t"})
}

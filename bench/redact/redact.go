// Package redact measures the redaction engine.
package redact

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	list := []measure.Measurement{
		{Name: "clean", Do: measureClean},
		{Name: "registered", Do: measureRegistered},
		{Name: "short", Do: measureShort},
		{Name: "hostile", Do: measureHostile},
		{Name: "dense", Do: measureDense},
		{Name: "placeholders", Do: measurePlaceholders},
		{Name: "bodies", Do: measureBodies},
		{Name: "stream", Do: measureStream},
	}
	return &measure.Subject{Name: "redact", About: "the redaction engine", Measurements: list, Help: `
Measure how fast text is redacted on this machine: on what a model is sent and
answers, on code, on short lines, in pieces, and on texts that are made to be
slow. Each figure stands beside one look through a table at every byte, and
beside one regular expression for each of the plainest rules, on the same text
in the same run. Placeholders are next to masking. It takes about two minutes and
writes nothing.

    go run -C bench . redact [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       taken as by the others; nothing is written there
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . redact --only clean
`}
}

// pace is how long each of several ways took, turn by turn, so that what else
// the machine does falls on all of them alike.
type pace struct {
	size int
	took [][]time.Duration
}

// race runs the ways in turns for as long as d, and at least three times.
func race(size int, d time.Duration, ways ...func()) pace {
	p := pace{size, make([][]time.Duration, len(ways))}
	for from, n := time.Now(), 0; n < 3 || time.Since(from) < d; n++ {
		for k, do := range ways {
			start := time.Now()
			do()
			p.took[k] = append(p.took[k], time.Since(start))
		}
	}
	return p
}

// rate is the median speed of one way, in MB of a million bytes a second.
func (p pace) rate(way int) float64 {
	return float64(p.size) / 1e6 / max(measure.Percentile(p.took[way], 50), 1).Seconds()
}

// glance is the floor: one look through a table at every byte.
func glance(table *[256]bool, text []byte) (n int) {
	for _, c := range text {
		if table[c] {
			n++
		}
	}
	return n
}

// measureClean measures ordinary texts in which nothing is found.
func measureClean(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	var out []measure.Figure
	for _, t := range []struct {
		name string
		make func(seed uint64, size int) []byte
		size int
	}{
		{"model JSON", sample.Chat, 64 << 10}, {"model JSON with \\u escapes", sample.Escaped, 64 << 10}, {"code", sample.Code, 64 << 10},
		{"model JSON", sample.Chat, 4 << 10}, {"code", sample.Code, 4 << 10},
	} {
		text := t.make(1, t.size)[:t.size]
		out = append(out, cleanFigures(b, e, fmt.Sprintf("%s, %d KB, clean", t.name, t.size>>10), text)...)
	}
	return out, nil
}

func cleanFigures(b *measure.Run, e *redact.Engine, name string, text []byte) []measure.Figure {
	var table [256]bool
	for _, c := range []byte("0123456789@:=%.-_") {
		table[c] = true
	}
	rules := naiveRules()
	seen, size := 0, len(text)
	p := race(size, b.Span(2*time.Second),
		func() { seen += len(e.Text(text).Findings) },
		func() { seen += glance(&table, text) })
	// One regular expression after another takes so long that it gets fewer turns.
	slow := race(size, b.Span(time.Second), func() { seen += len(e.Text(text).Findings) }, func() {
		for _, r := range rules {
			if r.Match(text) {
				seen++
			}
		}
	})
	runtime.KeepAlive(seen)
	want := 200.0
	if size < 64<<10 {
		want = 150
	}
	f := measure.Figure{Name: name, Measured: p.rate(0), Unit: "MB/s", Target: fmt.Sprintf(">= %.0f MB/s", want)}.RatioTo(p.rate(1), "one look a byte")
	f.Met = f.Measured >= want
	markFound(&f, e.Text(text), text)
	g := measure.Figure{Name: name + ", by expressions", Measured: slow.rate(0), Unit: "MB/s"}.RatioTo(slow.rate(1), fmt.Sprintf("%d plain expressions", len(rules)))
	return []measure.Figure{f, g}
}

// markFound marks the figure of a text that has nothing to find, where something
// was found.
func markFound(f *measure.Figure, r redact.Result, text []byte) {
	if r.Found() {
		x := r.Findings[0]
		f.Met, f.Note = false, fmt.Sprintf("%d findings in a text that has nothing to find, first %s in %q", len(r.Findings), x.Rule, text[max(0, x.Offset-20):min(len(text), x.Offset+x.Length+20)])
	}
}

// measureShort measures a line of 100 bytes, as a log has them.
func measureShort(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	text, rules := sample.Short(), naiveRules()
	const batch = 1000
	seen := 0
	ours := func() {
		for range batch {
			seen += len(e.Text(text).Findings)
		}
	}
	p := race(batch, b.Span(time.Second), ours, func() {
		for _, r := range rules {
			if r.Match(text) {
				seen++
			}
		}
	})
	per := float64(measure.Percentile(p.took[0], 50).Nanoseconds()) / batch
	f := measure.Figure{Name: "a clean line of 100 bytes", Measured: per, Unit: "ns", Target: "<= 400 ns"}.RatioTo(float64(measure.Percentile(p.took[1], 50).Nanoseconds()), "by expressions")
	f.Met = f.Measured <= 400
	markFound(&f, e.Text(text), text)
	g := measure.Figure{Name: "what it allocates", Measured: allocations(batch, ours), Unit: "allocations", Target: "none"}
	g.Met = g.Measured == 0
	runtime.KeepAlive(seen)
	return []measure.Figure{f, g}, nil
}

// allocations is how often one of n rounds of do allocates: the fewest of five
// tries, as other goroutines allocate too.
func allocations(n int, do func()) float64 {
	fewest := ^uint64(0)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		fewest = min(fewest, after.Mallocs-before.Mallocs)
	}
	return float64(fewest/uint64(n)) + float64(fewest%uint64(n))/float64(n)
}

// slowness is how fast a text was, and which.
type slowness struct {
	name  string
	rate  float64
	floor float64
}

// measureHostile measures texts that are made to be slow, and shows the worst.
func measureHostile(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	var table [256]bool
	seen := 0
	var all []slowness
	for _, t := range sample.Hostile(1 << 20) {
		p := race(len(t.Text), b.Span(200*time.Millisecond), func() { seen += len(e.Text(t.Text).Findings) }, func() { seen += glance(&table, t.Text) })
		all = append(all, slowness{t.Name, p.rate(0), p.rate(1)})
	}
	runtime.KeepAlive(seen)
	return []measure.Figure{worst(fmt.Sprintf("the slowest of %d hostile texts of 1 MB", len(all)), all, 20)}, nil
}

// worst is the figure of the slowest, and names it and those that follow.
func worst(name string, all []slowness, target float64) measure.Figure {
	slices.SortFunc(all, func(a, b slowness) int {
		if a.rate < b.rate {
			return -1
		}
		return 1
	})
	var note strings.Builder
	for i, s := range all[:min(4, len(all))] {
		if i > 0 {
			note.WriteString(", ")
		}
		fmt.Fprintf(&note, "%s %s", s.name, measure.Number(s.rate))
	}
	f := measure.Figure{Name: name, Measured: all[0].rate, Unit: "MB/s", Target: fmt.Sprintf(">= %.0f MB/s", target), Note: note.String()}
	f = f.RatioTo(all[0].floor, "one look a byte")
	f.Met = f.Measured >= target
	return f
}

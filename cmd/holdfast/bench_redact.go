package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

func redactMeasurements() []measurement {
	return []measurement{
		{"clean", (*bench).redactClean},
		{"registered", (*bench).redactRegistered},
		{"short", (*bench).redactShort},
		{"hostile", (*bench).redactHostile},
		{"bodies", (*bench).redactBodies},
		{"stream", (*bench).redactStream},
	}
}

func benchRedact(a *app, args []string) error {
	return a.measure(a.flags("bench redact"), args, redactMeasurements(), func() (bool, error) { return false, nil })
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
	return float64(p.size) / 1e6 / max(at(p.took[way], 50), 1).Seconds()
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

// redactClean measures ordinary texts in which nothing is found.
func (b *bench) redactClean() ([]figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	var out []figure
	for _, t := range []struct {
		name string
		make func(seed uint64, size int) []byte
		size int
	}{
		{"model JSON", sample.Chat, 64 << 10}, {"model JSON with \\u escapes", sample.Escaped, 64 << 10}, {"code", sample.Code, 64 << 10},
		{"model JSON", sample.Chat, 4 << 10}, {"code", sample.Code, 4 << 10},
	} {
		text := t.make(1, t.size)[:t.size]
		out = append(out, b.cleanFigures(e, fmt.Sprintf("%s, %d KB, clean", t.name, t.size>>10), text)...)
	}
	return out, nil
}

func (b *bench) cleanFigures(e *redact.Engine, name string, text []byte) []figure {
	var table [256]bool
	for _, c := range []byte("0123456789@:=%.-_") {
		table[c] = true
	}
	rules := naiveRules()
	seen, size := 0, len(text)
	p := race(size, b.span(2*time.Second),
		func() { seen += len(e.Text(text).Findings) },
		func() { seen += glance(&table, text) })
	// One regular expression after another takes so long that it gets fewer turns.
	slow := race(size, b.span(time.Second), func() { seen += len(e.Text(text).Findings) }, func() {
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
	f := figure{Name: name, Measured: p.rate(0), Unit: "MB/s", Target: fmt.Sprintf(">= %.0f MB/s", want)}.ratioTo(p.rate(1), "one look a byte")
	f.Met = f.Measured >= want
	f.quiet(e.Text(text), text)
	g := figure{Name: name + ", by expressions", Measured: slow.rate(0), Unit: "MB/s"}.ratioTo(slow.rate(1), fmt.Sprintf("%d plain expressions", len(rules)))
	return []figure{f, g}
}

// quiet marks the figure of a text that has nothing to find, where something
// was found.
func (f *figure) quiet(r redact.Result, text []byte) {
	if r.Found() {
		x := r.Findings[0]
		f.Met, f.Note = false, fmt.Sprintf("%d findings in a text that has nothing to find, first %s in %q", len(r.Findings), x.Rule, text[max(0, x.Offset-20):min(len(text), x.Offset+x.Length+20)])
	}
}

// redactShort measures a line of 100 bytes, as a log has them.
func (b *bench) redactShort() ([]figure, error) {
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
	p := race(batch, b.span(time.Second), ours, func() {
		for _, r := range rules {
			if r.Match(text) {
				seen++
			}
		}
	})
	per := float64(at(p.took[0], 50).Nanoseconds()) / batch
	f := figure{Name: "a clean line of 100 bytes", Measured: per, Unit: "ns", Target: "<= 400 ns"}.ratioTo(float64(at(p.took[1], 50).Nanoseconds()), "by expressions")
	f.Met = f.Measured <= 400
	f.quiet(e.Text(text), text)
	g := figure{Name: "what it allocates", Measured: allocations(batch, ours), Unit: "allocations", Target: "none"}
	g.Met = g.Measured == 0
	runtime.KeepAlive(seen)
	return []figure{f, g}, nil
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

// redactHostile measures texts that are made to be slow, and shows the worst.
func (b *bench) redactHostile() ([]figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	var table [256]bool
	seen := 0
	var all []slowness
	for _, t := range sample.Hostile(1 << 20) {
		p := race(len(t.Text), b.span(200*time.Millisecond), func() { seen += len(e.Text(t.Text).Findings) }, func() { seen += glance(&table, t.Text) })
		all = append(all, slowness{t.Name, p.rate(0), p.rate(1)})
	}
	runtime.KeepAlive(seen)
	return []figure{worst(fmt.Sprintf("the slowest of %d hostile texts of 1 MB", len(all)), all, 20)}, nil
}

// worst is the figure of the slowest, and names it and those that follow.
func worst(name string, all []slowness, target float64) figure {
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
		fmt.Fprintf(&note, "%s %s", s.name, number(s.rate))
	}
	f := figure{Name: name, Measured: all[0].rate, Unit: "MB/s", Target: fmt.Sprintf(">= %.0f MB/s", target), Note: note.String()}
	f = f.ratioTo(all[0].floor, "one look a byte")
	f.Met = f.Measured >= target
	return f
}

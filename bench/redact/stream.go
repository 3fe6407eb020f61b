package redact

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// piece is how much of a stream is written at a time, as a model's answer comes.
const piece = 4 << 10

// measureStream measures text that comes in pieces, beside the same text whole,
// and how much memory a long one needs.
func measureStream(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	var out []measure.Figure
	var failed error
	text := sample.Chat(1, 1<<20)
	p := race(len(text), b.Span(2*time.Second), func() { failed = first(failed, flow(e, text)) }, func() { e.Text(text) })
	f := measure.Figure{Name: "model JSON, 1 MB, in pieces of 4 KB", Measured: p.rate(0), Unit: "MB/s"}
	out = append(out, f.RatioTo(p.rate(1), "the same text whole"))
	var all []slowness
	for _, t := range sample.Hostile(1 << 20) {
		p := race(len(t.Text), b.Span(200*time.Millisecond), func() { failed = first(failed, flow(e, t.Text)) }, func() { e.Text(t.Text) })
		all = append(all, slowness{t.Name, p.rate(0), p.rate(1)})
	}
	slow := worst(fmt.Sprintf("the slowest of %d hostile texts of 1 MB in pieces", len(all)), all, 20)
	slow.BesideIs = "the same text whole"
	held, err := measureStreamMemory(b, e)
	return append(out, slow, held), first(failed, err)
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// flow sends a text through a stream.
func flow(e *redact.Engine, text []byte) error {
	s := e.Stream(io.Discard)
	for i := 0; i < len(text); i += piece {
		if _, err := s.Write(text[i:min(len(text), i+piece)]); err != nil {
			return err
		}
	}
	return s.Close()
}

// measureStreamMemory sends 256 MB through one stream, all of it different, and looks
// after each of them at how much of the heap is live.
func measureStreamMemory(b *measure.Run, e *redact.Engine) (measure.Figure, error) {
	const step = 1 << 20
	steps := b.Rounds(256)
	empty, most := heap(), uint64(0)
	s := e.Stream(io.Discard)
	for i := range steps {
		text := sample.Chat(uint64(i), step)
		for k := 0; k < len(text); k += piece {
			if _, err := s.Write(text[k:min(len(text), k+piece)]); err != nil {
				return measure.Figure{}, err
			}
		}
		most = max(most, heap()) // the text is not live any more
	}
	grown := most - min(most, empty)
	if err := s.Close(); err != nil {
		return measure.Figure{}, err
	}
	f := measure.Figure{Name: fmt.Sprintf("what a stream of %d MB holds at most", steps), Measured: float64(grown) / 1024, Unit: "KiB", Target: "<= 256 KiB"}
	f.Met = f.Measured <= 256
	return f, nil
}

// heap is how much is live.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

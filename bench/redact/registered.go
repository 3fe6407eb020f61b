package redact

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// measureRegistered measures what registered secrets cost a text in which none
// of them stands.
func measureRegistered(b *measure.Run) ([]measure.Figure, error) {
	const size = 64 << 10
	text := sample.Chat(1, size)[:size]
	none, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	var out []measure.Figure
	for _, t := range []struct {
		count int
		want  float64
	}{{1, 180}, {20, 150}, {500, 80}} {
		e, err := redact.New(redact.Options{Literals: registered(t.count)})
		if err != nil {
			return nil, err
		}
		seen := 0
		p := race(size, b.Span(time.Second), func() { seen += len(e.Text(text).Findings) }, func() { seen += len(none.Text(text).Findings) })
		runtime.KeepAlive(seen)
		f := measure.Figure{Name: fmt.Sprintf("model JSON, 64 KB, %d registered", t.count), Measured: p.rate(0), Unit: "MB/s", Target: fmt.Sprintf(">= %.0f MB/s", t.want)}.RatioTo(p.rate(1), "none registered")
		f.Met = f.Measured >= t.want
		markFound(&f, e.Text(text), text)
		out = append(out, f)
	}
	return out, nil
}

// registered returns n secrets as people and programs make them: base64,
// hexadecimal, and a sentence.
func registered(n int) []holdfast.Secret {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	of := func(chars string, n int) string {
		s := make([]byte, n)
		for i := range s {
			s[i] = chars[r.IntN(len(chars))]
		}
		return string(s)
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var list []holdfast.Secret
	for i := range n {
		switch i % 3 {
		case 0:
			list = append(list, holdfast.NewSecret(of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"+letters+"0123456789+/", 32)))
		case 1:
			list = append(list, holdfast.NewSecret(of("0123456789abcdef", 40)))
		default:
			list = append(list, holdfast.NewSecret(of(letters, 5)+" "+of(letters, 7)+"-"+of(letters, 6)+"!"))
		}
	}
	return list
}

package redact

import (
	"io"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// BenchmarkHostile stands every hostile text whole beside the same in pieces
// of 4 KiB.
func BenchmarkHostile(b *testing.B) {
	e := newEngine(b)
	for _, t := range sample.Hostile(256 << 10) {
		b.Run(t.Name+"/whole", func(b *testing.B) {
			b.SetBytes(int64(len(t.Text)))
			for b.Loop() {
				e.Text(t.Text)
			}
		})
		pieces := every(t.Text, 4096)
		b.Run(t.Name+"/pieces", func(b *testing.B) {
			b.SetBytes(int64(len(t.Text)))
			for b.Loop() {
				s := e.Stream(io.Discard)
				for _, p := range pieces {
					if _, err := s.Write(p); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

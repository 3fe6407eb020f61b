package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/guess"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// cleanText is 8 MB of what a model is sent and answers and of code, in pieces
// of 128 KB, in which nothing is secret or personal.
func cleanText() [][]byte {
	var all [][]byte
	for seed := range uint64(32) {
		all = append(all, sample.Chat(seed, 1<<17), sample.Code(seed, 1<<17))
	}
	return all
}

// TestCleanTextStaysClean wants at most one finding in 8 MB of clean text by
// what is certain, and at most eight with everything that is only probable.
func TestCleanTextStaysClean(t *testing.T) {
	guessing, err := New(Options{Probable: guess.Everything})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		e    *Engine
		most int
	}{{"clean text", newEngine(t), 1}, {"clean text, probable", guessing, 8}} {
		n := 0
		for _, s := range cleanText() {
			for _, f := range c.e.Text(s).Findings {
				n++
				t.Logf("%s: %s in %q", c.name, f.Rule, s[max(0, f.Offset-40):min(len(s), f.Offset+f.Length+12)])
			}
		}
		if n > c.most {
			t.Errorf("%s: %d findings in 8 MB, want at most %d", c.name, n, c.most)
		}
	}
}

package redact

import (
	"testing"

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

// TestCleanTextStaysClean wants at most one finding in 8 MB of clean text.
func TestCleanTextStaysClean(t *testing.T) {
	e, n := newEngine(t), 0
	for _, s := range cleanText() {
		for _, f := range e.Text(s).Findings {
			n++
			t.Logf("%s in %q", f.Rule, s[max(0, f.Offset-40):min(len(s), f.Offset+f.Length+12)])
		}
	}
	if n > 1 {
		t.Errorf("%d findings in 8 MB, want at most 1", n)
	}
}

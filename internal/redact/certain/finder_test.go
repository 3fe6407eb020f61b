package certain

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// Whatever the tables hold, the end of every prefix is looked at with every
// byte that may stand behind it.
func TestFinderStopsAtEveryPrefix(t *testing.T) {
	for _, p := range token.Prefixes() {
		if char.IndexByte("_-.", p.Text[len(p.Text)-1]) < 0 {
			continue
		}
		for c := range 256 {
			if p.Then != "" && byte(c) != p.Then[0] || p.Then == "" && !p.Holds(byte(c)) {
				continue
			}
			s := append([]byte("x "+p.Text), byte(c), ' ')
			at := len("x "+p.Text) - 1
			if f := newFinder(s); f.next(at) != at {
				t.Errorf("%q is passed over", s)
			}
		}
	}
}

// The finder is the plain loop but for what stands beside: each place that it
// returns is a trigger, in order, whatever place the search goes on from.
func TestFinderReturnsTriggersInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	heads := []string{"-us12", "JQQJ99", "_KEY ", "by ", "Basic ", "AKIA", "eyJ", "--to", " BEGIN ", "=", ":", "@", "%40", "sk-", "x", "", "\x1b[1;32m"}
	for range 2000 {
		s := slices.Concat(digitTexts(r, 1+r.IntN(40)), []byte(heads[r.IntN(len(heads))]), digitTexts(r, r.IntN(80)))
		f := newFinder(s)
		for i := 0; i < len(s); {
			n := f.next(i)
			if n < i || n > len(s) || n < len(s) && !trigger[s[n]] {
				t.Fatalf("next(%d) of %q is %d", i, s, n)
			}
			fresh := newFinder(s)
			if k := fresh.next(i); k != n {
				t.Fatalf("next(%d) of %q is %d, then %d", i, s, n, k)
			}
			i = n + 1 + r.IntN(3)
		}
	}
}

package dissimilar_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
	"github.com/holdfast-dev/holdfast/ledger"
)

// judged judges the whole book, anew each time.
func (b *book) judged() {
	v := dissimilar.New(dissimilar.Options{Runtime: runtimeID})
	for _, name := range b.order {
		for _, l := range b.leaves[name] {
			v.Leaf(dissimilar.Leaf{Tenant: name, Seq: l.Seq, Record: l.Record, Part: l.Part})
		}
	}
}

// TestAttackCostOfOneRecord: one record of at most a MiB must not keep a
// verifier busy. Each costs about sixteen times what one of a
// sixteenth does.
func TestAttackCostOfOneRecord(t *testing.T) {
	names := func(n int, of string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("a:%s%05d", of, i))
		}
		return out
	}
	for name, c := range map[string]struct {
		n    int
		make func(b *book, n int)
	}{
		"permissions": {8_000, func(b *book, n int) {
			b.whole(func(g *ledger.Begin) { g.Required, g.Granted = names(n, "r"), names(n, "g") })
		}},
		"draws_of_one_counter": {1_600, func(b *book, n int) {
			g, seq := b.begin(func(g *ledger.Begin) {
				for range n {
					g.Draws = append(g.Draws, ledger.Draw{Key: "k", Resource: "r", Amount: 0, Limit: math.MaxInt64, Name: "n"})
				}
			})
			b.end(g, seq, func(e *ledger.Entry) {
				for i := range e.Uses {
					e.Uses[i].Before = 7
				}
			})
		}},
		"deep_part":   {1 << 20, func(b *book, n int) { b.propose("rv_d", b.id(), strings.Repeat("[", n)) }},
		"wide_part":   {1 << 15, func(b *book, n int) { b.propose("rv_d", b.id(), "["+strings.Repeat("1,", n)+"1]") }},
		"long_number": {1 << 18, func(b *book, n int) { b.propose("rv_d", b.id(), strings.Repeat("9", n)) }},
		"huge_exp":    {1 << 20, func(b *book, n int) { b.propose("rv_d", b.id(), "1e"+strings.Repeat("9", n)) }},
		"many_members": {8_000, func(b *book, n int) {
			var s strings.Builder
			for i := range n {
				fmt.Fprintf(&s, `,"k%d":1`, i)
			}
			b.propose("rv_d", b.id(), "{"+s.String()[1:]+"}")
		}},
		"escapes": {50_000, func(b *book, n int) { b.propose("rv_d", b.id(), `"`+strings.Repeat(`\ud83d\ude00`, n)+`"`) }},
	} {
		t.Run(name, func(t *testing.T) {
			testgrowth.Linear(t, c.n, func(n int) func() {
				b := newBook(t)
				c.make(b, n)
				return b.judged
			})
		})
	}
}

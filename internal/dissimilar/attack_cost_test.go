package dissimilar_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/dissimilar"
	"github.com/holdfast-dev/holdfast/ledger"
)

func (b *book) cost() time.Duration {
	v := dissimilar.New(dissimilar.Options{Runtime: runtimeID})
	begun := time.Now()
	for _, name := range b.order {
		for _, l := range b.leaves[name] {
			v.Leaf(dissimilar.Leaf{Tenant: name, Seq: l.Seq, Record: l.Record, Part: l.Part})
		}
	}
	return time.Since(begun)
}

func (b *book) bytes() (n int) {
	for _, l := range b.leaves {
		for _, s := range l {
			n += len(s.Record) + len(s.Part)
		}
	}
	return n
}

// One record of at most a MiB must not keep a verifier busy.
func TestAttackCostOfOneRecord(t *testing.T) {
	names := func(n int, of string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("a:%s%05d", of, i))
		}
		return out
	}
	for name, make := range map[string]func(*book){
		"permissions": func(b *book) {
			b.whole(func(g *ledger.Begin) { g.Required, g.Granted = names(6_000, "r"), names(6_000, "g") })
		},
		"draws_of_one_counter": func(b *book) {
			g, seq := b.begin(func(g *ledger.Begin) {
				for range 4_000 {
					g.Draws = append(g.Draws, ledger.Draw{Key: "k", Resource: "r", Amount: 0, Limit: math.MaxInt64, Name: "n"})
				}
			})
			b.end(g, seq, func(e *ledger.Entry) {
				for i := range e.Uses {
					e.Uses[i].Before = 7
				}
			})
		},
		"deep_part":   func(b *book) { b.propose("rv_d", b.id(), strings.Repeat("[", 4<<20)) },
		"wide_part":   func(b *book) { b.propose("rv_d", b.id(), "["+strings.Repeat("1,", 1<<18)+"1]") },
		"long_number": func(b *book) { b.propose("rv_d", b.id(), strings.Repeat("9", 4<<20)) },
		"huge_exp":    func(b *book) { b.propose("rv_d", b.id(), "1e"+strings.Repeat("9", 1<<20)) },
		"many_members": func(b *book) {
			var s strings.Builder
			for i := range 40_000 {
				fmt.Fprintf(&s, `,"k%d":1`, i)
			}
			b.propose("rv_d", b.id(), "{"+s.String()[1:]+"}")
		},
		"escapes": func(b *book) { b.propose("rv_d", b.id(), `"`+strings.Repeat(`\ud83d\ude00`, 300_000)+`"`) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			make(b)
			took := b.cost()
			t.Logf("%d bytes in %v", b.bytes(), took)
			if took > 2*time.Second {
				t.Errorf("%d bytes take %v", b.bytes(), took)
			}
		})
	}
}

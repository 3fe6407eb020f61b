package dissimilar_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/ledger"
)

// feed gives leaves to a verifier as they are, without a tree around them.
func feed(remember int, leaves ...ledger.Stored) (dissimilar.Result, []dissimilar.Finding) {
	var found []dissimilar.Finding
	v := dissimilar.New(dissimilar.Options{Remember: remember, Found: func(f dissimilar.Finding) { found = append(found, f) }})
	for i, l := range leaves {
		v.Leaf(dissimilar.Leaf{Tenant: l.Tenant, Seq: int64(i), Record: l.Record, Part: l.Part})
	}
	return v.Result(), found
}

// What the tree's own verification finds only among the newest crossings is
// found here among all that are remembered.
func TestOrderOfACrossing(t *testing.T) {
	b := newBook(t)
	g, seq := b.whole()
	b.whole()
	ls := b.leaves["acme"]
	begin, entry := ls[0], ls[1]
	if _, found := feed(0, ls...); len(found) != 0 {
		t.Fatal(found[0].String())
	}
	_ = g
	_ = seq
	for name, leaves := range map[string][]ledger.Stored{
		"begun_twice":           {begin, begin, entry},
		"entered_twice":         {begin, entry, entry},
		"begun_after_its_entry": {begin, entry, begin},
		"entered_before_begun":  {entry, begin},
		"of_another_tenant":     {withTenant(begin, "beta"), withTenant(entry, "beta")},
		"not_json":              {{Place: begin.Place, Record: []byte(`{"v":1`)}},
		"nothing":               {{Place: begin.Place}},
		"null":                  {{Place: begin.Place, Record: []byte(`null`)}},
		"another_version":       {{Place: begin.Place, Record: []byte(`{"v":2,"kind":"event","id":"x"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, found := feed(0, leaves...); len(found) == 0 {
				t.Fatal("nobody noticed")
			}
		})
	}
}

func withTenant(s ledger.Stored, tenant string) ledger.Stored {
	s.Tenant = tenant
	return s
}

// What is forgotten is counted as undecidable, and never found wrong.
func TestForgettingIsCounted(t *testing.T) {
	b := newBook(t)
	for range 300 {
		b.whole(func(g *ledger.Begin) {
			g.Draws = []ledger.Draw{{Key: fmt.Sprint("k", b.n), Resource: "x", Amount: 1, Limit: 1, Name: "n"}}
			g.ExactHash, g.Key = sha([]byte(fmt.Sprint(b.n))), sha([]byte(fmt.Sprint(b.n)))
		})
	}
	r, found := feed(16, b.leaves["acme"]...)
	for _, f := range found {
		t.Error(f.String())
	}
	forgot := int64(0)
	for _, c := range r.Checks {
		if c.Check == dissimilar.K3Room.String() || c.Check == dissimilar.K5Pair.String() {
			forgot += c.Undecidable
		}
	}
	if forgot < 200 {
		t.Errorf("%d checks were counted as undecidable", forgot)
	}
}

// Whatever stands in a leaf, reading it ends and nothing falls over.
func FuzzLeaf(f *testing.F) {
	b := newBook(f)
	ordinary(b)
	for _, l := range b.leaves["acme"] {
		f.Add(l.Record, l.Part)
	}
	f.Fuzz(func(t *testing.T, record, part []byte) {
		v := dissimilar.New(dissimilar.Options{Remember: 8})
		for i := range int64(3) {
			v.Leaf(dissimilar.Leaf{Tenant: "acme", Seq: i, Record: record, Part: part})
		}
		v.Result()
	})
}

package kernel_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// Of what is weakened a crossing tells what concerns it: the general ones, and
// its own contract's. The status has them all.
func TestWeakeningsAreOfTheCrossing(t *testing.T) {
	all := []string{"unsafe.x: general", "boundaries.walls: low", "boundaries.walls: many"}
	w := newWorld(t, "", func(c *kernel.Config, w *world) {
		p := *w.policy
		p.Weakened = all
		p.Contracts = slices.Clone(p.Contracts)
		for i := range p.Contracts {
			switch p.Contracts[i].Boundary {
			case "test/low":
				p.Contracts[i].Weakened = all[1]
			case "test/many/*":
				p.Contracts[i].Weakened = all[2]
			}
		}
		c.Policy = &p
	})
	for boundary, want := range map[string][]string{
		"test/low":    {all[0], all[1]},
		"test/many/x": {all[0], all[2]},
		"test/medium": {all[0]},
		"test/absent": {all[0]},
	} {
		out, _ := w.cross(w.req(boundary, `{}`))
		if !slices.Equal(out.Weakened, want) {
			t.Errorf("%s tells %q, want %q", boundary, out.Weakened, want)
		}
		entries := w.entries(holdfast.Local)
		if e := entries[len(entries)-1]; !slices.Equal(e.Weakened, want) {
			t.Errorf("%s is recorded with %q, want %q", boundary, e.Weakened, want)
		}
	}
	if got := w.k.Policy().Weakened; !slices.Equal(got, all) {
		t.Errorf("the policy tells %q", got)
	}
}

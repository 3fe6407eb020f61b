package story

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Each agent stands once, beneath whoever started it, however odd the parents are.
func TestTree(t *testing.T) {
	var as []holdfast.Agent
	for _, s := range []string{"local b  b2", "local b/x b b", "local b/x1 b b/x", "local b/y b b/gone", "local c/z c c", "local d/1 d d/2", "local d/2 d d/1", "local d/3 d d/3", "other b/x b b"} {
		f := strings.Split(s, " ")
		as = append(as, holdfast.Agent{Tenant: f[0], Name: f[1], Owner: f[2], Parent: f[3]})
	}
	var got []string
	for _, b := range Tree(as) {
		got = append(got, b.Tenant[:1]+strings.Repeat(".", b.Depth)+b.Short())
	}
	if want := []string{"lb", "l.x", "l..x1", "l.y", "l.z", "l.1", "l..2", "l.3", "o.x"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

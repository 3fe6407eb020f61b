package process

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestFiltersAreCompiledOnce: one for each language and narrowing, however that
// is spelt; another narrowing has another; a name that no kernel has is refused
// each time; and what is kept is bounded.
func TestFiltersAreCompiledOnce(t *testing.T) {
	t.Parallel()
	f, l := &filters{}, installed(t, sandbox.Static)
	get := func(narrow ...string) string {
		t.Helper()
		code, err := f.filter(l, narrow)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%p", code)
	}
	whole := get()
	if get() != whole {
		t.Error("compiled twice")
	}
	two := get("openat", "clone")
	if two == whole || get("clone", "openat", "clone") != two || get("openat") == two {
		t.Error("a narrowing is not what its names are")
	}
	p, err := l.Allows.Without([]string{"openat", "clone"})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := f.filter(l, []string{"openat", "clone"}); err != nil || !slices.Equal(kept, fresh) {
		t.Error("what is kept is not what is compiled")
	}
	for range 2 {
		if _, err := f.filter(l, []string{"opnat"}); holdfast.KindOf(err) != holdfast.KindProtocol {
			t.Error(err)
		}
	}
	narrowed := 0
	for _, r := range l.Allows.Rules() {
		if r.Action != sandbox.RuleAllow {
			continue
		}
		if get(r.Call); len(f.made) > maxFilters {
			t.Fatalf("%d are kept", len(f.made))
		}
		narrowed++
	}
	if narrowed <= maxFilters {
		t.Errorf("only %d were asked for", narrowed)
	}
}

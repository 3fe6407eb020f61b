package testgrowth

import (
	"fmt"
	"slices"
	"testing"
)

// failed notes that a test failed, without failing.
type failed struct {
	testing.TB
	said string
}

func (f *failed) Helper()                           {}
func (f *failed) Errorf(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

// TestLinearTellsThemApart: what looks at each unit once passes, what looks at
// each pair fails.
func TestLinearTellsThemApart(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(l []int)
		good bool
	}{
		"once":   {func(l []int) { _ = slices.Contains(l, -1) }, true},
		"sorted": {func(l []int) { slices.Sort(slices.Clone(l)) }, true},
		"pairs": {func(l []int) {
			for i := range l {
				_ = slices.Contains(l, -1-i)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := 1 << 20
			if !c.good {
				n = 1 << 12
			}
			f := &failed{TB: t}
			Linear(f, n, func(n int) func() {
				l := make([]int, n)
				for i := range l {
					l[i] = n - i
				}
				return func() { c.run(l) }
			})
			if c.good != (f.said == "") {
				t.Errorf("said %q", f.said)
			}
		})
	}
}

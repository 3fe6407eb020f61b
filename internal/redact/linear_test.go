package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
)

// checkLinear fails if a run over n bytes costs far more than 16 times what a run over a
// sixteenth of them costs.
func checkLinear(t *testing.T, what string, n int, run func(n int)) {
	t.Helper()
	f := &namedTest{TB: t, what: what}
	testgrowth.Linear(f, n, func(n int) func() { return func() { run(n) } })
}

// namedTest says before each failure what failed.
type namedTest struct {
	testing.TB
	what string
}

func (n *namedTest) Errorf(format string, args ...any) {
	n.Helper()
	n.TB.Errorf("%q: "+format, append([]any{n.what}, args...)...)
}

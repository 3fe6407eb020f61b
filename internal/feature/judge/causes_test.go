package judge

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// The log has the cause beneath a letter, which the letter's own text leaves out.
func TestCausesAreForTheLog(t *testing.T) {
	inner := errors.New("exit status 7: no model here")
	letter := &holdfast.Error{Kind: holdfast.KindConfidence, Why: "the program failed", Err: inner}
	for want, err := range map[string]error{
		"exit status 7: no model here":                                                                inner,
		"ConfidenceError: the program failed: exit status 7: no model here":                           letter,
		"ask: ConfidenceError: the program failed: exit status 7: no model here":                      fmt.Errorf("ask: %w", letter),
		"ConfidenceError: outside: ConfidenceError: the program failed: exit status 7: no model here": &holdfast.Error{Kind: holdfast.KindConfidence, Why: "outside", Err: letter},
	} {
		if got := causes(err); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// Package usage makes and explains errors that a person must fix: in a file, a flag or an environment.
package usage

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Errorf is HintErrorf without a hint.
func Errorf(format string, args ...any) error { return HintErrorf("", format, args...) }

// HintErrorf makes the error a person reads: kind UsageError, because somebody has
// to change a file or a flag.
func HintErrorf(hint, format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf(format, args...), Hint: hint}
}

// Explain returns what a person should read of an error.
func Explain(err error) (why, hint string) {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return e.Why, e.Hint
	}
	return err.Error(), ""
}

package posture

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
)

// FindBreak returns the news in an act's error: its code tried to escape, or was ended without
// trying that. Both are nil for any other error.
func FindBreak(err error) (escape *Escape, violation *Violation) {
	if errors.As(err, &escape) {
		return escape, nil
	}
	errors.As(err, &violation)
	return nil, violation
}

// IsNews reports whether an act's error must not be lost behind another.
func IsNews(err error) bool {
	e, v := FindBreak(err)
	return e != nil || v != nil
}

// Tried says in one sentence that the code tried the call.
func (c Call) Tried() string { return "the code tried to leave its sandbox with " + c.Words() }

// Words names the call as the ledger may hold it: whatever a tier calls it, the words are short
// and plain.
func (c Call) Words() string {
	c.Name, c.Arch = visible.Shorten(c.Name), visible.Shorten(c.Arch)
	return c.String()
}

// Data returns the call as an event holds it. Arguments are hexadecimal: a reader's numbers end
// at 2^53.
func (c Call) Data() map[string]any {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = fmt.Sprintf("0x%x", a)
	}
	return map[string]any{"nr": c.Nr, "name": visible.Shorten(c.Name), "arch": visible.Shorten(c.Arch), "args": args}
}

package sandbox

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Tier is a kind of sandbox, the stronger the greater. The zero value is none,
// in which nothing runs.
type Tier int8

// The tiers (spec 000 "Sandbox types").
const (
	TierNone Tier = iota
	TierProcess
	TierContainer
	TierVM
)

// String returns process, container, vm or none.
func (t Tier) String() string {
	switch t {
	case TierProcess:
		return "process"
	case TierContainer:
		return "container"
	case TierVM:
		return "vm"
	}
	return "none"
}

// MarshalText writes the word of String.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// ParseTier reads a word of String; none is not among them.
func ParseTier(s string) (Tier, bool) {
	for _, t := range []Tier{TierProcess, TierContainer, TierVM} {
		if t.String() == s {
			return t, true
		}
	}
	return TierNone, false
}

// Evidence is what is known of the work that code does; nil is not known.
type Evidence struct {
	Entropy *float64 // predicted, in the units of spec 000
	Novelty *float64 // 0 to 1
	Trust   *holdfast.Level
}

// Choose is the policy of spec 000 "Sandbox selection policy". With no evidence
// at all the process tier is enough; where there is some, what is missing counts
// as its worst.
func Choose(e Evidence) Tier {
	if e.Entropy == nil && e.Novelty == nil && e.Trust == nil {
		return TierProcess
	}
	switch {
	case e.Entropy == nil || e.Novelty == nil, !(*e.Entropy <= 30), !(*e.Novelty <= 0.8):
		return TierVM
	case e.Trust == nil, *e.Entropy > 10, *e.Trust == holdfast.Baseline:
		return TierContainer
	}
	return TierProcess
}

// UnmarshalText reads a word of String; an unknown one is an error and leaves
// none.
func (t *Tier) UnmarshalText(b []byte) error {
	var ok bool
	if *t, ok = ParseTier(string(b)); !ok && string(b) != "none" {
		return fmt.Errorf("unknown tier %q (process, container or vm)", b)
	}
	return nil
}

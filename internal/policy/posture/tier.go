package posture

import (
	"fmt"
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

// UnmarshalText reads a word of String; an unknown one is an error and leaves
// none.
func (t *Tier) UnmarshalText(b []byte) error {
	var ok bool
	if *t, ok = ParseTier(string(b)); !ok && string(b) != "none" {
		return fmt.Errorf("unknown tier %q (process, container or vm)", b)
	}
	return nil
}

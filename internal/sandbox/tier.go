package sandbox

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

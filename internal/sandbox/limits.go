package sandbox

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Limits are what a tier gives a run that asks for nothing, and the most that it
// gives one that asks (D21a).
type Limits struct {
	Timeout, MaxTimeout   time.Duration // by the wall clock
	MemoryMB, MaxMemoryMB int64
	Cores, MaxCores       int
}

// LimitsOf returns a tier's limits. The container's are those of spec 000's own
// command line (two processors, 4 GB). The VM's are the same but for memory, which
// is a guest's own: by default it fits into the guest that is made by default. No
// tier is as the least.
func LimitsOf(t posture.Tier) Limits {
	most := Limits{Timeout: 300 * time.Second, MaxTimeout: time.Hour, MemoryMB: 4096, MaxMemoryMB: 4096, Cores: 2, MaxCores: 2}
	switch t {
	case posture.TierContainer:
		return most
	case posture.TierVM:
		most.MemoryMB, most.MaxMemoryMB = 512, 8192
		return most
	}
	return Limits{Timeout: DefaultTimeout, MaxTimeout: MaxTimeout, MemoryMB: DefaultMemoryMB, MaxMemoryMB: MaxMemoryMB, Cores: 1, MaxCores: MaxCores}
}

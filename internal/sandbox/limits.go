package sandbox

import "time"

// Limits are what a tier gives a run that asks for nothing, and the most that it
// gives one that asks (D21a).
type Limits struct {
	Timeout, MaxTimeout   time.Duration // by the wall clock
	MemoryMB, MaxMemoryMB int64
	Cores, MaxCores       int
}

// LimitsOf returns a tier's limits. The container's are those of spec 000's own
// command line (two processors, 4 GB), and the VM's are the same; no tier is as
// the least.
func LimitsOf(t Tier) Limits {
	if t == TierContainer || t == TierVM {
		return Limits{Timeout: 300 * time.Second, MaxTimeout: time.Hour, MemoryMB: 4096, MaxMemoryMB: 4096, Cores: 2, MaxCores: 2}
	}
	return Limits{Timeout: DefaultTimeout, MaxTimeout: MaxTimeout, MemoryMB: DefaultMemoryMB, MaxMemoryMB: MaxMemoryMB, Cores: 1, MaxCores: MaxCores}
}

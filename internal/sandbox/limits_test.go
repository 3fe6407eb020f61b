package sandbox

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// TestLimitsByTier: a container's and a VM's runs may take longer and more (D21a),
// and without a tier there is no more than the process tier's.
func TestLimitsByTier(t *testing.T) {
	for tier, want := range map[posture.Tier]Limits{
		posture.TierNone:      {10 * time.Second, 30 * time.Second, 256, 512, 1, 2},
		posture.TierProcess:   {10 * time.Second, 30 * time.Second, 256, 512, 1, 2},
		posture.TierContainer: {300 * time.Second, time.Hour, 4096, 4096, 2, 2},
		posture.TierVM:        {300 * time.Second, time.Hour, 512, 8192, 2, 2},
	} {
		if got := LimitsOf(tier); got != want {
			t.Errorf("%v: %+v", tier, got)
		}
		base := Spec{ID: "x", Language: "python3", Code: []byte("1"), Tier: tier}
		s, err := Check(base, noSecret)
		if err != nil || s.Timeout != want.Timeout || s.MemoryMB != want.MemoryMB || s.CPUQuota != time.Duration(want.Cores)*s.CPUPeriod {
			t.Errorf("%v: %+v, %v", tier, s, err)
		}
		for ask, ok := range map[*Spec]bool{
			{Timeout: want.MaxTimeout}: true, {Timeout: want.MaxTimeout + 1}: false, {MemoryMB: want.MaxMemoryMB}: true, {MemoryMB: want.MaxMemoryMB + 1}: false,
			{CPUQuota: time.Duration(want.MaxCores) * DefaultPeriod}: true, {CPUQuota: time.Duration(want.MaxCores)*DefaultPeriod + 1}: false,
		} {
			s := base
			s.Timeout, s.MemoryMB, s.CPUQuota = ask.Timeout, ask.MemoryMB, ask.CPUQuota
			if _, err := Check(s, noSecret); ok != (err == nil) || !ok && holdfast.KindOf(err) != holdfast.KindLimit {
				t.Errorf("%v: %+v: %v", tier, *ask, err)
			}
		}
	}
}

func noSecret(string) bool { return false }

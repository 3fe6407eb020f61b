package kernel

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
)

// lookup finds the contract in force for a boundary, or nil.
func (k *Kernel) lookup(pol *policy, boundary string) *contract.Contract {
	if c := k.catalog.Find(pol.contracts, boundary); c != nil {
		return c
	}
	return pol.contracts.Under(boundary, func(name string) bool { return k.redact.Text([]byte(name)).Found() })
}

// Contract returns the contract in force for a boundary.
func (k *Kernel) Contract(boundary string) (holdfast.Contract, bool) {
	c := k.lookup(k.policy.Load(), boundary)
	if c == nil {
		return holdfast.Contract{}, false
	}
	return c.Contract, true
}

// governs is what an approval is bound to beside the request: the policy, and
// for a tool that was observed what it said of itself (D11, D37).
func (j *judgement) governs() string { return governs(j.pol, j.contract) }

func governs(pol *policy, c *contract.Contract) string {
	if c == nil || c.Pin == "" {
		return pol.Version
	}
	sum := sha256.Sum256([]byte(pol.Version + " " + c.Pin))
	return hex.EncodeToString(sum[:])
}

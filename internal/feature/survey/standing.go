// Package survey finds what is used, reserved and left under each limit of a budget.
package survey

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxAgentName bounds the name of an agent in a message: an agent's, and the ID of a sub-agent.
const maxAgentName = 64 + 1 + 64

// How budgets stand is kept nowhere of its own: a counter holds what was used and
// what is reserved together, and the begins without an entry say how much of it is
// reserved. Both are read in one transaction, so that nothing is counted twice or
// not at all.

// MaxStandings bounds the rows of one Standings.
const MaxStandings = 500

// Standing is how one counter stands under the limit that holds for it.
type Standing struct {
	Tenant string       `json:"tenant_id"`
	Scope  budget.Scope `json:"scope"`
	// Of is whose counter it is: the scope's value, AGENT/ID of one within an agent.
	// It is empty of a limit that each such value has a counter of its own for, where
	// nobody has drawn on one yet. Agent is whose session it is.
	Of    string `json:"of,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Resource says what is counted, money in millionths of a dollar, and Boundary
	// where; empty is everywhere.
	Resource holdfast.Resource `json:"resource"`
	Boundary string            `json:"boundary,omitempty"`
	// Limit is what there is in the window; Granted is how much of it people have
	// added.
	Limit   int64 `json:"limit"`
	Granted int64 `json:"granted,omitempty"`
	// Used is what was charged, Reserved what crossings under way hold beside it, and
	// Left what neither takes; null is unknown, and Unknown says why.
	Used     *int64 `json:"used"`
	Reserved *int64 `json:"reserved"`
	Left     *int64 `json:"left"`
	Unknown  string `json:"unknown,omitempty"`
	// Ends is when the window ends, and all of it is there again; zero is never.
	Ends time.Time `json:"ends,omitzero"`
	// Exceed is what exceeding it brings, and Source who says so.
	Exceed budget.Exceed `json:"exceed"`
	Source string        `json:"source,omitempty"`
}

// Whose is the owner for people: "agent ada", "session s of ada", "each agent".
func (s *Standing) Whose() string {
	switch {
	case s.Of == "":
		return "each " + string(s.Scope)
	case s.Agent != "":
		return string(s.Scope) + " " + s.Of + " of " + s.Agent
	}
	return string(s.Scope) + " " + s.Of
}

// Share is how much of the limit is used or reserved, 0 to 1; ok is false where
// nobody knows.
func (s *Standing) Share() (share float64, ok bool) {
	switch {
	case s.Left == nil:
		return 1, false
	case s.Limit <= 0:
		return 1, true
	}
	return 1 - float64(*s.Left)/float64(s.Limit), true
}

// Standings is how budgets stand at one moment.
type Standings struct {
	At     time.Time `json:"at"`
	Policy string    `json:"policy"`
	// Rows are those of which something is unknown, then the tightest first, at most
	// MaxStandings; More is how many others there are.
	Rows []Standing `json:"budgets"`
	More int        `json:"more,omitempty"`
}

// Ask selects budgets.
type Ask struct {
	Tenant string // empty is every tenant
	// Agent is one with tokens of its own, or AGENT/ID of one within it: those that
	// its requests draw on, of intents and chains as far as its newest records tell.
	Agent string
	// Live leaves out what cannot refuse next: that on which nobody draws, and
	// sessions and chains that nobody goes on with.
	Live bool
}

// Read returns the budgets of a policy at a time. For an unknown agent the error is
// kernel.ErrNotFound.
func Read(tx kernel.Reader, p *kernel.Policy, ask Ask, now time.Time) (Standings, error) {
	out := Standings{At: now.UTC(), Policy: p.Version, Rows: []Standing{}}
	heads, err := tx.Heads()
	if err != nil {
		return out, err
	}
	sizes := map[string]int64{cmp.Or(ask.Tenant, holdfast.Local): 0}
	for _, h := range heads {
		if h.Tenant == ledger.CheckpointsTenant || h.Tenant == holdfast.Unverified || ask.Tenant != "" && h.Tenant != ask.Tenant {
			continue
		}
		sizes[h.Tenant] = h.Size
	}
	for tenant, size := range sizes {
		s := survey{tx: tx, p: p, ask: ask, now: now, tenant: tenant, out: &out, shown: map[string]bool{}, covered: map[string]bool{}}
		if err := s.all(size); err != nil {
			return out, err
		}
	}
	out.cut()
	return out, nil
}

// cut leaves the tightest.
func (s *Standings) cut() {
	slices.SortFunc(s.Rows, tighter)
	if more := len(s.Rows) - MaxStandings; more > 0 {
		s.Rows, s.More = s.Rows[:MaxStandings], s.More+more
	}
}

func tighter(a, b Standing) int {
	x, knownA := a.Share()
	y, knownB := b.Share()
	switch {
	case !knownA && knownB:
		return -1
	case knownA && !knownB:
		return 1
	}
	return cmp.Or(cmp.Compare(y, x), strings.Compare(a.Tenant, b.Tenant), budget.Narrower(budget.Limit{Scope: a.Scope}, budget.Limit{Scope: b.Scope}),
		strings.Compare(a.Of, b.Of), strings.Compare(a.Agent, b.Agent), cmp.Compare(a.Resource, b.Resource), strings.Compare(a.Boundary, b.Boundary),
		a.Ends.Compare(b.Ends), strings.Compare(a.Source, b.Source))
}

package kernel

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Policy is everything that governs, as one immutable value: a reload makes a
// new one and swaps it whole (D49). Whoever makes it owns it until it is given
// to the kernel; after that nobody changes it.
type Policy struct {
	// Version is the SHA-256 over configuration and rules, 64 hex digits.
	// Approvals are bound to it (D11).
	Version string
	// Contracts are the boundaries that configuration lists. A pattern ends
	// in "/*"; an exact name wins over a pattern, a longer pattern over a
	// shorter one.
	Contracts []holdfast.Contract
	// Roles maps a role to its permissions. "x:*" grants every permission
	// of scheme x.
	Roles map[string][]string
	// Kinds are the kinds of agent; an unknown kind has two iterations (D41).
	Kinds map[string]AgentKind
	// Limits and Rates are what K3 counts.
	Limits []budget.Limit
	Rates  []budget.RateLimit
	// Prices is what things cost; nil prices nothing, and refuses what is priced
	// by its model.
	Prices *budget.Prices
	// Rules is the constitution; nil has no rules.
	Rules Rules
	// Facts fetches what rules name; nil fetches nothing, and the rules fail.
	Facts FactSource
	// Risks are patterns that give risks, in their order.
	Risks []review.Pattern
	// Sections are those of the features, by name, for their Prepare.
	Sections map[string]any
	// ReplayFor is how long a settled result can be given back, at most and
	// by default 24 h (D10).
	ReplayFor time.Duration
	// ForgetRequests keeps no payload of what acted, redacted or not.
	ForgetRequests bool
	// Weakened names everything that `unsafe` loosened, one sentence each.
	Weakened []string
	// Own holds the absolute paths that are Holdfast's own: state directory,
	// configuration and rules. Celestial level 1 guards them (D12).
	Own []string
	// From is the files this came from, for people.
	From []string
	// Settings are what the events of the policy say of it, so that the ledger alone
	// tells how a past day went; nil says nothing.
	Settings *health.Settings
}

// preparePolicy makes a policy ready, with the sections of the features.
func (k *Kernel) preparePolicy(p *Policy) (*policy, error) {
	out, err := prepare(p)
	if err != nil {
		return nil, err
	}
	out.prepared = map[string]any{}
	for _, f := range k.features.all {
		if f.readies == nil {
			continue
		}
		if out.prepared[f.spec.Name], err = f.readies.Prepare(p.Sections[f.spec.Name], out.Policy); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AgentKind is what configuration says of a kind of agent.
type AgentKind struct {
	// Iterations bounds agent/step crossings per session (D41).
	Iterations int64
	// Level is the trust at first sight; configuration cannot give Highest.
	Level holdfast.Level
}

// defaultIterations is for kinds that configuration does not know (D41).
const defaultIterations = 2

// longestReplay is how long a settled result is kept at most (D10).
const longestReplay = 24 * time.Hour

func (p *Policy) replayFor() time.Duration {
	if p.ReplayFor <= 0 || p.ReplayFor > longestReplay {
		return longestReplay
	}
	return p.ReplayFor
}

// policy is a Policy made ready. It is swapped whole.
type policy struct {
	*Policy
	contracts *contract.Set
	holds     bool           // a rule may hold a request for a person
	outputs   bool           // there may be rules on outputs
	prepared  map[string]any // of the features, by name
}

// prepare compiles every contract. One that does not compile refuses the
// whole policy, so that a reload is whole or not at all (D49).
func prepare(p *Policy) (*policy, error) {
	own := *p
	if own.Rules == nil {
		none, err := constitution.Load(nil)
		if err != nil {
			return nil, err
		}
		own.Rules = none
	}
	own.Roles = cloneRoles(p.Roles)
	own.Limits = slices.Clone(p.Limits)
	if slices.ContainsFunc(own.Limits, func(l budget.Limit) bool { return l.Exceed.Acts() }) {
		slices.SortStableFunc(own.Limits, budget.Narrower)
	}
	p = &own
	set, err := contract.NewSet(contract.Listing{Contracts: p.Contracts, Rules: p.Rules, Risks: p.Risks,
		Weakened: p.Weakened})
	if err != nil {
		return nil, err
	}
	out := &policy{Policy: p, contracts: set}
	out.holds = anyRule(p.Rules, func(r constitution.Info) bool {
		return r.On == constitution.OnRequest && r.Severity == constitution.SeverityHold
	})
	out.outputs = anyRule(p.Rules, func(r constitution.Info) bool { return r.On == constitution.OnOutput })
	return out, nil
}

// cloneRoles keeps the table as it was when the policy was made. None stays
// none, which is not an empty table.
func cloneRoles(from map[string][]string) map[string][]string {
	if from == nil {
		return nil
	}
	out := make(map[string][]string, len(from))
	for role, grants := range from {
		out[role] = slices.Clone(grants)
	}
	return out
}

// anyRule reports whether a rule is such, so that what only such rules need is
// not done without one. Of rules that do not list themselves any may be.
func anyRule(rules Rules, such func(constitution.Info) bool) bool {
	listed, ok := rules.(interface{ Rules() []constitution.Info })
	return !ok || slices.ContainsFunc(listed.Rules(), such)
}

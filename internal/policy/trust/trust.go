// Package trust judges what a trust level may do, whatever the roles of the
// one who asks: K2 grants what roles grant and the agent's level allows, both
// (D8).
//
// The source is spec 000, "Trust levels": a baseline agent plans, executes in
// the sandbox and reads ledger and knowledge base; medium adds spawning
// sub-intents down to depth 3; high adds proposing root intents; highest adds
// proposing estimators. The knowledge base is not written below highest. What
// a person must approve besides is K7's matter.
package trust

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// forbidden stands above every level: nobody has it.
const forbidden = holdfast.Highest + 1

// rule says which level a permission needs. An empty name is every name of
// the scheme.
type rule struct {
	scheme string
	name   string
	need   holdfast.Level
}

// rules is asked in order; the first that fits decides, and what fits none
// needs baseline.
func rules() [5]rule {
	return [5]rule{
		{"spawn", "", holdfast.MediumTrust},
		{"intent", "propose", holdfast.HighTrust},
		{"estimator", "propose", holdfast.Highest},
		{"kb", "read", holdfast.Baseline},
		{"kb", "", holdfast.Highest},
	}
}

// May says whether an agent of the level may hold the permission, which is
// written "scheme:name". Case and surrounding space do not matter, so that a
// spelling cannot slip past a rule. "intent:propose:x" is judged as
// "intent:propose", and "scheme:*" needs what its strictest name needs. A text
// without scheme or name, or a level that does not exist, is refused.
func May(level holdfast.Level, permission string) bool {
	if level < holdfast.Baseline || level > holdfast.Highest {
		return false
	}
	return level >= Needs(permission)
}

// Needs returns the lowest level that may hold the permission. It is above
// holdfast.Highest for a text that is no permission.
func Needs(permission string) holdfast.Level {
	scheme, name, ok := strings.Cut(strings.ToLower(strings.TrimSpace(permission)), ":")
	scheme, name = strings.TrimSpace(scheme), strings.TrimSpace(name)
	if !ok || scheme == "" || name == "" {
		return forbidden
	}
	first, _, _ := strings.Cut(name, ":")
	first = strings.TrimSpace(first)
	if strings.Contains(scheme, "*") || strings.Contains(first, "*") {
		return strictest(scheme)
	}
	for _, r := range rules() {
		if r.scheme == scheme && (r.name == "" || r.name == first) {
			return r.need
		}
	}
	return holdfast.Baseline
}

// strictest returns what the most demanding name of a scheme needs; a scheme
// with a wildcard in it covers all of them.
func strictest(scheme string) holdfast.Level {
	need := holdfast.Baseline
	for _, r := range rules() {
		if r.scheme == scheme || strings.Contains(scheme, "*") {
			need = max(need, r.need)
		}
	}
	return need
}

// Depth returns how deep below its own an agent of the level may have
// sub-intents: none for baseline and for a level that does not exist, 3 for
// medium. High and highest add other powers to medium's and keep its depth.
func Depth(level holdfast.Level) int {
	if level < holdfast.MediumTrust || level > holdfast.Highest {
		return 0
	}
	return 3
}

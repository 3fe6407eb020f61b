package kernel

import (
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// spoken is what an entry keeps of the rules that spoke: those that refuse
// first, of these the critical ones, else in the rules' order. more is how many
// did beyond those that an entry has room for.
func spoken(found []constitution.Finding) (list []ledger.Spoken, more int64) {
	if len(found) == 0 {
		return nil, 0
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b constitution.Finding) int {
		switch {
		case graver(&a, &b):
			return -1
		case graver(&b, &a):
			return 1
		}
		return 0
	})
	for i := range found[:min(len(found), ledger.MaxSpoken)] {
		f := &found[i]
		list = append(list, ledger.Spoken{Rule: f.Rule, Version: f.Version, Severity: f.Severity, How: how(f)})
	}
	return list, int64(len(found) - len(list))
}

// graver says whether a leads where both spoke. What is observed is graver than
// what is noted: it would have stopped the request.
func graver(a, b *constitution.Finding) bool {
	if a.Verdict != b.Verdict {
		return a.Verdict < b.Verdict
	}
	return gravity(a) > gravity(b)
}

func gravity(f *constitution.Finding) int {
	switch {
	case f.Severity == constitution.SeverityCritical:
		return 2
	case f.Observed || f.Passed:
		return 1
	}
	return 0
}

// how is what came of a rule that spoke.
func how(f *constitution.Finding) ledger.How {
	switch {
	case f.Observed:
		return ledger.RuleObserved
	case f.Passed:
		return ledger.RulePassed
	case f.Err != nil:
		return ledger.RuleErred
	case f.Verdict == holdfast.Allow:
		return ledger.RuleNoted
	case f.Verdict == holdfast.Hold:
		return ledger.RuleHeld
	}
	return ledger.RuleDenied
}

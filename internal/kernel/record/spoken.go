package record

import (
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// ListSpoken returns what an entry keeps of the rules that matched: those that refuse first, of
// these the critical ones, otherwise in the rules' order. more is the number of those that an
// entry does not keep.
func ListSpoken(found []constitution.Finding) (list []ledger.Spoken, more int64) {
	if len(found) == 0 {
		return nil, 0
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b constitution.Finding) int {
		switch {
		case IsGraver(&a, &b):
			return -1
		case IsGraver(&b, &a):
			return 1
		}
		return 0
	})
	for i := range found[:min(len(found), ledger.MaxSpoken)] {
		f := &found[i]
		list = append(list, ledger.Spoken{Rule: f.Rule, Version: f.Version, Severity: f.Severity, How: HowOf(f)})
	}
	return list, int64(len(found) - len(list))
}

// IsGraver reports whether a leads if both matched. What is observed is graver than what is
// noted: it would have stopped the request.
func IsGraver(a, b *constitution.Finding) bool {
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

// HowOf returns the effect of a rule that matched.
func HowOf(f *constitution.Finding) ledger.How {
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

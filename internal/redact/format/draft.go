package format

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// draft is a body that is being rewritten from its head to its tail: what is
// not replaced keeps its bytes.
type draft struct {
	in       []byte
	out      []byte
	copied   int
	findings []finding.Finding
}

// replace puts text in the place of [start, end).
func (d *draft) replace(start, end int, text []byte) {
	if d.out == nil {
		d.out = make([]byte, 0, len(d.in)+64)
	}
	d.out = append(append(d.out, d.in[d.copied:start]...), text...)
	d.copied = end
}

// whole notes each rule of found once, for [start, end).
func (d *draft) whole(start, end int, found []finding.Finding) {
	for _, rule := range (finding.Result{Findings: found}).Rules() {
		d.findings = append(d.findings, finding.Finding{Rule: rule, Offset: start, Length: end - start})
	}
}

// take puts what became of [start, end), which was read as it stands.
func (d *draft) take(start, end int, r finding.Result) {
	if !r.Found() {
		return
	}
	for _, f := range r.Findings {
		d.findings = append(d.findings, finding.Finding{Rule: f.Rule, Offset: start + f.Offset, Length: f.Length})
	}
	d.replace(start, end, r.Out)
}

// result returns the draft with what was not replaced.
func (d *draft) result() finding.Result {
	if len(d.findings) == 0 {
		return finding.Result{Out: d.in}
	}
	return finding.Result{Out: append(d.out, d.in[d.copied:]...), Findings: d.findings}
}

// strongest returns the rule of found that counts most, for what is masked as
// one. A card's mask shows its last digits, which such a whole does not have.
func strongest(found []finding.Finding) rule.Rule {
	best := rule.None
	for _, f := range found {
		if k := slices.Index(rule.Names[:], f.Rule); k > int(best) {
			best = rule.Rule(k)
		}
	}
	switch {
	case best == rule.Card:
		return rule.PIIField
	case best == rule.None && len(found) > 0:
		return rule.Fault
	}
	return best
}

package redact

import "slices"

// draft is a body that is being rewritten from its head to its tail: what is
// not replaced keeps its bytes.
type draft struct {
	in       []byte
	out      []byte
	copied   int
	findings []Finding
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
func (d *draft) whole(start, end int, found []Finding) {
	for _, rule := range (Result{Findings: found}).Rules() {
		d.findings = append(d.findings, Finding{rule, start, end - start})
	}
}

// take puts what became of [start, end), which was read as it stands.
func (d *draft) take(start, end int, r Result) {
	if !r.Found() {
		return
	}
	for _, f := range r.Findings {
		d.findings = append(d.findings, Finding{f.Rule, start + f.Offset, f.Length})
	}
	d.replace(start, end, r.Out)
}

// result returns the draft with what was not replaced.
func (d *draft) result() Result {
	if len(d.findings) == 0 {
		return Result{Out: d.in}
	}
	return Result{Out: append(d.out, d.in[d.copied:]...), Findings: d.findings}
}

// strongest returns the rule of found that counts most, for what is masked as
// one. A card's mask shows its last digits, which such a whole does not have.
func strongest(found []Finding) rule {
	best := ruleNone
	for _, f := range found {
		if k := slices.Index(ruleNames[:], f.Rule); k > int(best) {
			best = rule(k)
		}
	}
	switch {
	case best == ruleCard:
		return rulePIIField
	case best == ruleNone && len(found) > 0:
		return ruleFault
	}
	return best
}

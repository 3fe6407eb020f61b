// Package finding has what a redaction reports.
package finding

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// Finding is one thing that was masked. Offset and Length are bytes of the
// input. In a JSON string that is written with escapes, or is a JSON document
// itself, they are those of the whole string, quotes included, and there is
// one finding for each rule.
type Finding struct {
	Rule   string `json:"rule"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

// Result is what a redaction gives. Findings are in order of offset; two
// overlap only where they name the same string. Out belongs to the caller unless nothing was found: then it is
// the input itself.
type Result struct {
	Out      []byte
	Findings []Finding
}

// Found says whether anything was masked.
func (r Result) Found() bool { return len(r.Findings) > 0 }

// Rules returns the names of the rules that found something, sorted, each
// once; nil where none did. It is the ledger's redaction_rules_applied.
func (r Result) Rules() []string {
	var names []string
	for _, f := range r.Findings {
		if !slices.Contains(names, f.Rule) {
			names = append(names, f.Rule)
		}
	}
	slices.Sort(names)
	return names
}

// PII says whether personal data was found: an address, a card, a number that
// names a person. Secrets alone are not personal. It is the ledger's
// contains_pii_before_redaction (D13).
func (r Result) PII() bool {
	for _, f := range r.Findings {
		if !f.IsSecret() {
			return true
		}
	}
	return false
}

// IsSecret reports whether f is a secret rather than personal data.
func (f Finding) IsSecret() bool {
	return strings.HasPrefix(f.Rule, "secret.") ||
		f.Rule == rule.Names[rule.Fault]
}

// FromSpans appends to to a finding for each of spans, with base added to its offset.
func FromSpans(spans []span.Span, base int, to []Finding) []Finding {
	for _, sp := range spans {
		to = append(to, Finding{rule.Names[sp.Rule], base + sp.Start, sp.End - sp.Start})
	}
	return to
}

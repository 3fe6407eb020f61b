package cleaner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// Rules say what happens to what is found in one direction of a row.
type Rules struct {
	Row     *domain.Domain
	Secrets domain.Redaction
	answers bool
}

// RequestRules returns the rules for what is sent to d.
func RequestRules(d *domain.Domain) Rules { return Rules{Row: d, Secrets: d.Request} }

// AnswerRules returns the rules for what comes back from d, whose secrets are treated as mode says.
func AnswerRules(d *domain.Domain, mode domain.Redaction) Rules {
	return Rules{Row: d, Secrets: mode, answers: true}
}

// ListRefused returns the findings that the row refuses. The others are masked.
func (r Rules) ListRefused(found []redact.Finding) []redact.Finding {
	var list []redact.Finding
	for _, f := range found {
		if f.IsSecret() && r.Secrets == domain.Refuse || !f.IsSecret() && r.Row.Personal == domain.Refuse {
			list = append(list, f)
		}
	}
	return list
}

// Refuse returns the DomainBlockedError of a message with refused findings. place names where the first of them is.
func (r Rules) Refuse(place string, refused []redact.Finding) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/found",
		Why:  fmt.Sprintf("%s holds what %s may not have: %v", place, r.Row.Name, redact.Result{Findings: refused}.Rules()),
		Hint: r.buildHint(refused),
	}
}

// buildHint returns what to do about a refusal.
func (r Rules) buildHint(refused []redact.Finding) string {
	key := "personal"
	if slices.ContainsFunc(refused, redact.Finding.IsSecret) {
		if key = "request"; r.answers {
			key = "response"
		}
	}
	row := fmt.Sprintf("write `redact: {%s: mask}` in the row of %s under egress: domains:", key, r.Row.Name)
	switch key {
	case "request":
		return "leave it out; to send it masked, as earlier versions did by default, " + row +
			"; for a login or a signed URL, `request: off`; to have Holdfast add a credential, write `credential:`"
	case "response":
		return "to receive it masked, " + row
	}
	return "leave it out; to have personal data masked, " + row
}

// CountMasked returns what was masked in a request and its answer, nil for nothing.
func CountMasked(request, answer []redact.Finding) *holdfast.Masked {
	if len(request)+len(answer) == 0 {
		return nil
	}
	m := &holdfast.Masked{Request: len(request), Answer: len(answer)}
	for _, list := range [...][]redact.Finding{request, answer} {
		for _, f := range list {
			if kind := mapping.KindOf(f.Rule); !slices.Contains(m.Kinds, kind) {
				m.Kinds = append(m.Kinds, kind)
			}
		}
	}
	slices.Sort(m.Kinds)
	return m
}

// DescribeChanges returns the value of the header that tells a client what was changed in its request and its
// answer, "" for nothing.
func DescribeChanges(p *holdfast.Placeholders, m *holdfast.Masked) string {
	var parts, kinds []string
	if p != nil && p.Replaced+p.Restored+p.Altered > 0 {
		parts = append(parts, fmt.Sprintf("replaced=%d; restored=%d; altered=%d", p.Replaced, p.Restored, p.Altered))
		kinds = append(kinds, p.Kinds...)
	}
	if m != nil {
		parts = append(parts, fmt.Sprintf("masked=%d", m.Request+m.Answer))
		kinds = append(kinds, m.Kinds...)
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(kinds)
	parts = append(parts, "kinds="+strings.Join(slices.Compact(kinds), ","))
	if m != nil && m.Answer > 0 {
		parts = append(parts, fmt.Sprintf("answer=%d", m.Answer))
	}
	return strings.Join(parts, "; ")
}

package contract

import (
	"cmp"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// CompleteRedaction returns r with its defaults.
func CompleteRedaction(r holdfast.Redaction) *holdfast.Redaction {
	r.Request, r.Response = cmp.Or(r.Request, "refuse"), cmp.Or(r.Response, "mask")
	r.Personal = cmp.Or(r.Personal, "mask")
	return &r
}

// DescribeUnsearched returns what redact of a contract leaves out, as one sentence; "" for nothing.
func DescribeUnsearched(c holdfast.Contract) string {
	var parts []string
	if c.Redact != nil && c.Redact.Request == "off" {
		parts = append(parts, "is sent requests that are not searched for secrets")
	}
	if c.Redact != nil && c.Redact.Response == "off" {
		parts = append(parts, "gives results that are not searched")
	}
	if parts == nil {
		return ""
	}
	return "boundaries.redact: " + c.Boundary + " " + strings.Join(parts, " and ")
}

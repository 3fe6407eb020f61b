package config

import (
	"cmp"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// ToolRedaction is what happens to secrets and personal data at an MCP boundary (holdfast.Redaction).
type ToolRedaction struct {
	Request  string          `yaml:"request" enum:"refuse,mask,off" doc:"of a secret in arguments: refuse the call and name the place; mask it; or off (default refuse)"`
	Response string          `yaml:"response" enum:"mask,refuse,off" doc:"of a secret in a result: mask it; refuse, which withholds the result; or off, which leaves personal data as well (default mask)"`
	Personal string          `yaml:"personal" enum:"mask,refuse,pass" doc:"of personal data, in both: mask it, refuse, or pass (default mask)"`
	Detector *DetectorConfig `yaml:"detector" doc:"a program that finds names and addresses in arguments and results, which personal speaks of; without its answer the call is refused (default none)"`
	At       string          `yaml:"-"`
}

// checkToolRedaction refuses redact where the MCP gateway, which searches, is not what crosses b.
func (k *checker) checkToolRedaction(b *BoundaryConfig) {
	if b.Redact != nil && !strings.HasPrefix(b.Boundary, "mcp/") {
		k.fail(cmp.Or(b.Redact.At, b.At),
			"redact belongs to boundaries such as mcp/github/*; a host has its own, under egress: domains",
			"redact: the boundary %q does not belong to an MCP server", excerpt.Word(b.Boundary))
	}
	if b.Redact == nil || b.Redact.Detector == nil {
		return
	}
	k.checkDetector(b.Redact.Detector)
	if b.Redact.Personal == "pass" {
		k.fail(cmp.Or(b.Redact.At, b.At), "leave detector out, or write personal: mask or refuse",
			"redact: a detector, whose findings personal: pass lets through")
	}
}

package config

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// ToolRedaction is what happens to secrets and personal data at an MCP boundary (holdfast.Redaction).
type ToolRedaction struct {
	Request  string `yaml:"request" enum:"refuse,mask,off" doc:"of a secret in arguments: refuse the call and name the place; mask it; or off; refuse if absent"`
	Response string `yaml:"response" enum:"mask,refuse,off" doc:"of a secret in a result: mask it; refuse, which withholds the result; or off, which leaves personal data as well; mask if absent"`
	Personal string `yaml:"personal" enum:"mask,refuse,pass" doc:"of personal data, in both: mask it, refuse, or pass; mask if absent"`
	At       string `yaml:"-"`
}

// checkToolRedaction checks that the gateway for tools is what crosses b: nothing else searches.
func (k *checker) checkToolRedaction(b *BoundaryConfig) {
	if b.Redact == nil || strings.HasPrefix(b.Boundary, "mcp/") {
		return
	}
	at, hint := b.Redact.At, "redact is of boundaries such as mcp/github/*"
	if at == "" {
		at = b.At
	}
	if strings.HasPrefix(b.Boundary, "egress/") {
		hint = "a host has it under egress: domains: NAME: redact"
	}
	k.fail(at, hint, "redact: the boundary %q does not belong to an MCP server", excerpt.Word(b.Boundary))
}

// toRedaction returns what the contract says, nil if nothing.
func (b *BoundaryConfig) toRedaction() *holdfast.Redaction {
	c := b.Redact
	if c == nil {
		return nil
	}
	out := &holdfast.Redaction{Request: "refuse", Response: "mask", Personal: "mask"}
	for _, one := range []struct{ said, into *string }{
		{&c.Request, &out.Request}, {&c.Response, &out.Response}, {&c.Personal, &out.Personal},
	} {
		if *one.said != "" {
			*one.into = *one.said
		}
	}
	return out
}

// listUnsearched returns what redact of the boundary leaves out, one sentence; "" if nothing.
func (b *BoundaryConfig) listUnsearched() string {
	var what []string
	if b.Redact != nil && b.Redact.Request == "off" {
		what = append(what, "is sent requests that are not searched for secrets")
	}
	if b.Redact != nil && b.Redact.Response == "off" {
		what = append(what, "gives results that are not searched")
	}
	if what == nil {
		return ""
	}
	return "boundaries.redact: " + b.Boundary + " " + strings.Join(what, " and ")
}

package config

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// TestContractRedactHasDefaults: any value switches it on, absent it is off, and what is left
// unsearched is a weakening of that boundary alone.
func TestContractRedactHasDefaults(t *testing.T) {
	for given, want := range map[string]*holdfast.Redaction{
		"risk: LOW":                            nil,
		"risk: LOW, redact: {}":                {Request: "refuse", Response: "mask", Personal: "mask"},
		"risk: LOW, redact: {personal: pass}":  {Request: "refuse", Response: "mask", Personal: "pass"},
		"risk: LOW, redact: {request: 'off'}":  {Request: "off", Response: "mask", Personal: "mask"},
		"risk: LOW, redact: {response: 'off'}": {Request: "refuse", Response: "off", Personal: "mask"},
		"risk: LOW, redact: {request: mask, personal: refuse, response: refuse}": {Request: "mask", Response: "refuse",
			Personal: "refuse"},
	} {
		dir := testfile.Write(t, map[string]string{
			"holdfast.yaml": "version: 1\nboundaries: [{boundary: mcp/a/b, " + given + "}]\n",
		})
		l, err := Load(filepath.Join(dir, "holdfast.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(l.Policy.Contracts, func(c holdfast.Contract) bool { return c.Boundary == "mcp/a/b" })
		c := l.Policy.Contracts[i]
		if got := c.Redact; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %+v, not %+v", given, got, want)
		}
		sentence := ""
		switch {
		case want != nil && want.Request == "off":
			sentence = "boundaries.redact: mcp/a/b is sent requests that are not searched for secrets"
		case want != nil && want.Response == "off":
			sentence = "boundaries.redact: mcp/a/b gives results that are not searched"
		}
		if c.Weakened != sentence || sentence != "" && !slices.Contains(l.Policy.Weakened, sentence) {
			t.Errorf("%s: weakened %q, all %q", given, c.Weakened, l.Policy.Weakened)
		}
	}
}

package kernel

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// telling says whether a name would tell a secret. Names are keys: of agents,
// of counters, of tokens. They are written down as they are, and redaction
// passes them, so that one which holds a registered secret, or what its form
// tells, is no name (D13). An address of a person may be one.
func (k *Kernel) telling(names ...string) bool {
	for _, name := range names {
		for _, f := range k.redact.Text([]byte(name)).Findings {
			// "token:7" is how some authorities write a subject.
			if strings.HasPrefix(f.Rule, "secret.") && f.Rule != "secret.assignment" {
				return true
			}
		}
	}
	return false
}

// Nameable is a ValueError where a claim of an identity holds a secret.
func (k *Kernel) Nameable(who holdfast.Identity) error {
	if !k.telling(who.Agent, who.Kind, who.Session, who.Intent, who.Chain, who.Tier, who.Principal, who.Parent, who.TokenID) {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K2, Why: "a name in the token holds a secret, and names are written down as they are",
		Hint: "give the agent, its kind and its session names that tell nothing"}
}

package kernel

import (
	"github.com/holdfast-dev/holdfast"
)

// Nameable is a ValueError where a claim of an identity holds a secret.
func (k *Kernel) Nameable(who holdfast.Identity) error {
	if !k.redact.TellsSecret(who.Agent, who.Kind, who.Session, who.Intent, who.Chain, who.Tier, who.Principal,
		who.Parent, who.TokenID) {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K2, Why: "a name in the token holds a secret, and names are written down as they are",
		Hint: "give the agent, its kind and its session names that tell nothing"}
}

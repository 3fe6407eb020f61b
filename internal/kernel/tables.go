package kernel

import (
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// The kernel's own tables. Those of which gates read a row say so.
var (
	usedStatements = table.New[string, usedStatement]("statement", table.Options{Gates: true})
	haltStates     = table.New[string, haltState]("halt", table.Options{Key: "scope"})

	rememberedRules = table.New[string, keptRule]("remembered_rule", table.Options{Gates: true})
	ruleUses        = table.New[string, ruleUse]("remembered_use", table.Options{})
	callersRules    = table.New[string, ruleIDs]("remembered_caller", table.Options{Key: "caller", Gates: true})
	tenantsRules    = table.New[string, ruleIDs]("remembered_tenant", table.Options{Key: "tenant"})
	ruleTexts       = table.New[string, constitution.Text]("rule_text", table.Options{Key: "rule"})

	endedChains = table.New[string, EndedChain]("chain_ended", table.Options{Key: "chain", Gates: true})
)

// Tables returns the descriptions of the kernel's own tables, for the store.
func Tables() []*table.Def {
	return []*table.Def{
		stopRows.Def(), taskRows.Def(),
		usedStatements.Def(), haltStates.Def(),
		rememberedRules.Def(), ruleUses.Def(), callersRules.Def(), tenantsRules.Def(), ruleTexts.Def(),
		endedChains.Def(),
	}
}

// usedStatement is a person's statement that was carried out, and is not a second time.
type usedStatement struct {
	At string `json:"at"` // when it was made, RFC 3339
}

// haltState is whether the ledger believes that everything is halted. Its scope is
// everything.
type haltState struct {
	Halted bool `json:"halted"`
}

const everything = "everything"

// ruleIDs are remembered rules, the oldest first.
type ruleIDs struct {
	IDs []string `json:"ids"`
}

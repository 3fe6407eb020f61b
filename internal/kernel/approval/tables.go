package approval

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

// The tables of approvals. Those of which gates read a row say so.
var (
	usedStatements  = table.New[string, usedStatement]("statement", table.Options{Gates: true})
	rememberedRules = table.New[string, Rule]("remembered_rule", table.Options{Gates: true})
	ruleUses        = table.New[string, ruleUse]("remembered_use", table.Options{})
	callersRules    = table.New[string, ruleIDs]("remembered_caller", table.Options{Key: "caller", Gates: true})
	tenantsRules    = table.New[string, ruleIDs]("remembered_tenant", table.Options{Key: "tenant"})
)

// Tables returns the descriptions of the tables, for the store.
func Tables() []*table.Def {
	return []*table.Def{usedStatements.Def(), rememberedRules.Def(), ruleUses.Def(), callersRules.Def(),
		tenantsRules.Def()}
}

// usedStatement is a person's statement that was carried out, and is not a second time.
type usedStatement struct {
	At string `json:"at"` // when it was made, RFC 3339
}

// ruleUse counts what a rule let pass.
type ruleUse struct {
	Uses int64     `json:"uses"`
	Last time.Time `json:"last"`
}

// ruleIDs are remembered rules, the oldest first.
type ruleIDs struct {
	IDs []string `json:"ids"`
}

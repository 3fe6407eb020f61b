package kernel

import (
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// The kernel's own tables. Those of which gates read a row say so.
var (
	haltStates = table.New[string, haltState]("halt", table.Options{Key: "scope"})

	ruleTexts = table.New[string, constitution.Text]("rule_text", table.Options{Key: "rule"})

	endedChains = table.New[string, EndedChain]("chain_ended", table.Options{Key: "chain", Gates: true})
)

// Tables returns the descriptions of the tables of the kernel and of approvals, for the store.
func Tables() []*table.Def {
	return append(approval.Tables(), stopRows.Def(), taskRows.Def(), haltStates.Def(), ruleTexts.Def(),
		endedChains.Def())
}

// haltState is whether the ledger believes that everything is halted. Its scope is
// everything.
type haltState struct {
	Halted bool `json:"halted"`
}

const everything = "everything"

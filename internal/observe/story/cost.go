package story

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// CostOf returns what a crossing was charged, in micro-dollars.
func CostOf(e *ledger.Entry) int64 {
	cost := int64(0)
	if e.Model != nil {
		cost = e.Model.Micro
	}
	for i := range e.Uses {
		if u := &e.Uses[i]; u.Used != nil && u.Draw.Resource == holdfast.MoneyMicro {
			cost = max(cost, *u.Used)
		}
	}
	return cost
}

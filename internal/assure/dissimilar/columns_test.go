package dissimilar_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/ledger"
)

// refusedMoney is a request that money had no room for: tokens are tighter still, and
// requests have room.
func (b *book) refusedMoney(rule string, shows int) int64 {
	named := func(name string, amount, limit int64) ledger.Use {
		return ledger.Use{Draw: ledger.Draw{Key: "acme/agent/ada/" + name, Resource: holdfast.Resource(name), Amount: amount, Limit: limit, Name: name + " per agent"}}
	}
	uses := []ledger.Use{named("money_micro", 7, 5), named("llm_tokens", 90, 10), named("http_requests", 1, 10)}
	b.last = func(e *ledger.Entry) {
		u := uses[shows]
		e.ResourceType, e.BudgetLimit, e.UsageBefore, e.Requested = ptr(string(u.Draw.Resource)), &u.Draw.Limit, &u.Before, &u.Draw.Amount
	}
	return b.denied(holdfast.K3, holdfast.KindBounds, func(e *ledger.Entry) { e.Opinions[2].Rule, e.Uses = rule, uses })
}

// The columns of a refusal are those of what had no room; entries of old show the
// tightest, and still are right. Anything else is none of both.
func TestD14b_columns_of_a_refusal(t *testing.T) {
	for shows, wrong := range []bool{false, false, true} {
		b := newBook(t)
		at := b.refusedMoney("money_micro per agent", shows)
		_, found := b.judge()
		if (len(found) > 0) != wrong || wrong && (found[0].Seq != at || found[0].Check != dissimilar.K3Columns.String()) {
			t.Errorf("columns of draw %d: %v", shows, found)
		}
	}
	// What did not refuse is shown by nothing but being the tightest.
	b := newBook(t)
	b.refusedMoney("llm_tokens per agent", 0)
	if _, found := b.judge(); len(found) != 1 || found[0].Check != dissimilar.K3Columns.String() {
		t.Errorf("%v", found)
	}
}

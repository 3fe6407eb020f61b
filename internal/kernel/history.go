package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/kernel/past"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// openPast makes what keeps the past for rules that ask about it.
func (k *Kernel) openPast(key []byte) (err error) {
	k.past, err = past.New(key, past.Source{
		View: func(ctx context.Context, fn func(past.Reader) error) error {
			return k.store.View(ctx, func(tx Tx) error { return fn(tx) })
		},
		Functions: func() []*constitution.Past { return k.policy.Load().Rules.Pasts() },
		Operation: func(boundary string) string {
			if c := k.lookup(k.policy.Load(), boundary); c != nil {
				return c.Operation
			}
			return ""
		},
		Now: k.now, Log: k.log, Mask: func(s string) string { return string(k.mask(s)) },
	})
	return err
}

// Past keeps what was done, for rules that ask about it. Its Follow and Read fill it from the
// ledger; until then those rules fail.
func (k *Kernel) Past() *past.Keeper { return k.past }

// ask lets the request ask about the past: from now on those that are evaluated after it count
// it, until it is dropped or confirmed. No request counts one that is only looked at.
func (j *judgement) ask(ctx context.Context) {
	p := j.k.past
	j.sights = j.pol.Rules.See(ctx, j.facts())
	if j.looks {
		j.asks = p.Look(j.tenant())
		return
	}
	j.asks, j.ticket = p.Add(j.now, j.tenant(), past.Occasion{At: j.at, Agent: j.who.Agent, Session: j.who.Session,
		Exact: j.exact()}, j.sights)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/feature/recount"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

// seeLedger looks at the end of every tree; `ledger verify` looks at all.
func (a *app) seeLedger(daemon.Paths) finding {
	var n int64
	err := a.read(func(_ daemon.Paths, s kernel.Store) error {
		if err := a.structure(s); err != nil {
			return err
		}
		trees, err := a.trees(s)
		if err != nil {
			return err
		}
		for _, t := range trees {
			from := max(0, t.Head.Size-256)
			if err := a.view(s, func(tx kernel.Tx) error {
				return tx.Leaves(t.Head.Tenant, from, t.Head.Size, recordHash)
			}); err != nil {
				return fmt.Errorf("tenant %s: %w", t.Head.Tenant, err)
			}
			n += t.Head.Size
		}
		return nil
	})
	switch {
	case isNoState(err):
		return okay("none yet")
	case err != nil:
		return bad(err)
	}
	return okay("%s; the end of each tree is intact (`ledger verify` checks all)", story.Count(n, "leaf", "leaves"))
}

func (a *app) seeLedgerKey(p daemon.Paths) finding {
	if !there(p.DB) {
		return okay("none yet")
	}
	v, err := daemon.LedgerKey(p)
	if err != nil {
		return bad(err)
	}
	return okay("%s", v.Runtime())
}

// recordHash checks that a leaf's hash is its record's.
func recordHash(l ledger.Stored) error {
	if ledger.LeafHash(l.Record) != l.Hash {
		return fmt.Errorf("leaf %d is not what was written", l.Seq)
	}
	return nil
}

// countersTime bounds how long the ledger is added up for.
const countersTime = 2 * time.Minute

// seeCounters adds up the ledger and compares the counters of money and iterations.
func (a *app) seeCounters(daemon.Paths) finding {
	ctx, cancel := context.WithTimeout(a.ctx, countersTime)
	defer cancel()
	var c recount.Counted
	p := a.newCounter(0)
	defer p.Clear()
	err := a.read(func(_ daemon.Paths, s kernel.Store) (err error) {
		c, err = recount.Check(ctx, s, p.SetCount)
		return err
	})
	switch {
	case isNoState(err):
		return okay("none yet")
	case errors.Is(err, context.DeadlineExceeded):
		return warn("", "not compared: %s added up within %s, and there are more", story.Count(int(c.Leaves), "leaf was", "leaves were"), countersTime)
	case err != nil:
		return bad(err)
	case len(c.Astray) > 0:
		first := c.Astray[0]
		return finding{How: "FAIL", Why: story.Count(len(c.Astray), "counter is", "counters are") + " not what the ledger adds up to; the first is " + first.Budget + " of tenant " + first.Tenant,
			Hint: "somebody may have written the store past holdfast: `holdfast ledger verify`"}
	}
	return okay("%s of money and iterations, each what the ledger adds up to", story.Count(c.Counters, "counter", "counters"))
}

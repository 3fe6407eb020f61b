// Package recount adds up the counters of money and iterations from the ledger, and raises
// those that are less.
package recount

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The ledger can rebuild the counters (D9): every begin holds what it took, and
// every entry what that was settled at.

// maxCounters bounds how many counters are added up at once.
const maxCounters = 200_000

// Astray is a counter that is not what the ledger adds up to.
type Astray struct {
	Tenant string `json:"tenant_id"`
	Budget string `json:"budget"`
	Key    string `json:"key"`
	Stored int64  `json:"stored"`
	Ledger int64  `json:"ledger"`
}

// Counted is what Check found.
type Counted struct {
	Counters int      // how many were compared
	Leaves   int64    // how many were read
	Astray   []Astray // by tenant and key
}

// sum is a counter as the ledger adds up to it.
type sum struct {
	used, window int64
	name         string
}

// countBatch is how many leaves are added up in one view.
const countBatch = 10_000

// counting adds up one tenant's counters, from where it stopped.
type counting struct {
	tenant string
	next   int64 // the leaf that is read next
	sums   map[string]*sum
}

// read adds up at most limit leaves, and says how many there were.
func (c *counting) read(ctx context.Context, tx kernel.Reader, limit int64) (n int64, err error) {
	err = tx.Leaves(c.tenant, c.next, c.next+limit, func(l ledger.Stored) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addUp(c.sums, &l); err != nil {
			return err
		}
		c.next, n = l.Seq+1, n+1
		return nil
	})
	return n, err
}

// astray compares those counters, in the view in which the last leaf was read.
func (c *counting) astray(tx kernel.Reader, keys iter.Seq[string]) (out []Astray, err error) {
	for key := range keys {
		s := c.sums[key]
		stored, err := tx.Counter(budget.Draw{Key: key, Window: s.window})
		if err != nil {
			return nil, err
		}
		if stored.Used != s.used {
			out = append(out, Astray{Tenant: c.tenant, Budget: s.name, Key: key, Stored: stored.Used, Ledger: s.used})
		}
	}
	slices.SortFunc(out, func(a, b Astray) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// Check adds up the counters of money and iterations from every leaf of
// the ledger, 10,000 in a view, and compares each tenant's with the store's in the
// view in which it came to the end: crossings may go on meanwhile. It changes
// nothing. progress, which may be nil, is told how many leaves were read, of how
// many there were at first; ctx ends it, and then what was compared is what it
// returns beside the error. More counters than can be added up at once are an
// error.
func Check(ctx context.Context, s kernel.Store, progress func(read, of int64)) (Counted, error) {
	return checkLedger(ctx, s, progress, func(*counting, []Astray) error { return nil })
}

// checkLedger is Check; it calls found for each tenant of which counters
// are astray.
func checkLedger(ctx context.Context, s kernel.Store, progress func(read, of int64), found func(*counting,
	[]Astray) error) (out Counted, err error) {
	var heads []ledger.Head
	if err := s.View(ctx, func(tx kernel.Tx) (err error) { heads, err = tx.Heads(); return err }); err != nil {
		return out, err
	}
	var of int64
	heads = slices.DeleteFunc(heads, func(h ledger.Head) bool { return h.Tenant == ledger.CheckpointsTenant })
	for _, h := range heads {
		of += h.Size
	}
	for _, h := range heads {
		c := &counting{tenant: h.Tenant, sums: map[string]*sum{}}
		var astray []Astray
		for more := true; more; {
			err := s.View(ctx, func(tx kernel.Tx) error {
				n, err := c.read(ctx, tx, countBatch)
				out.Leaves += n
				if more = n == countBatch; err != nil || more {
					return err
				}
				astray, err = c.astray(tx, maps.Keys(c.sums))
				return err
			})
			if err != nil {
				return out, err
			}
			if progress != nil {
				progress(out.Leaves, of)
			}
		}
		out.Counters += len(c.sums)
		out.Astray = append(out.Astray, astray...)
		if len(astray) > 0 {
			if err := found(c, astray); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func addUp(sums map[string]*sum, l *ledger.Stored) error {
	switch l.Kind {
	case ledger.KindBegin:
		b, err := ledger.ParseBegin(l.Record)
		if err != nil {
			return err
		}
		for _, d := range b.Draws {
			if err := take(sums, d); err != nil {
				return err
			}
		}
	case ledger.KindEntry:
		e, err := ledger.ParseEntry(l.Record)
		if err != nil {
			return err
		}
		if e.BeginSeq == nil || e.Outcome == ledger.Unknown {
			return nil // what was reserved stays
		}
		for _, u := range e.Uses {
			s := sums[u.Draw.Key]
			if s == nil || u.Used == nil || s.window != u.Draw.Window {
				continue
			}
			s.used = budget.AddCapped(max(s.used-u.Draw.Amount, 0), *u.Used)
		}
	}
	return nil
}

func take(sums map[string]*sum, d ledger.Draw) error {
	if d.Resource != holdfast.MoneyMicro && d.Resource != holdfast.Iterations {
		return nil
	}
	s := sums[d.Key]
	if s == nil {
		if len(sums) >= maxCounters {
			return fmt.Errorf("more than %d counters", maxCounters)
		}
		s = &sum{window: d.Window}
		sums[d.Key] = s
	}
	// A clock that went backwards draws on the newer window.
	if d.Window > s.window || d.Window == 0 && s.window != 0 {
		s.used, s.window = 0, d.Window
	}
	if d.Amount < 0 {
		return errors.New("a begin took less than nothing")
	}
	s.used, s.name = budget.AddCapped(s.used, d.Amount), d.Name
	return nil
}

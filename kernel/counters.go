package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/budget"
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

// Counted is what CheckCounters found.
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

// CheckCounters adds up the counters of money and iterations from every leaf of
// the ledger and compares them with the store's, in one snapshot. It changes
// nothing. progress, which may be nil, is told how many leaves were read; ctx ends
// it, and then nothing is compared. More counters than can be added up at once are
// an error.
func CheckCounters(ctx context.Context, tx Tx, progress func(leaves int64)) (Counted, error) {
	var out Counted
	heads, err := tx.Heads()
	if err != nil {
		return out, err
	}
	for _, h := range heads {
		sums := map[string]*sum{}
		err := tx.Leaves(h.Tenant, 0, h.Size, func(l ledger.Stored) error {
			if out.Leaves++; out.Leaves%1024 == 0 && progress != nil {
				progress(out.Leaves)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return addUp(sums, &l)
		})
		if err != nil {
			return out, err
		}
		for key, s := range sums {
			c, err := tx.Counter(budget.Draw{Key: key, Window: s.window})
			if err != nil {
				return out, err
			}
			if out.Counters++; c.Used != s.used {
				out.Astray = append(out.Astray, Astray{Tenant: h.Tenant, Budget: s.name, Key: key, Stored: c.Used, Ledger: s.used})
			}
		}
	}
	slices.SortFunc(out.Astray, func(a, b Astray) int { return strings.Compare(a.Tenant+"\x00"+a.Key, b.Tenant+"\x00"+b.Key) })
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
			s.used = addCapped(max(s.used-u.Draw.Amount, 0), *u.Used)
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
	s.used, s.name = addCapped(s.used, d.Amount), d.Name
	return nil
}

package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// TestViewOvertaken: a view that one commit overtakes sees what was before, of
// memory alone; one that several overtake sees it too.
func TestViewOvertaken(t *testing.T) {
	var looked atomic.Int64
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "db"), Looked: func(pages int) { looked.Add(int64(pages)) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	start := time.Now().Truncate(time.Second)
	const keep = 3 // takings that are asked for
	taking := func(limit int) []budget.Rate {
		return []budget.Rate{{Key: "r", Limit: limit, Window: time.Hour}}
	}
	// write makes everything that is there once n+1.
	write := func(n int) error {
		return s.Update(t.Context(), func(tx kernel.Tx) error {
			no, err := tx.Draw([]budget.Draw{{Key: "c", Amount: 1, Limit: 1 << 40}})
			full, err2 := tx.Rate(taking(keep), start.Add(time.Duration(n)*2*time.Hour))
			if no != nil || full != nil {
				return fmt.Errorf("refused: %+v, %+v", no, full)
			}
			return errors.Join(err, err2, tx.PutAgent(holdfast.Agent{Tenant: "acme", Name: "a", Kind: fmt.Sprint(n + 1), First: start}),
				tx.Revoke("acme", fmt.Sprint("j", n), start))
		})
	}
	holds := func(tx kernel.Tx, n int) error {
		c, err := tx.Counter(budget.Draw{Key: "c"})
		a, err2 := tx.Agent("acme", "a")
		was, err3 := tx.Revoked("acme", fmt.Sprint("j", n-1))
		is, err4 := tx.Revoked("acme", fmt.Sprint("j", n))
		if err := errors.Join(err, err2, err3, err4); err != nil || c.Used != int64(n) || a.Kind != fmt.Sprint(n) || !was || is {
			return fmt.Errorf("at %d: %+v, %+v, %v, %v, %w", n, c, a, was, is, err)
		}
		for limit := 1; limit <= min(keep, n); limit++ {
			nth := start.Add(time.Duration(n-limit) * 2 * time.Hour)
			full, err := tx.PeekRate(taking(limit), nth)
			if err != nil || full == nil || full.After != time.Hour {
				return fmt.Errorf("at %d: taking %d from the end: %+v, %w", n, limit, full, err)
			}
		}
		if full, err := tx.PeekRate(taking(n+1), start); n < keep && (full != nil || err != nil) {
			return fmt.Errorf("at %d: one taking more: %+v, %w", n, full, err)
		}
		return nil
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 300; n += 2 {
		err := s.View(t.Context(), func(tx kernel.Tx) error {
			if err := write(n); err != nil {
				return err
			}
			looked.Store(0)
			if err := holds(tx, n); err != nil {
				return fmt.Errorf("overtaken once: %w", err)
			}
			if pages := looked.Load(); pages != 0 {
				return fmt.Errorf("at %d, overtaken once: it looked at %d pages of the database", n, pages)
			}
			if err := write(n + 1); err != nil {
				return err
			}
			if err := holds(tx, n); err != nil {
				return fmt.Errorf("overtaken twice: %w", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/store/storetest"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Memory is bounded, and what it had to forget the database still knows.
func TestCachesForget(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	s.counters.max, s.agents.max, s.jtis.max = 40, 40, 40
	s.flows = newFlows(32)
	rate := func(n int) []budget.Rate {
		return []budget.Rate{{Key: fmt.Sprint("r", n), Limit: 1, Window: time.Hour}}
	}
	now := time.Now()
	const n = 300
	for i := range n {
		err := s.Update(t.Context(), func(tx kernel.Tx) error {
			_, err := tx.Append(storetest.Leaf(t, "acme", ledger.KindEntry, storetest.Crossing(i), "x"))
			r, err2 := tx.Draw([]budget.Draw{{Key: fmt.Sprint("c", i), Amount: 1, Limit: 1}})
			r2, err3 := tx.Rate(rate(i), now)
			if r != nil || r2 != nil {
				return fmt.Errorf("refused: %+v %+v", r, r2)
			}
			if i%50 == 0 {
				s.evictRates()
			}
			return errors.Join(err, err2, err3, tx.Revoke("acme", fmt.Sprint(i), now),
				tx.PutAgent(holdfast.Agent{Tenant: "acme", Name: fmt.Sprint(i), First: now}))
		})
		if err != nil {
			t.Fatal(i, err)
		}
	}
	if len(s.counters.m) > 80 || len(s.agents.m) > 80 || len(s.jtis.m) > 80 || len(s.flows.m) > 80 {
		t.Errorf("memory keeps %d counters, %d agents, %d token ids and %d crossings",
			len(s.counters.m), len(s.agents.m), len(s.jtis.m), len(s.flows.m))
	}
	check := func(tx kernel.Tx) error {
		for i := range n {
			c, err := tx.Counter(budget.Draw{Key: fmt.Sprint("c", i)})
			_, err2 := tx.Agent("acme", fmt.Sprint(i))
			ok, err3 := tx.Revoked("acme", fmt.Sprint(i))
			full, err4 := tx.PeekRate(rate(i), now)
			if err := errors.Join(err, err2, err3, err4); err != nil || c.Used != 1 || !ok || full == nil {
				return fmt.Errorf("number %d: %+v, %v, %+v, %w", i, c, ok, full, err)
			}
		}
		none, err := tx.Revoked("acme", "never")
		if none || err != nil {
			return fmt.Errorf("a token that was never revoked: %v, %w", none, err)
		}
		return nil
	}
	again := func(tx kernel.Tx) error {
		for i := range n {
			_, err := tx.Append(storetest.Leaf(t, "acme", ledger.KindEntry, storetest.Crossing(i), "x"))
			if !errors.Is(err, kernel.ErrExists) {
				return fmt.Errorf("a second entry of crossing %d: %w", i, err)
			}
		}
		return nil
	}
	if err := errors.Join(s.View(t.Context(), check), s.Update(t.Context(), check), s.Update(t.Context(), again), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// The log does not grow for ever, although some view is nearly always open.
func TestLogIsBegunAnew(t *testing.T) {
	s := openStore(t, t.TempDir())
	defer s.Close()
	big := make([]byte, 1<<20)
	for i := range 104 {
		err := s.Update(t.Context(), func(tx kernel.Tx) error {
			l := storetest.Leaf(t, "acme", ledger.KindEvent, "", fmt.Sprint(i))
			l.Part = big
			_, err := tx.Append(l)
			return err
		})
		if err == nil {
			err = s.View(t.Context(), func(tx kernel.Tx) error { _, err := tx.Leaf("acme", int64(i)); return err })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(s.opt.Path + "-wal")
	if err != nil || info.Size() > 4*logBytes {
		t.Errorf("after 104 MiB the log has %d MiB (%v)", info.Size()>>20, err)
	}
}

// Another process reads while this one writes, and after it has closed.
func TestReadFromAnotherProcess(t *testing.T) {
	s := openStore(t, t.TempDir())
	read := func() string {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), readEnv+"="+s.opt.Path)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("the reader: %v: %s", err, out)
		}
		return string(out)
	}
	appendN(t, s, 0, 7)
	if got := read(); got != "7" {
		t.Errorf("the reader sees %q leaves of 7", got)
	}
	appendN(t, s, 7, 300)
	if got := read(); got != "307" {
		t.Errorf("the reader sees %q leaves of 307", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != "307" {
		t.Errorf("after the owner has gone the reader sees %q leaves of 307", got)
	}
}

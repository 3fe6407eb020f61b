// Package storetest is the contract that every kernel.Store passes. A store's
// own test calls Run, and Faults where it can be made to fail.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Open opens the store whose state is in dir, and which is there again when
// dir is opened again after Close. It fails t if it cannot. The store's clock
// is time.Now, and it has Tables.
type Open func(t testing.TB, dir string) kernel.Store

// Run tests everything that the contract says of a store.
func Run(t *testing.T, open Open) {
	groups := []struct {
		name string
		fn   func(*testing.T, Open)
	}{
		{"ledger", testLedger},
		{"uniqueness", testUniqueness},
		{"tree", testTree},
		{"open", testOpen},
		{"erasure", testErasure},
		{"checkpoints", testCheckpoints},
		{"counters", testCounters},
		{"rates", testRates},
		{"agents", testAgents},
		{"revocation", testRevocation},
		{"reviews", testReviews},
		{"replays", testReplays},
		{"rows", testRows},
		{"scans", testScans},
		{"transactions", testTransactions},
		{"views", testViews},
		{"concurrency", testConcurrency},
		{"backup", testBackup},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) { g.fn(t, open) })
	}
}

// start is the instant at which the tests begin, in microseconds as stores
// keep times.
func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC) }

// Crossing makes the n-th crossing id of a run: UUIDv7, ordered by n.
func Crossing(n int) string {
	return fmt.Sprintf("0190%04x-%04x-7abc-8def-%012x", n>>16&0xffff, n&0xffff, n)
}

// Record makes a record that passed the redaction engine: a JSON object with
// that note. It fails t if it cannot.
func Record(t testing.TB, note string) redact.Record {
	t.Helper()
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(map[string]string{"note": note})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Seal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Leaf makes a leaf; a begin and an entry are of crossing.
func Leaf(t testing.TB, tenant string, kind ledger.Kind, crossing, note string) ledger.Leaf {
	t.Helper()
	return ledger.Leaf{Tenant: tenant, Kind: kind, Crossing: crossing, At: start(), Record: Record(t, note)}
}

// suite is one store under test and where it lives.
type suite struct {
	testing.TB
	open Open
	dir  string
	kernel.Store
}

func begin(t testing.TB, open Open) *suite {
	t.Helper()
	s := &suite{TB: t, open: open, dir: t.TempDir()}
	s.Store = open(t, s.dir)
	t.Cleanup(func() { s.Store.Close() })
	return s
}

// again closes the store and opens it again.
func (s *suite) again() {
	s.Helper()
	if err := s.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	s.Store = s.open(s.TB, s.dir)
}

func (s *suite) update(fn func(kernel.Tx) error) {
	s.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		s.Fatalf("update: %v", err)
	}
}

func (s *suite) view(fn func(kernel.Tx) error) {
	s.Helper()
	if err := s.View(context.Background(), fn); err != nil {
		s.Fatalf("view: %v", err)
	}
}

// everywhere calls fn where what was written must be seen: in an update, in a
// view, and in both after the store was opened again.
func (s *suite) everywhere(fn func(tx kernel.Tx) error) {
	s.Helper()
	s.update(fn)
	s.view(fn)
	s.again()
	s.view(fn)
	s.update(fn)
}

func (s *suite) append(leaves ...ledger.Leaf) []ledger.Place {
	s.Helper()
	var out []ledger.Place
	s.update(func(tx kernel.Tx) error {
		for _, l := range leaves {
			p, err := tx.Append(l)
			if err != nil {
				return err
			}
			out = append(out, p)
		}
		return nil
	})
	return out
}

// want fails unless err is what it should be.
func want(t testing.TB, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: got error %v, want %v", what, err, target)
	}
}

// refused fails unless err is an error whose text has the words.
func refused(t testing.TB, what string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: got error %v, want one with %q", what, err, words)
	}
}

// differ is an error unless got and want have the same JSON.
func differ(what string, got, want any) error {
	g, err := json.Marshal(got)
	if err != nil {
		return err
	}
	w, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if string(g) != string(w) {
		return fmt.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
	return nil
}

package kernel_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// countingStore counts what is read, by verb.
type countingStore struct {
	kernel.Store
	mu    sync.Mutex
	reads map[string]int // guarded by mu
}

func (s *countingStore) View(ctx context.Context, fn func(kernel.Tx) error) error {
	return s.Store.View(ctx, func(tx kernel.Tx) error { return fn(&countingTx{tx, s}) })
}

func (s *countingStore) Update(ctx context.Context, fn func(kernel.Tx) error) error {
	return s.Store.Update(ctx, func(tx kernel.Tx) error { return fn(&countingTx{tx, s}) })
}

func (s *countingStore) countRead(verb string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[verb]++
}

// takeReads returns what was read since the last call.
func (s *countingStore) takeReads() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, verb := range slices.Sorted(maps.Keys(s.reads)) {
		out = append(out, fmt.Sprint(verb, " ", s.reads[verb]))
	}
	clear(s.reads)
	return strings.Join(out, ", ")
}

type countingTx struct {
	kernel.Tx
	s *countingStore
}

func (t *countingTx) Leaf(tenant string, seq int64) (ledger.Stored, error) {
	t.s.countRead("leaf")
	return t.Tx.Leaf(tenant, seq)
}

func (t *countingTx) Crossing(tenant, id string) ([]ledger.Stored, error) {
	t.s.countRead("crossing")
	return t.Tx.Crossing(tenant, id)
}

func (t *countingTx) Heads() ([]ledger.Head, error) {
	t.s.countRead("heads")
	return t.Tx.Heads()
}

func (t *countingTx) Counter(d budget.Draw) (budget.Counter, error) {
	t.s.countRead("counter")
	return t.Tx.Counter(d)
}

func (t *countingTx) PeekRate(rs []budget.Rate, now time.Time) (*budget.Refusal, error) {
	t.s.countRead("rate")
	return t.Tx.PeekRate(rs, now)
}

func (t *countingTx) Agent(tenant, name string) (holdfast.Agent, error) {
	t.s.countRead("agent")
	return t.Tx.Agent(tenant, name)
}

func (t *countingTx) Revoked(tenant, jti string) (bool, error) {
	t.s.countRead("revoked")
	return t.Tx.Revoked(tenant, jti)
}

func (t *countingTx) Review(id string) (review.Review, error) {
	t.s.countRead("review")
	return t.Tx.Review(id)
}

func (t *countingTx) ReviewFor(b review.Binding) (review.Review, error) {
	t.s.countRead("review")
	return t.Tx.ReviewFor(b)
}

func (t *countingTx) Reviews(tenant string, state review.State, limit int) ([]review.Review, error) {
	t.s.countRead("reviews")
	return t.Tx.Reviews(tenant, state, limit)
}

func (t *countingTx) Replay(key string) (kernel.Replay, error) {
	t.s.countRead("replay")
	return t.Tx.Replay(key)
}

func (t *countingTx) Row(d *table.Def, key []any) (table.Row, error) {
	t.s.countRead("row")
	return t.Tx.Row(d, key)
}

func (t *countingTx) Scan(d *table.Def, in table.Range, fn func(table.Row) error) error {
	t.s.countRead("scan")
	return t.Tx.Scan(d, in, fn)
}

// TestPlainCrossingReadsNoRowMore: what a crossing reads in which no feature takes part, as
// counted before there were features (at b7b4701, where "row" was a value of meta).
func TestPlainCrossingReadsNoRowMore(t *testing.T) {
	counted := &countingStore{reads: map[string]int{}}
	w := newWorld(t, "", withFeature(&probe{}), func(c *kernel.Config, _ *world) {
		counted.Store = c.Store
		c.Store = counted
	})
	for _, row := range []struct{ name, boundary, want string }{
		{"low", "test/low", "agent 2, revoked 2"},
		{"consuming", "test/cost", "agent 2, counter 2, revoked 2"},
		{"replayed", "test/replay", "agent 2, counter 2, replay 2, revoked 2"},
		{"limited", "test/rate", "agent 2, rate 1, revoked 2"},
	} {
		w.passes(w.req(row.boundary, `{"first":1}`))
		counted.takeReads()
		w.passes(w.req(row.boundary, `{"second":1}`))
		if got := counted.takeReads(); got != row.want {
			t.Errorf("%s: %s, expected %s", row.name, got, row.want)
		}
	}
	h := w.held(w.req("test/high", `{"n":1}`))
	counted.takeReads()
	w.held(w.req("test/high", `{"n":2}`))
	held := counted.takeReads()
	w.approve(h.Review)
	counted.takeReads()
	w.passes(w.req("test/high", `{"n":1}`))
	if got, want := held+" | "+counted.takeReads(),
		"agent 2, review 2, reviews 3, revoked 2, row 1 | agent 2, review 2, revoked 2, row 1"; got != want {
		t.Errorf("held and approved: %s, expected %s", got, want)
	}
}

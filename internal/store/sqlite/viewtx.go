package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
	"github.com/holdfast-dev/holdfast/ledger"
)

// viewTx reads one committed version: from memory what has not changed since,
// everything else in the version's read transaction.
type viewTx struct {
	s    *Store
	snap *snapshot
	over bool
}

// do reads the database.
func (tx *viewTx) do(fn func(*connection.Conn) error) error {
	if tx.over {
		return errOver
	}
	return tx.snap.do(tx.s.readers, fn)
}

// cached reads memory; nothing is there in a store open for reading only.
func (tx *viewTx) cached(fn func(v uint64) bool) bool {
	if tx.over || tx.s.opt.ReadOnly {
		return false
	}
	tx.s.seen.RLock()
	defer tx.s.seen.RUnlock()
	return fn(tx.snap.version)
}

func (tx *viewTx) tenant(c *connection.Conn, name string) (tenantID, error) {
	t, ok, err := readTenant(c, name)
	if err == nil && !ok {
		err = notFound("tenant %q", name)
	}
	return t, err
}

func (tx *viewTx) Leaf(tenant string, seq int64) (l ledger.Stored, err error) {
	if seq < 0 || seq >= 1<<schema.SeqBits {
		return l, notFound("leaf %d of tenant %q", seq, tenant)
	}
	err = tx.do(func(c *connection.Conn) error {
		t, err := tx.tenant(c, tenant)
		if err == nil {
			l, err = readLeaf(c, t, seq)
		}
		return err
	})
	return l, err
}

func (tx *viewTx) Crossing(tenant, id string) (out []ledger.Stored, err error) {
	err = tx.do(func(c *connection.Conn) error {
		t, err := tx.tenant(c, tenant)
		if err != nil {
			return err
		}
		x, err := readCrossed(c, id)
		if err != nil {
			return err
		}
		if x.tenant != t.id || id == "" {
			return notFound("crossing %q of tenant %q", id, tenant)
		}
		for _, seq := range [...]int64{x.begin, x.entry} {
			if seq < 0 {
				continue
			}
			l, err := readLeaf(c, t, seq)
			if err != nil {
				return err
			}
			out = append(out, l)
		}
		return nil
	})
	return out, err
}

func (tx *viewTx) Leaves(tenant string, from, to int64, fn func(ledger.Stored) error) error {
	var t tenantID
	var found bool
	var conn1 *connection.Conn
	err := tx.do(func(c *connection.Conn) (err error) {
		conn1 = c
		t, found, err = readTenant(c, tenant)
		return err
	})
	if err != nil || !found {
		return err
	}
	lock := func(step func() error) error { return tx.do(func(*connection.Conn) error { return step() }) }
	return eachLeaf(conn1, t, from, to, lock, fn)
}

func (tx *viewTx) Events(tenant, crossing string, limit int) (out []ledger.Stored, err error) {
	if crossing == "" || limit <= 0 {
		return nil, nil
	}
	err = tx.do(func(c *connection.Conn) error {
		t, found, err := readTenant(c, tenant)
		if err == nil && found {
			out, err = readEvents(c, t, crossing, limit)
		}
		return err
	})
	return out, err
}

func (tx *viewTx) Open(fn func(ledger.Stored) error) error {
	var open []begun
	err := tx.do(func(c *connection.Conn) error {
		hs, err := readHeads(c)
		for _, h := range hs {
			if err != nil {
				break
			}
			var some []begun
			some, err = readOpen(c, h)
			open = append(open, some...)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(open, oldestFirst)
	for _, o := range open {
		var l ledger.Stored
		err := tx.do(func(c *connection.Conn) (err error) { l, err = readLeaf(c, o.tenantID, o.seq); return err })
		if err == nil {
			err = fn(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (tx *viewTx) Heads() ([]ledger.Head, error) {
	var hs []ledger.Head
	if tx.cached(func(v uint64) bool { return tx.cachedHeads(v, &hs) }) {
		slices.SortFunc(hs, func(a, b ledger.Head) int { return cmp.Compare(a.Tenant, b.Tenant) })
		return hs, nil
	}
	hs = nil
	err := tx.do(func(c *connection.Conn) error {
		rows, err := readHeads(c)
		for _, h := range rows {
			hs = append(hs, ledger.Head{Tenant: h.name, Size: h.size, Root: h.root})
		}
		return err
	})
	return hs, err
}

func (tx *viewTx) cachedHeads(v uint64, hs *[]ledger.Head) bool {
	for _, t := range tx.s.tenants {
		if t.since > v {
			return false
		}
		if t.pub.Size > 0 {
			*hs = append(*hs, t.pub)
		}
	}
	return true
}

func (tx *viewTx) Nodes(tenant string) ledger.Nodes {
	t := tenantID{tenant, -1}
	err := tx.do(func(c *connection.Conn) (err error) { t, err = tx.tenant(c, tenant); return err })
	return nodes{t: t, do: func(fn func(*connection.Conn) error) error {
		if err != nil {
			return err
		}
		return tx.do(fn)
	}}
}

func (tx *viewTx) Checkpoint(tenant string) (cp ledger.SignedCheckpoint, err error) {
	err = tx.do(func(c *connection.Conn) error { cp, err = readCheckpoint(c, tenant); return err })
	return cp, err
}

func (tx *viewTx) Counter(d budget.Draw) (budget.Counter, error) {
	var v counterSlot
	known := tx.cached(func(at uint64) (ok bool) { v, ok = tx.s.counters.view(d.Key, at); return ok })
	if !known {
		err := tx.do(func(c *connection.Conn) (err error) { v.val, v.ok, err = readCounter(c, d.Key); return err })
		if err != nil {
			return budget.Counter{}, err
		}
	}
	return inWindow(v, d), nil
}

func (tx *viewTx) Counters(prefix string, fn func(string, budget.Counter) error) error {
	for after := ""; ; {
		var page []keyed
		if err := tx.do(func(c *connection.Conn) (err error) {
			page, err = readCounters(c, prefix,
				after)
			return err
		}); err != nil {
			return err
		}
		for _, k := range page {
			if err := fn(k.key, k.Counter); err != nil {
				return err
			}
		}
		if len(page) < counterPage {
			return nil
		}
		after = page[len(page)-1].key
	}
}

func (tx *viewTx) PeekRate(rs []budget.Rate, now time.Time) (*budget.Refusal, error) {
	for i := range rs {
		want := rs[i]
		if ref := badRate(&want); ref != nil {
			return ref, nil
		}
		nth, ok, err := tx.taking(want.Key, want.Limit)
		if err != nil {
			return nil, err
		}
		if ref := full(&want, now, nth, ok); ref != nil {
			return ref, nil
		}
	}
	return nil, nil
}

// taking is the n-th committed taking from the end.
func (tx *viewTx) taking(key string, n int) (at int64, ok bool, err error) {
	known := tx.cached(func(v uint64) (known bool) {
		if r := tx.s.rates[key]; r != nil {
			at, ok, known = r.view(n, v)
		}
		return known
	})
	if known {
		return at, ok, nil
	}
	err = tx.do(func(c *connection.Conn) error {
		r, err := readRate(c, key)
		if err == nil {
			at, ok, _ = r.view(n, r.since)
		}
		return err
	})
	return at, ok, err
}

func (tx *viewTx) Agent(tenant, name string) (holdfast.Agent, error) {
	var v slot[holdfast.Agent]
	known := tx.cached(func(at uint64) (ok bool) { v, ok = tx.s.agents.view(pairKey(tenant, name), at); return ok })
	if !known {
		err := tx.do(func(c *connection.Conn) error {
			r, err := c.One("SELECT doc FROM agent WHERE tenant = ? AND name = ?", tenant, name)
			if err == nil && r != nil {
				v.ok = true
				v.val, err = readAgent(r)
			}
			return err
		})
		if err != nil {
			return holdfast.Agent{}, err
		}
	}
	if tx.over {
		return holdfast.Agent{}, errOver
	}
	if !v.ok {
		return holdfast.Agent{}, notFound("agent %q of tenant %q", name, tenant)
	}
	return v.val, nil
}

func (tx *viewTx) Agents(tenant string) (as []holdfast.Agent, err error) {
	err = tx.do(func(c *connection.Conn) error { as, err = readAgents(c, tenant); return err })
	return as, err
}

func (tx *viewTx) Revoked(tenant, jti string) (bool, error) {
	var v slot[bool]
	known := tx.cached(func(at uint64) (ok bool) { v, ok = tx.s.jtis.view(pairKey(tenant, jti), at); return ok })
	if known {
		return v.ok, nil
	}
	err := tx.do(func(c *connection.Conn) (err error) { v.ok, err = readRevoked(c, tenant, jti); return err })
	return v.ok, err
}

func (tx *viewTx) Review(id string) (v review.Review, err error) {
	err = tx.do(func(c *connection.Conn) error { v, err = oneReview(c, "id = ?", id); return err })
	return v, err
}

func (tx *viewTx) ReviewFor(b review.Binding) (v review.Review, err error) {
	err = tx.do(func(c *connection.Conn) error {
		v, err = oneReview(c, bindingIs, b.Tenant, b.Agent, b.Boundary, b.Exact)
		return err
	})
	return v, err
}

func (tx *viewTx) Reviews(tenant string, state review.State, limit int) (vs []review.Review, err error) {
	if limit <= 0 {
		return nil, nil
	}
	where, args := reviewFilter(tenant, state)
	err = tx.do(func(c *connection.Conn) error { vs, err = readReviews(c, limit, where, args...); return err })
	return vs, err
}

func (tx *viewTx) Replay(key string) (r kernel.Replay, err error) {
	var ok bool
	err = tx.do(func(c *connection.Conn) error { r, ok, err = readReplay(c, key); return err })
	return liveReplay(r, ok, err, key, tx.s.now())
}

func readOnly(verb string) error { return fmt.Errorf("%s: %w", verb, kernel.ErrReadOnly) }

func (tx *viewTx) Append(ledger.Leaf) (ledger.Place, error) {
	return ledger.Place{}, readOnly("append")
}
func (tx *viewTx) PutCheckpoint(ledger.SignedCheckpoint) error { return readOnly("put checkpoint") }
func (tx *viewTx) Draw([]budget.Draw) (*budget.Refusal, error) { return nil, readOnly("draw") }
func (tx *viewTx) Settle([]budget.Draw, []int64) error         { return readOnly("settle") }
func (tx *viewTx) Rate([]budget.Rate, time.Time) (*budget.Refusal, error) {
	return nil, readOnly("rate")
}
func (tx *viewTx) PutAgent(holdfast.Agent) error               { return readOnly("put agent") }
func (tx *viewTx) DropAgent(string, string) error              { return readOnly("drop agent") }
func (tx *viewTx) Revoke(_, _ string, _ time.Time) error       { return readOnly("revoke") }
func (tx *viewTx) PutReview(review.Review, review.State) error { return readOnly("put review") }
func (tx *viewTx) PutReplay(kernel.Replay) error               { return readOnly("put replay") }
func (tx *viewTx) DropReplays(time.Time) (int, error)          { return 0, readOnly("drop replays") }
func (tx *viewTx) EraseParts(string, int64, int64) error       { return readOnly("erase parts") }

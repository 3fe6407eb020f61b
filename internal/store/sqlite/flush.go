package sqlite

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// fault asks the test seam.
func (s *Store) fault(step string) error {
	if s.opt.Fault == nil {
		return nil
	}
	return s.opt.Fault(step)
}

// flush brings a sealed batch to disk as one transaction. A crash before the
// COMMIT leaves nothing of it, a crash after it all of it. alone is
// commitOne's.
func (s *Store) flush(b *batch, alone bool) error {
	err := s.fault("begin")
	if err == nil {
		_, err = s.write.Exec("BEGIN IMMEDIATE")
	}
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err = s.fault("flush"); err == nil {
		err = b.writeTo(s.write)
	}
	if err != nil {
		err = fmt.Errorf("write: %w", err)
	}
	if err == nil {
		err = s.keepViews(alone)
	}
	if err == nil {
		if err = s.fault("commit"); err == nil {
			_, err = s.write.Exec("COMMIT")
		}
		if err != nil {
			err = fmt.Errorf("commit: %w", err)
		}
	}
	if err != nil {
		_ = s.write.Script("ROLLBACK")
		return err
	}
	if err = s.fault("committed"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// writeTo writes everything the batch holds, into an open transaction.
func (b *batch) writeTo(c *connection.Conn) error {
	steps := [...]func(*connection.Conn) error{
		b.writeTenants, b.writeLeaves, b.writeTiles, b.writeHeads, b.writeCounters, b.writeRates,
		b.writeAgents, b.writeRevoked, b.writeReviews, b.writeReplays, b.writeRows, b.writeRest,
	}
	for _, step := range steps {
		if err := step(c); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeTenants(c *connection.Conn) error {
	for _, t := range b.tenants {
		if _, err := c.Exec("INSERT INTO tenant (id, name) VALUES (?, ?)", t.id, t.name); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf is a statement that inserts n rows of that many columns.
func rowsOf(insert string, columns, n int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", columns), ",") + ")"
	return insert + " VALUES " + strings.TrimSuffix(strings.Repeat(one+",", n), ",")
}

const insertLeaf = "INSERT INTO leaf (id, kind, at, hash, crossing, record, part)"

// many runs an insert of n rows, several rows at a time, which spares most of
// what a statement costs. add appends the arguments of row i.
func many(c *connection.Conn, insert, conflict string, columns, n int, add func(args []any, i int) []any) error {
	args := make([]any, 0, 16*columns)
	done := 0
	for _, k := range [...]int{16, 4, 1} {
		if n-done < k {
			continue
		}
		st, err := c.Take(rowsOf(insert, columns, k) + conflict)
		for n-done >= k && err == nil {
			args = args[:0]
			for i := range k {
				args = add(args, done+i)
			}
			st.Bind(args)
			_, err = st.Exec()
			done += k
		}
		if st != nil {
			c.Give(st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeLeaves(c *connection.Conn) error {
	return many(c, insertLeaf, "", 7, len(b.leaves), func(args []any, i int) []any { return appendLeaf(args, &b.leaves[i]) })
}

func appendLeaf(args []any, l *leafRow) []any {
	var crossing, part any
	if l.s.Crossing != "" {
		crossing = crossingValue(l.s.Crossing)
	}
	if l.s.Part != nil {
		part = l.s.Part
	}
	return append(args, leafID(l.t.id, l.s.Seq), int64(l.s.Kind), micros(l.s.At), l.s.Hash[:], crossing, l.s.Record, part)
}

func (b *batch) writeTiles(c *connection.Conn) error {
	for _, t := range b.tiles {
		if _, err := c.Exec("INSERT INTO tile (tenant, level, n, root, hashes) VALUES (?, ?, ?, ?, ?)",
			t.t.id, int64(t.Level), t.N, t.Root[:], packHashes(t.Hashes)); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeHeads(c *connection.Conn) error {
	for _, h := range b.heads {
		if _, err := c.Exec(`INSERT INTO head (tenant, size, root, settled) VALUES (?, ?, ?, ?)
			ON CONFLICT (tenant) DO UPDATE SET size = excluded.size, root = excluded.root, settled = excluded.settled`,
			h.t.id, h.head.Size, h.head.Root[:], h.settled); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeCounters(c *connection.Conn) error {
	return many(c, `INSERT INTO counter (key, used, "window")`,
		` ON CONFLICT (key) DO UPDATE SET used = excluded.used, "window" = excluded."window"`, 3, len(b.counters),
		func(args []any, i int) []any {
			ch := &b.counters[i]
			return append(args, ch.c.key, ch.v.val.Used, ch.v.val.Window)
		})
}

func (b *batch) writeRates(c *connection.Conn) error {
	for _, r := range b.rates {
		err := r.chunks(func(chunk, first int64, st []byte) error {
			_, err := c.Exec(`INSERT INTO rate (key, chunk, first, stamps) VALUES (?, ?, ?, ?)
				ON CONFLICT (key, chunk) DO UPDATE SET first = excluded.first, stamps = excluded.stamps`, r.key, chunk, first, st)
			return err
		})
		if err != nil {
			return err
		}
		if oldest, ok := r.stale(); ok {
			if _, err := c.Exec("DELETE FROM rate WHERE key = ? AND chunk < ?", r.key, oldest); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *batch) writeAgents(c *connection.Conn) error {
	for _, ch := range b.agents {
		a := ch.v.val
		if !ch.v.ok {
			tenant, name, _ := strings.Cut(ch.c.key, "\x00")
			if _, err := c.Exec("DELETE FROM agent WHERE tenant = ? AND name = ?", tenant, name); err != nil {
				return err
			}
			continue
		}
		doc, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := c.Exec("INSERT INTO agent (tenant, name, doc) VALUES (?, ?, ?) ON CONFLICT (tenant, name) DO UPDATE SET doc = excluded.doc",
			a.Tenant, a.Name, string(doc)); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeRevoked(c *connection.Conn) error {
	for _, r := range b.revoked {
		if _, err := c.Exec("INSERT INTO revocation (tenant, jti, at) VALUES (?, ?, ?)", r.tenant, r.jti,
			micros(r.at)); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeReviews(c *connection.Conn) error {
	fresh := make(map[string]bool, len(b.fresh))
	for _, id := range b.fresh {
		v := b.reviews[id]
		doc, err := json.Marshal(v)
		if err != nil {
			return err
		}
		fresh[id] = true
		if _, err := c.Exec("INSERT INTO review (id, tenant, agent, boundary, exact, state, created, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			id, v.Tenant, v.Agent, v.Boundary, v.Exact, string(v.State), micros(v.Created), string(doc)); err != nil {
			return err
		}
	}
	for id, v := range b.reviews {
		if fresh[id] {
			continue
		}
		if err := updateReview(c, id, v); err != nil {
			return err
		}
	}
	return nil
}

func updateReview(c *connection.Conn, id string, v review.Review) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return err
	}
	n, err := c.Exec("UPDATE review SET tenant = ?, agent = ?, boundary = ?, exact = ?, state = ?, created = ?, doc = ? WHERE id = ?",
		v.Tenant, v.Agent, v.Boundary, v.Exact, string(v.State), micros(v.Created), string(doc), id)
	if err == nil && n != 1 {
		err = fmt.Errorf("review %q: %d rows changed", id, n)
	}
	return err
}

func (b *batch) writeReplays(c *connection.Conn) error {
	if !b.dropped.IsZero() {
		if _, err := c.Exec("DELETE FROM replay WHERE expires < ?", micros(b.dropped)); err != nil {
			return err
		}
	}
	for key, r := range b.replays {
		if _, err := c.Exec(`INSERT INTO replay (key, exact, crossing, sealed, expires) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET exact = excluded.exact, crossing = excluded.crossing, sealed = excluded.sealed, expires = excluded.expires`,
			key, r.Exact, r.Crossing, r.Sealed, micros(r.Expires)); err != nil {
			return err
		}
	}
	return nil
}

// writeRest writes what was erased and the checkpoints.
func (b *batch) writeRest(c *connection.Conn) error {
	for _, e := range b.erased {
		if _, err := c.Exec("UPDATE leaf SET part = NULL WHERE id >= ? AND id < ? AND part IS NOT NULL", e.from,
			e.to); err != nil {
			return err
		}
	}
	for _, cp := range b.notes {
		if _, err := c.Exec(`INSERT INTO checkpoint (tenant, size, root, at, note) SELECT ?1, ?2, ?3, ?4, ?5
			WHERE NOT EXISTS (SELECT 1 FROM checkpoint WHERE tenant = ?1 AND size = ?2)`,
			cp.Tenant, cp.Size, cp.Root[:], micros(cp.At), cp.Note); err != nil {
			return err
		}
	}
	return nil
}

package sqlite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/mod/sumdb/tlog"
)

// updateTx is one update under way. It writes into the store's current batch
// and keeps how to undo that. Its goroutine holds Store.run.
type updateTx struct {
	s    *Store
	b    *batch
	undo []func()
	over bool
}

var errOver = errors.New("the transaction is over")

func (tx *updateTx) undoTo(mark int) {
	for i := len(tx.undo) - 1; i >= mark; i-- {
		tx.undo[i]()
	}
	tx.undo = tx.undo[:mark]
}

func (tx *updateTx) undoAll() { tx.undoTo(0) }

func (tx *updateTx) undone(fn func()) { tx.undo = append(tx.undo, fn) }

// okName checks names and keys before they are stored.
func okName(what, v string) error {
	switch {
	case v == "":
		return fmt.Errorf("%s is empty", what)
	case len(v) > maxKey:
		return fmt.Errorf("%s has %d bytes, more than %d", what, len(v), maxKey)
	case strings.IndexByte(v, 0) >= 0:
		return fmt.Errorf("%s has a NUL in it", what)
	}
	return nil
}

func okLeaf(l *ledger.Leaf) error {
	n := len(l.Record.Bytes())
	switch {
	case n == 0:
		return fmt.Errorf("append: the record is empty: it did not come from redaction")
	case n > ledger.MaxRecord:
		return fmt.Errorf("append: a record of %d bytes, more than %d", n, ledger.MaxRecord)
	case l.Kind != ledger.KindBegin && l.Kind != ledger.KindEntry && l.Kind != ledger.KindEvent:
		return fmt.Errorf("append: %d is no kind of leaf", l.Kind)
	case l.Part != nil && len(l.Part) < ledger.SaltSize:
		return fmt.Errorf("append: a part of %d bytes has no room for its salt", len(l.Part))
	case len(l.Part) > ledger.MaxPart:
		return fmt.Errorf("append: a part of %d bytes, more than %d", len(l.Part), ledger.MaxPart)
	case l.Kind == ledger.KindEvent && l.Crossing == "":
		return okName("append: the tenant", l.Tenant)
	}
	return errors.Join(okName("append: the tenant", l.Tenant), okName("append: the crossing", l.Crossing))
}

// trunk returns the tenant's tree, made if it is new. A tree without leaves
// is nothing that could be seen, so it is not undone.
func (s *Store) trunk(name string) *trunk {
	t := s.tenants[name]
	if t == nil {
		t = &trunk{tenantID: tenantID{name, s.nextID}, tree: new(ledger.Tree), since: s.version}
		s.nextID++
		s.seen.Lock()
		s.tenants[name] = t
		s.seen.Unlock()
	}
	return t
}

func (tx *updateTx) Append(l ledger.Leaf) (ledger.Place, error) {
	if tx.over {
		return ledger.Place{}, errOver
	}
	if err := okLeaf(&l); err != nil {
		return ledger.Place{}, err
	}
	t := tx.s.trunk(l.Tenant)
	seq := t.size()
	if seq >= 1<<schema.SeqBits || t.id >= 1<<(62-schema.SeqBits) {
		return ledger.Place{}, fmt.Errorf("append: tenant %q is full", l.Tenant)
	}
	if l.Kind != ledger.KindEvent {
		if err := tx.note(t, &l, seq); err != nil {
			return ledger.Place{}, err
		}
	}
	record := l.Record.Bytes()
	place := ledger.Place{Tenant: l.Tenant, Seq: seq, Hash: ledger.LeafHash(record)}
	row := leafRow{t, ledger.Stored{Place: place, Kind: l.Kind, Crossing: l.Crossing, At: utc(l.At), Record: record, Part: l.Part}}
	b := tx.b
	if t.batch != b.no {
		t.batch = b.no
		b.touched = append(b.touched, t)
	}
	t.now, b.leaves = append(t.now, row), append(b.leaves, row)
	tx.undone(func() { t.now, b.leaves = t.now[:len(t.now)-1], b.leaves[:len(b.leaves)-1] })
	return place, nil
}

// utc is the time as it will be read back.
func utc(t time.Time) time.Time { return fromMicros(micros(t)) }

// note holds the uniqueness of begin and entry.
func (tx *updateTx) note(t *trunk, l *ledger.Leaf, seq int64) error {
	f, err := tx.s.flow(l.Crossing)
	if err != nil {
		return err
	}
	switch {
	case f == nil:
		f = &flow{id: l.Crossing, t: t, begin: -1, entry: -1}
	case f.t != t:
		return fmt.Errorf("append: crossing %s is another tenant's: %w", l.Crossing, kernel.ErrExists)
	case f.entry >= 0:
		return fmt.Errorf("append: crossing %s has its entry, leaf %d: %w", l.Crossing, f.entry, kernel.ErrExists)
	case l.Kind == ledger.KindBegin:
		return fmt.Errorf("append: crossing %s has its begin, leaf %d: %w", l.Crossing, f.begin, kernel.ErrExists)
	}
	was := *f
	f.batch = tx.b.no
	if l.Kind == ledger.KindEntry {
		f.entry = seq
	} else {
		f.begin, f.at = seq, micros(l.At)
		t.begins = append(t.begins, f)
	}
	fs := tx.s.flows
	if fs.m[f.id] != f {
		fs.add(f, tx.s.settled)
	}
	tx.undone(func() {
		*f = was
		if l.Kind == ledger.KindBegin {
			t.begins = t.begins[:len(t.begins)-1]
		}
		if f.begin < 0 && f.entry < 0 {
			delete(fs.m, f.id)
		}
	})
	return nil
}

// flow finds a crossing in memory or, unless its id is new, in the database.
func (s *Store) flow(id string) (*flow, error) {
	if f := s.flows.m[id]; f != nil {
		return f, nil
	}
	if s.flows.fresh(id) {
		return nil, nil
	}
	x, err := readCrossed(s.side, id)
	if err != nil || x.begin < 0 && x.entry < 0 {
		return nil, err
	}
	for _, t := range s.tenants {
		if t.id == x.tenant {
			return &flow{id: id, t: t, begin: x.begin, entry: x.entry}, nil
		}
	}
	return nil, fmt.Errorf("crossing %s belongs to tenant number %d, which does not exist", id, x.tenant)
}

// own makes a leaf from memory the caller's.
func own(l ledger.Stored) ledger.Stored {
	l.Record, l.Part = bytes.Clone(l.Record), bytes.Clone(l.Part)
	return l
}

func (tx *updateTx) Leaf(tenant string, seq int64) (ledger.Stored, error) {
	t, err := tx.tenant(tenant)
	if err != nil {
		return ledger.Stored{}, err
	}
	return tx.leaf(t, seq)
}

func (tx *updateTx) tenant(name string) (*trunk, error) {
	if tx.over {
		return nil, errOver
	}
	t := tx.s.tenants[name]
	if t == nil {
		return nil, notFound("tenant %q", name)
	}
	return t, nil
}

func (tx *updateTx) leaf(t *trunk, seq int64) (ledger.Stored, error) {
	if l, ok := t.leaf(seq); ok {
		return own(l), nil
	}
	if seq < 0 || seq >= t.committed {
		return ledger.Stored{}, notFound("leaf %d of tenant %q", seq, t.name)
	}
	return readLeaf(tx.s.side, t.tenantID, seq)
}

func (tx *updateTx) Crossing(tenant, id string) ([]ledger.Stored, error) {
	t, err := tx.tenant(tenant)
	if err != nil {
		return nil, err
	}
	f, err := tx.s.flow(id)
	if err != nil {
		return nil, err
	}
	if f == nil || f.t != t {
		return nil, notFound("crossing %q of tenant %q", id, tenant)
	}
	var out []ledger.Stored
	for _, seq := range [...]int64{f.begin, f.entry} {
		if seq < 0 {
			continue
		}
		l, err := tx.leaf(t, seq)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

func (tx *updateTx) Leaves(tenant string, from, to int64, fn func(ledger.Stored) error) error {
	if tx.over {
		return errOver
	}
	t := tx.s.tenants[tenant]
	if t == nil {
		return nil
	}
	from, size := max(from, 0), t.size()
	if from < t.committed {
		err := eachLeaf(tx.s.side, t.tenantID, from, min(to, t.committed), nil, fn)
		if err != nil {
			return err
		}
	}
	for seq := max(from, t.committed); seq < min(to, size); seq++ {
		l, _ := t.leaf(seq)
		if err := fn(own(l)); err != nil {
			return err
		}
	}
	return nil
}

func (tx *updateTx) Events(tenant, crossing string, limit int) ([]ledger.Stored, error) {
	if tx.over {
		return nil, errOver
	}
	t := tx.s.tenants[tenant]
	if t == nil || crossing == "" || limit <= 0 {
		return nil, nil
	}
	out, err := readEvents(tx.s.side, t.tenantID, crossing, limit)
	for seq := t.committed; err == nil && seq < t.size() && len(out) < limit; seq++ {
		if l, ok := t.leaf(seq); ok && l.Kind == ledger.KindEvent && l.Crossing == crossing {
			out = append(out, own(l))
		}
	}
	return out, err
}

func (tx *updateTx) Open(fn func(ledger.Stored) error) error {
	if tx.over {
		return errOver
	}
	var open []begun
	for _, f := range tx.s.flows.m {
		if f.open() {
			open = append(open, begun{f.t.tenantID, f.begin, f.at, f.id})
		}
	}
	slices.SortFunc(open, oldestFirst)
	for _, o := range open {
		l, err := tx.leaf(tx.s.tenants[o.name], o.seq)
		if err == nil {
			err = fn(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (tx *updateTx) Heads() ([]ledger.Head, error) {
	if tx.over {
		return nil, errOver
	}
	var hs []ledger.Head
	for name, t := range tx.s.tenants {
		if t.size() == 0 {
			continue
		}
		tree := t.tree
		if len(t.now) > 0 {
			tree = tree.Clone()
			for i := range t.now {
				tree.Append(t.now[i].s.Hash)
			}
		}
		hs = append(hs, tree.Head(name))
	}
	slices.SortFunc(hs, func(a, b ledger.Head) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return hs, nil
}

func (tx *updateTx) Nodes(tenant string) ledger.Nodes {
	t := tx.s.tenants[tenant]
	if t == nil {
		t = &trunk{tenantID: tenantID{tenant, -1}, tree: new(ledger.Tree)}
	}
	return &updateNodes{tx: tx, t: t}
}

// updateNodes lays the leaves in memory over the database's.
type updateNodes struct {
	tx *updateTx
	t  *trunk
}

func (n *updateNodes) LeafHashes(from, to int64) ([]tlog.Hash, error) {
	if n.tx.over {
		return nil, errOver
	}
	if from < 0 || from > to || to > n.t.size() {
		return nil, notFound("leaves [%d, %d) of tenant %q", from, to, n.t.name)
	}
	var hs []tlog.Hash
	if from < n.t.committed {
		var err error
		if hs, err = readLeafHashes(n.tx.s.side, n.t.tenantID, from, min(to, n.t.committed)); err != nil {
			return nil, err
		}
	}
	for seq := max(from, n.t.committed); seq < to; seq++ {
		l, _ := n.t.leaf(seq)
		hs = append(hs, l.Hash)
	}
	return hs, nil
}

// inDB says whether the tile is complete among the committed leaves.
func (n *updateNodes) inDB(level int, i int64) bool {
	return level < 5 && (i+1)<<(8*uint(level+1)) <= n.t.committed
}

func (n *updateNodes) Tile(level int, i int64) ([]tlog.Hash, error) {
	if n.tx.over {
		return nil, errOver
	}
	if level < 0 || level >= 5 || i < 0 || (i+1)<<(8*uint(level+1)) > n.t.size() {
		return nil, notFound("tile %d at level %d of tenant %q", i, level, n.t.name)
	}
	switch {
	case n.inDB(level, i):
		return readTile(n.tx.s.side, n.t.tenantID, level, i)
	case level == 0:
		return n.LeafHashes(i*ledger.TileWidth, (i+1)*ledger.TileWidth)
	}
	return n.Roots(level-1, i*ledger.TileWidth, (i+1)*ledger.TileWidth)
}

// Roots implements ledger.Roots.
func (n *updateNodes) Roots(level int, from, to int64) ([]tlog.Hash, error) {
	mid := from
	for mid < to && n.inDB(level, mid) {
		mid++
	}
	hs, err := readRoots(n.tx.s.side, n.t.tenantID, level, from, mid)
	for i := mid; i < to && err == nil; i++ {
		var tile []tlog.Hash
		if tile, err = n.Tile(level, i); err == nil {
			hs = append(hs, fullRoot(tile))
		}
	}
	return hs, err
}

// fullRoot is the root over a power of two hashes.
func fullRoot(hs []tlog.Hash) tlog.Hash {
	if len(hs) == 1 {
		return hs[0]
	}
	return tlog.NodeHash(fullRoot(hs[:len(hs)/2]), fullRoot(hs[len(hs)/2:]))
}

func (tx *updateTx) PutCheckpoint(c ledger.SignedCheckpoint) error {
	if tx.over {
		return errOver
	}
	if err := okCheckpoint(&c); err != nil {
		return err
	}
	b := tx.b
	b.notes = append(b.notes, c)
	tx.undone(func() { b.notes = b.notes[:len(b.notes)-1] })
	return nil
}

func okCheckpoint(c *ledger.SignedCheckpoint) error {
	if c.Size < 0 || len(c.Note) == 0 || len(c.Note) > maxDoc {
		return fmt.Errorf("checkpoint: size %d with a note of %d bytes", c.Size, len(c.Note))
	}
	return okName("checkpoint: the tenant", c.Tenant)
}

func (tx *updateTx) Checkpoint(tenant string) (ledger.SignedCheckpoint, error) {
	if tx.over {
		return ledger.SignedCheckpoint{}, errOver
	}
	best, err := readCheckpoint(tx.s.side, tenant)
	if err != nil && !errors.Is(err, kernel.ErrNotFound) {
		return best, err
	}
	for _, b := range tx.layers() {
		for _, c := range b.notes {
			if c.Tenant == tenant && (err != nil || c.Size > best.Size) {
				best, err = c, nil
				best.At, best.Note = utc(c.At), bytes.Clone(c.Note)
			}
		}
	}
	return best, err
}

// layers are the batches over the database, oldest first.
func (tx *updateTx) layers() []*batch {
	if tx.s.fly != nil {
		return []*batch{tx.s.fly, tx.b}
	}
	return []*batch{tx.b}
}

// eachLeaf walks leaves of the database. lock, where there is one, is held
// for each step but not while fn runs.
func eachLeaf(c *connection.Conn, t tenantID, from, to int64, lock func(func() error) error,
	fn func(ledger.Stored) error) error {
	if from >= to {
		return nil
	}
	if lock == nil {
		lock = func(step func() error) error { return step() }
	}
	var k *connection.Cursor
	err := lock(func() (err error) {
		k, err = c.OpenCursor(leafColumns+"WHERE id >= ? AND id < ? ORDER BY id", leafID(t.id, max(from, 0)),
			leafID(t.id, min(to, 1<<schema.SeqBits)))
		return err
	})
	if err != nil {
		return err
	}
	defer lock(func() error { return k.Close() })
	for {
		var l ledger.Stored
		var r connection.Row
		err := lock(func() (err error) {
			if r, err = k.Next(); err == nil && r != nil {
				l, err = stored(t.name, r)
			}
			return err
		})
		if err != nil || r == nil {
			return err
		}
		if err := fn(l); err != nil {
			return err
		}
	}
}

// EraseParts lets the commit erase the parts of leaves that are in the
// database already; records and hashes stay (D14).
func (tx *updateTx) EraseParts(tenant string, from, to int64) error {
	if tx.over {
		return errOver
	}
	t := tx.s.tenants[tenant]
	if t == nil {
		return notFound("tenant %q", tenant)
	}
	if stored := t.size() - int64(len(t.now)); from < 0 || to < from || to > stored {
		return fmt.Errorf("parts of leaves %d to %d of tenant %q, which has %d", from, to, tenant, stored)
	}
	b, n := tx.b, len(tx.b.erased)
	b.erased = append(b.erased, erasure{leafID(t.id, from), leafID(t.id, to)})
	tx.undone(func() { b.erased = b.erased[:n] })
	return nil
}

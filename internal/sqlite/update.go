package sqlite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/budget"
	"github.com/holdfast-dev/holdfast/internal/review"
	"github.com/holdfast-dev/holdfast/kernel"
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
	if seq >= 1<<seqBits || t.id >= 1<<(62-seqBits) {
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

// counterCell returns the cell of a key, read if it is not in memory.
func (tx *updateTx) counterCell(key string) (*cell[budget.Counter], error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	if c := s.counters.m[key]; c != nil {
		return c, nil
	}
	if err := okName("the counter's key", key); err != nil {
		return nil, err
	}
	v, ok, err := readCounter(s.side, key)
	if err != nil {
		return nil, err
	}
	return s.counters.put(&s.seen, key, counterSlot{v, ok}, s.version, s.settled), nil
}

// inWindow is the counter as a draw sees it: another window counts as zero.
func inWindow(s counterSlot, d budget.Draw) budget.Counter {
	if s.ok && s.val.Window == d.Window {
		return s.val
	}
	return budget.Counter{Window: d.Window}
}

func (tx *updateTx) Counter(d budget.Draw) (budget.Counter, error) {
	c, err := tx.counterCell(d.Key)
	if err != nil {
		return budget.Counter{}, err
	}
	return inWindow(c.now, d), nil
}

func (tx *updateTx) setCounter(c *cell[budget.Counter], v budget.Counter) {
	was := c.now
	tx.s.counters.touch(c, tx.b.no)
	c.now = counterSlot{v, true}
	tx.undone(func() { c.now = was })
}

func (tx *updateTx) Draw(ds []budget.Draw) (*budget.Refusal, error) {
	mark := len(tx.undo)
	for _, d := range ds {
		c, err := tx.counterCell(d.Key)
		if err != nil {
			tx.undoTo(mark)
			return nil, err
		}
		v := inWindow(c.now, d)
		if c.now.ok && 0 < d.Window && d.Window < c.now.val.Window {
			// The clock went backwards: the newer window is drawn on, so
			// that no window is ever filled twice.
			v = c.now.val
		}
		if r := budget.Fits(d, v); r != nil {
			tx.undoTo(mark)
			return r, nil
		}
		v.Used += d.Amount
		tx.setCounter(c, v)
	}
	return nil, nil
}

func (tx *updateTx) Settle(ds []budget.Draw, used []int64) error {
	if len(ds) != len(used) {
		return fmt.Errorf("settle: %d draws and %d amounts", len(ds), len(used))
	}
	for i, u := range used {
		if u < 0 || ds[i].Amount < 0 {
			return fmt.Errorf("settle %s: a negative amount", ds[i].Key)
		}
	}
	mark := len(tx.undo)
	for i, d := range ds {
		c, err := tx.counterCell(d.Key)
		if err != nil {
			tx.undoTo(mark)
			return err
		}
		if !c.now.ok || c.now.val.Window != d.Window {
			continue
		}
		v := c.now.val
		rest := max(v.Used-d.Amount, 0)
		if v.Used = rest + used[i]; v.Used < rest {
			v.Used = math.MaxInt64
		}
		tx.setCounter(c, v)
	}
	return nil
}

// rate returns the takings of a key, read if they are not in memory.
func (tx *updateTx) rate(key string) (*rate, error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	if r := s.rates[key]; r != nil {
		return r, nil
	}
	if err := okName("the rate's key", key); err != nil {
		return nil, err
	}
	r, err := readRate(s.side, key)
	if err != nil {
		return nil, err
	}
	r.since = s.version
	s.seen.Lock()
	defer s.seen.Unlock()
	if len(s.rates) >= maxRates {
		s.evictRates()
	}
	s.rates[key] = r
	return r, nil
}

// evictRates drops an eighth of the rates that no batch under way touches.
func (s *Store) evictRates() {
	drop := maxRates / 8
	for k, r := range s.rates {
		if r.batch <= s.settled && len(r.now)+len(r.fly) == 0 {
			delete(s.rates, k)
			if drop--; drop == 0 {
				return
			}
		}
	}
}

// badRate refuses what cannot be a rate.
func badRate(r *budget.Rate) *budget.Refusal {
	if r.Limit < 0 || r.Limit > maxRate || !windowFits(r.Window) {
		return &budget.Refusal{Kind: holdfast.KindInvalidBudget, Rate: r}
	}
	if r.Limit == 0 {
		return &budget.Refusal{Kind: holdfast.KindBounds, Rate: r, After: r.Window}
	}
	return nil
}

// full says how long until there is room, given the limit-th taking from the
// end; 0 is now. A clock that went backwards gives no room back.
func full(r *budget.Rate, now time.Time, nth int64, ok bool) *budget.Refusal {
	if !ok {
		return nil
	}
	window := r.Window.Microseconds()
	if wait := nth + window - micros(now); wait > 0 {
		return &budget.Refusal{Kind: holdfast.KindBounds, Rate: r, After: time.Duration(wait) * time.Microsecond}
	}
	return nil
}

func (tx *updateTx) Rate(rs []budget.Rate, now time.Time) (*budget.Refusal, error) {
	mark := len(tx.undo)
	for i := range rs {
		ref, err := tx.takeRate(rs[i], now)
		if err != nil || ref != nil {
			tx.undoTo(mark)
			return ref, err
		}
	}
	return nil, nil
}

func (tx *updateTx) takeRate(want budget.Rate, now time.Time) (*budget.Refusal, error) {
	if ref := badRate(&want); ref != nil {
		return ref, nil
	}
	r, err := tx.rate(want.Key)
	if err != nil {
		return nil, err
	}
	nth, ok := r.nth(want.Limit)
	if ref := full(&want, now, nth, ok); ref != nil {
		return ref, nil
	}
	at := micros(now)
	if last, ok := r.nth(1); ok {
		at = max(at, last)
	}
	if r.batch != tx.b.no {
		r.batch = tx.b.no
		tx.b.rates = append(tx.b.rates, r)
	}
	r.now = append(r.now, at)
	r.ask = max(r.ask, want.Limit)
	tx.undone(func() { r.now = r.now[:len(r.now)-1] })
	return nil, nil
}

func (tx *updateTx) PeekRate(rs []budget.Rate, now time.Time) (*budget.Refusal, error) {
	for i := range rs {
		want := rs[i]
		if ref := badRate(&want); ref != nil {
			return ref, nil
		}
		r, err := tx.rate(want.Key)
		if err != nil {
			return nil, err
		}
		nth, ok := r.nth(want.Limit)
		if ref := full(&want, now, nth, ok); ref != nil {
			return ref, nil
		}
	}
	return nil, nil
}

func readRate(c *conn, key string) (*rate, error) {
	r := &rate{key: key}
	err := c.query("SELECT first, stamps FROM rate WHERE key = ? ORDER BY chunk", func(row row) error {
		if len(r.stamps) == 0 {
			r.first = row.int(0)
		} else if row.int(0) != r.first+int64(len(r.stamps)) {
			return fmt.Errorf("rate %q: takings are missing before number %d", key, row.int(0))
		}
		r.stamps = append(r.stamps, stamps(row.blob(1))...)
		return nil
	}, key)
	return r, err
}

// pairKey joins two names; neither has a NUL.
func pairKey(a, b string) string { return a + "\x00" + b }

func (tx *updateTx) agentCell(tenant, name string) (*cell[holdfast.Agent], error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	key := pairKey(tenant, name)
	if c := s.agents.m[key]; c != nil {
		return c, nil
	}
	if err := errors.Join(okName("the agent's tenant", tenant), okName("the agent's name", name)); err != nil {
		return nil, err
	}
	var v slot[holdfast.Agent]
	if !s.agents.whole {
		r, err := s.side.one("SELECT doc FROM agent WHERE tenant = ? AND name = ?", tenant, name)
		if err == nil && r != nil {
			v.ok = true
			v.val, err = readAgent(r)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.agents.put(&s.seen, key, v, s.version, s.settled), nil
}

func (tx *updateTx) Agent(tenant, name string) (holdfast.Agent, error) {
	c, err := tx.agentCell(tenant, name)
	if err != nil {
		return holdfast.Agent{}, err
	}
	if !c.now.ok {
		return holdfast.Agent{}, notFound("agent %q of tenant %q", name, tenant)
	}
	return c.now.val, nil
}

func (tx *updateTx) PutAgent(a holdfast.Agent) error {
	c, err := tx.agentCell(a.Tenant, a.Name)
	if err != nil {
		return err
	}
	if n := len(a.Why) + len(a.Kind) + len(a.Principal) + len(a.Parent); n > maxDoc {
		return fmt.Errorf("agent %q has %d bytes of text, more than %d", a.Name, n, maxDoc)
	}
	a.First = utc(a.First)
	was := c.now
	tx.s.agents.touch(c, tx.b.no)
	c.now = slot[holdfast.Agent]{a, true}
	tx.undone(func() { c.now = was })
	return nil
}

func (tx *updateTx) Agents(tenant string) ([]holdfast.Agent, error) {
	if tx.over {
		return nil, errOver
	}
	as, err := readAgents(tx.s.side, tenant)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]holdfast.Agent, len(as))
	for _, a := range as {
		byName[pairKey(a.Tenant, a.Name)] = a
	}
	for _, c := range tx.s.agents.m {
		if a := c.now.val; c.now.ok && (tenant == "" || a.Tenant == tenant) {
			byName[pairKey(a.Tenant, a.Name)] = a
		}
	}
	as = slices.Collect(maps.Values(byName))
	slices.SortFunc(as, func(a, b holdfast.Agent) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	return as, nil
}

func readAgents(c *conn, tenant string) ([]holdfast.Agent, error) {
	var as []holdfast.Agent
	err := c.query("SELECT doc FROM agent WHERE ?1 = '' OR tenant = ?1 ORDER BY tenant, name", func(r row) error {
		a, err := readAgent(r)
		as = append(as, a)
		return err
	}, tenant)
	return as, err
}

func (tx *updateTx) jtiCell(tenant, jti string) (*cell[bool], error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	key := pairKey(tenant, jti)
	if c := s.jtis.m[key]; c != nil {
		return c, nil
	}
	if err := errors.Join(okName("the token's tenant", tenant), okName("the token's id", jti)); err != nil {
		return nil, err
	}
	if s.jtis.whole {
		return &cell[bool]{key: key, since: s.version}, nil
	}
	ok, err := readRevoked(s.side, tenant, jti)
	if err != nil {
		return nil, err
	}
	return s.jtis.put(&s.seen, key, slot[bool]{ok, ok}, s.version, s.settled), nil
}

func readRevoked(c *conn, tenant, jti string) (bool, error) {
	r, err := c.one("SELECT 1 FROM revocation WHERE tenant = ? AND jti = ?", tenant, jti)
	return r != nil, err
}

func (tx *updateTx) Revoke(tenant, jti string, at time.Time) error {
	c, err := tx.jtiCell(tenant, jti)
	if err != nil || c.now.ok {
		return err
	}
	s, b := tx.s, tx.b
	if s.jtis.m[c.key] == nil {
		c = s.jtis.put(&s.seen, c.key, c.now, s.version, s.settled)
	}
	s.jtis.touch(c, b.no)
	c.now = slot[bool]{true, true}
	b.revoked = append(b.revoked, revoked{tenant, jti, at})
	tx.undone(func() {
		c.now = slot[bool]{}
		b.revoked = b.revoked[:len(b.revoked)-1]
	})
	return nil
}

func (tx *updateTx) Revoked(tenant, jti string) (bool, error) {
	c, err := tx.jtiCell(tenant, jti)
	return err == nil && c.now.ok, err
}

func (tx *updateTx) Review(id string) (review.Review, error) {
	if tx.over {
		return review.Review{}, errOver
	}
	for _, b := range [...]*batch{tx.b, tx.s.fly} {
		if b == nil {
			continue
		}
		if v, ok := b.reviews[id]; ok {
			return cloneReview(v), nil
		}
	}
	return oneReview(tx.s.side, "id = ?", id)
}

func oneReview(c *conn, where string, args ...any) (review.Review, error) {
	r, err := c.one("SELECT doc FROM review WHERE "+where+" ORDER BY created DESC, id DESC LIMIT 1", args...)
	if err == nil && r == nil {
		err = notFound("review %v", args[len(args)-1])
	}
	if err != nil {
		return review.Review{}, err
	}
	return readReview(r)
}

func cloneReview(v review.Review) review.Review {
	if v.Confidence != nil {
		c := *v.Confidence
		v.Confidence = &c
	}
	if v.Threshold != nil {
		t := *v.Threshold
		v.Threshold = &t
	}
	return v
}

func okReview(r *review.Review) error {
	n := len(r.Preview) + len(r.Why) + len(r.Reason) + len(r.Key) + len(r.Principal) + len(r.Correlation)
	if n > maxDoc {
		return fmt.Errorf("review %q has %d bytes of text, more than %d", r.ID, n, maxDoc)
	}
	if r.State == review.None {
		return fmt.Errorf("review %q has no state", r.ID)
	}
	return okName("the review's id", r.ID)
}

func (tx *updateTx) PutReview(r review.Review, was review.State) error {
	if tx.over {
		return errOver
	}
	if err := okReview(&r); err != nil {
		return err
	}
	old, err := tx.Review(r.ID)
	switch {
	case err == nil && was == review.None:
		return fmt.Errorf("review %s: %w: %w", r.ID, kernel.ErrExists, kernel.ErrConflict)
	case err != nil && (was != review.None || !errors.Is(err, kernel.ErrNotFound)):
		return err
	case err == nil && old.State != was:
		return fmt.Errorf("review %s is %s, not %s: %w", r.ID, old.State, was, kernel.ErrConflict)
	}
	b := tx.b
	if b.reviews == nil {
		b.reviews = make(map[string]review.Review)
	}
	before, had := b.reviews[r.ID]
	b.reviews[r.ID] = normalReview(r)
	if was == review.None {
		b.fresh = append(b.fresh, r.ID)
	}
	tx.undone(func() {
		if had {
			b.reviews[r.ID] = before
		} else {
			delete(b.reviews, r.ID)
		}
		if was == review.None {
			b.fresh = b.fresh[:len(b.fresh)-1]
		}
	})
	return nil
}

// normalReview is the review as it will be read back.
func normalReview(r review.Review) review.Review {
	r = cloneReview(r)
	for _, t := range [...]*time.Time{&r.Created, &r.Expires, &r.Decided, &r.Until} {
		if !t.IsZero() {
			*t = utc(*t)
		}
	}
	return r
}

const bindingIs = "tenant = ? AND agent = ? AND boundary = ? AND exact = ?"

func (tx *updateTx) ReviewFor(b review.Binding) (review.Review, error) {
	vs, err := tx.merged(1, func(v *review.Review) bool {
		return v.Tenant == b.Tenant && v.Agent == b.Agent && v.Boundary == b.Boundary && v.Exact == b.Exact
	}, bindingIs, b.Tenant, b.Agent, b.Boundary, b.Exact)
	if err == nil && len(vs) == 0 {
		err = notFound("review of %s by %s", b.Boundary, b.Agent)
	}
	if err != nil {
		return review.Review{}, err
	}
	return vs[0], nil
}

func (tx *updateTx) Reviews(tenant string, state review.State, limit int) ([]review.Review, error) {
	where, args := reviewFilter(tenant, state)
	return tx.merged(limit, func(v *review.Review) bool {
		return (tenant == "" || v.Tenant == tenant) && (state == review.None || v.State == state)
	}, where, args...)
}

func reviewFilter(tenant string, state review.State) (string, []any) {
	where, args := "1 = 1", []any(nil)
	if tenant != "" {
		where, args = where+" AND tenant = ?", append(args, tenant)
	}
	if state != review.None {
		where, args = where+" AND state = ?", append(args, string(state))
	}
	return where, args
}

func readReviews(c *conn, limit int, where string, args ...any) ([]review.Review, error) {
	var vs []review.Review
	err := c.query("SELECT doc FROM review WHERE "+where+" ORDER BY created DESC, id DESC LIMIT ?", func(r row) error {
		v, err := readReview(r)
		vs = append(vs, v)
		return err
	}, append(args, int64(limit))...)
	return vs, err
}

// merged lays the reviews in memory over those of the database.
func (tx *updateTx) merged(limit int, match func(*review.Review) bool, where string, args ...any) ([]review.Review, error) {
	if tx.over {
		return nil, errOver
	}
	if limit <= 0 {
		return nil, nil
	}
	over := make(map[string]review.Review)
	for _, b := range tx.layers() {
		maps.Copy(over, b.reviews)
	}
	stored, err := readReviews(tx.s.side, limit+len(over), where, args...)
	if err != nil {
		return nil, err
	}
	vs := slices.DeleteFunc(stored, func(v review.Review) bool { _, ok := over[v.ID]; return ok })
	for _, v := range over {
		if match(&v) {
			vs = append(vs, cloneReview(v))
		}
	}
	slices.SortFunc(vs, func(a, b review.Review) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	return vs[:min(limit, len(vs))], nil
}

func (tx *updateTx) PutReplay(r kernel.Replay) error {
	if tx.over {
		return errOver
	}
	if err := okReplay(&r); err != nil {
		return err
	}
	b := tx.b
	if b.replays == nil {
		b.replays = make(map[string]kernel.Replay)
	}
	before, had := b.replays[r.Key]
	b.replays[r.Key] = r
	tx.undone(func() {
		if had {
			b.replays[r.Key] = before
		} else {
			delete(b.replays, r.Key)
		}
	})
	return nil
}

func okReplay(r *kernel.Replay) error {
	if len(r.Sealed) == 0 || len(r.Sealed) > maxSealed || len(r.Exact) > maxKey || len(r.Crossing) > maxKey {
		return fmt.Errorf("replay of crossing %q: a sealed result of %d bytes (1 to %d)", r.Crossing, len(r.Sealed), maxSealed)
	}
	return okName("the replay's key", r.Key)
}

// replay is what is kept under the key, expired or not.
func (tx *updateTx) replay(key string) (kernel.Replay, bool, error) {
	for _, b := range [...]*batch{tx.b, tx.s.fly} {
		if b == nil {
			continue
		}
		if r, ok := b.replays[key]; ok {
			return r, true, nil
		}
	}
	r, ok, err := readReplay(tx.s.side, key)
	return r, ok && !r.Expires.Before(tx.dropped()), err
}

// dropped is the time before which replays of the database are gone.
func (tx *updateTx) dropped() time.Time {
	var at time.Time
	for _, b := range tx.layers() {
		if b.dropped.After(at) {
			at = b.dropped
		}
	}
	return at
}

func (tx *updateTx) Replay(key string) (kernel.Replay, error) {
	if tx.over {
		return kernel.Replay{}, errOver
	}
	r, ok, err := tx.replay(key)
	return liveReplay(r, ok, err, key, tx.s.now())
}

func liveReplay(r kernel.Replay, ok bool, err error, key string, now time.Time) (kernel.Replay, error) {
	if err == nil && (!ok || !now.Before(r.Expires)) {
		err = notFound("replay %.16q", key)
	}
	if err != nil {
		return kernel.Replay{}, err
	}
	r.Expires, r.Sealed = utc(r.Expires), bytes.Clone(r.Sealed)
	return r, nil
}

func (tx *updateTx) DropReplays(now time.Time) (int, error) {
	if tx.over {
		return 0, errOver
	}
	now = utc(now)
	from := tx.dropped()
	n := int64(0)
	if now.After(from) {
		low := int64(math.MinInt64)
		if !from.IsZero() {
			low = micros(from)
		}
		var err error
		if n, err = tx.s.side.scalar("SELECT count(*) FROM replay WHERE expires >= ? AND expires < ?", low, micros(now)); err != nil {
			return 0, err
		}
	}
	over := make(map[string]kernel.Replay)
	for _, b := range tx.layers() {
		maps.Copy(over, b.replays)
	}
	for key, r := range over {
		old, ok, err := readReplay(tx.s.side, key)
		if err != nil {
			return 0, err
		}
		if ok && old.Expires.Before(now) && !old.Expires.Before(from) {
			n--
		}
		if r.Expires.Before(now) {
			n++
		}
	}
	if n > 0 {
		tx.drop(now)
	}
	return int(n), nil
}

// drop removes what expired before now from the batch, and lets the commit
// remove it from the database.
func (tx *updateTx) drop(now time.Time) {
	b := tx.b
	was, wasDropped := maps.Clone(b.replays), b.dropped
	maps.DeleteFunc(b.replays, func(_ string, r kernel.Replay) bool { return r.Expires.Before(now) })
	if now.After(b.dropped) {
		b.dropped = now
	}
	tx.undone(func() { b.replays, b.dropped = was, wasDropped })
}

func (tx *updateTx) Meta(name string) ([]byte, error) {
	if tx.over {
		return nil, errOver
	}
	for _, b := range [...]*batch{tx.b, tx.s.fly} {
		if b == nil {
			continue
		}
		if v, ok := b.metas[name]; ok {
			return bytes.Clone(v), nil
		}
	}
	return readMeta(tx.s.side, name)
}

func readMeta(c *conn, name string) ([]byte, error) {
	r, err := c.one("SELECT value FROM meta WHERE name = ?", name)
	if err == nil && r == nil {
		err = notFound("value %q", name)
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, r.blob(0)...), nil
}

func (tx *updateTx) PutMeta(name string, value []byte) error {
	if tx.over {
		return errOver
	}
	if len(value) > maxDoc {
		return fmt.Errorf("value %q has %d bytes, more than %d", name, len(value), maxDoc)
	}
	if err := okName("the value's name", name); err != nil {
		return err
	}
	b := tx.b
	if b.metas == nil {
		b.metas = make(map[string][]byte)
	}
	before, had := b.metas[name]
	b.metas[name] = append([]byte{}, value...)
	tx.undone(func() {
		if had {
			b.metas[name] = before
		} else {
			delete(b.metas, name)
		}
	})
	return nil
}

// eachLeaf walks leaves of the database. lock, where there is one, is held
// for each step but not while fn runs.
func eachLeaf(c *conn, t tenantID, from, to int64, lock func(func() error) error, fn func(ledger.Stored) error) error {
	if from >= to {
		return nil
	}
	if lock == nil {
		lock = func(step func() error) error { return step() }
	}
	var k *cursor
	err := lock(func() (err error) {
		k, err = c.open(leafColumns+"WHERE id >= ? AND id < ? ORDER BY id", leafID(t.id, max(from, 0)), leafID(t.id, min(to, 1<<seqBits)))
		return err
	})
	if err != nil {
		return err
	}
	defer lock(func() error { return k.close() })
	for {
		var l ledger.Stored
		var r row
		err := lock(func() (err error) {
			if r, err = k.next(); err == nil && r != nil {
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

package sqlite

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// batch is what updates wrote that share one commit. While it is the current
// one it belongs to whoever holds Store.run; once sealed nobody changes it.
type batch struct {
	no   uint64
	due  bool          // somebody waits for an update in it
	done chan struct{} // closed after the commit
	err  error         // set before done is closed

	leaves   []leafRow
	touched  []*trunk // tenants with new leaves
	reviews  map[string]review.Review
	fresh    []string // ids of reviews that are new, in order
	replays  map[string]kernel.Replay
	dropped  time.Time // replays that expired before were dropped
	rows     map[string]rowChange
	erased   []erasure
	revoked  []revoked
	notes    []ledger.SignedCheckpoint
	rates    []*rate
	heads    []headRow
	tiles    []tileRow
	tenants  []tenantID
	counters []change[budget.Counter]
	agents   []change[holdfast.Agent]
	jtis     []change[bool]
}

type revoked struct {
	tenant, jti string
	at          time.Time
}

// erasure is a range of leaves whose parts go: ids in [from, to).
type erasure struct{ from, to int64 }

type leafRow struct {
	t *trunk
	s ledger.Stored
}

type headRow struct {
	t       *trunk
	head    ledger.Head
	settled int64
}

type tileRow struct {
	t *trunk
	ledger.Tile
}

func newBatch(no uint64) *batch {
	return &batch{no: no, done: make(chan struct{})}
}

// empty says that there is nothing to commit.
func (b *batch) empty() bool {
	return len(b.leaves) == 0 && len(b.reviews) == 0 && len(b.replays) == 0 && b.dropped.IsZero() &&
		len(b.rows) == 0 && len(b.erased) == 0 && len(b.revoked) == 0 && len(b.notes) == 0 && len(b.rates) == 0 &&
		len(b.counters) == 0 && len(b.agents) == 0
}

// trunk is one tenant's tree. Its fields belong to whoever holds Store.run,
// but for pub and since, which Store.seen guards as in a cell.
type trunk struct {
	tenantID
	inDB bool
	// tree holds everything that is sealed; committed of its leaves are in
	// the database, the rest in the sealed batch.
	tree      *ledger.Tree
	committed int64
	fly       []leafRow // sealed leaves, from committed on
	now       []leafRow // leaves since the last seal
	batch     uint64
	begins    []*flow // begun crossings, oldest first, closed ones among them
	settled   int64   // every begin below is closed, in the database
	pub       ledger.Head
	since     uint64
}

// size counts every leaf, committed or not.
func (t *trunk) size() int64 { return t.tree.Size() + int64(len(t.now)) }

// leaf returns a leaf that is in memory only.
func (t *trunk) leaf(seq int64) (ledger.Stored, bool) {
	i := seq - t.committed
	switch {
	case i < 0:
		return ledger.Stored{}, false
	case i < int64(len(t.fly)):
		return t.fly[i].s, true
	case i < int64(len(t.fly)+len(t.now)):
		return t.now[i-int64(len(t.fly))].s, true
	}
	return ledger.Stored{}, false
}

// seal folds the new leaves into the tree and writes down the new head.
func (t *trunk) seal(b *batch) {
	if len(t.now) == 0 {
		return
	}
	for i := range t.now {
		for _, full := range t.tree.Append(t.now[i].s.Hash) {
			b.tiles = append(b.tiles, tileRow{t, full})
		}
	}
	t.fly, t.now = t.now, nil
	if !t.inDB {
		b.tenants = append(b.tenants, t.tenantID)
		t.inDB = true
	}
	for len(t.begins) > 0 && !t.begins[0].open() {
		t.begins = t.begins[1:]
	}
	settled := t.tree.Size()
	if len(t.begins) > 0 {
		settled = t.begins[0].begin
	}
	b.heads = append(b.heads, headRow{t, t.tree.Head(t.name), settled})
}

// flow is a crossing that was seen lately: where its leaves stand, -1 where
// there is none.
type flow struct {
	id           string
	t            *trunk
	begin, entry int64
	at           int64 // of the begin, microseconds
	batch        uint64
}

func (f *flow) open() bool { return f.begin >= 0 && f.entry < 0 }

// flows remembers the crossings of late, so that uniqueness needs no look at
// the database: an id above every forgotten one, and not remembered, is new.
// That holds for UUIDs, which are ordered by time; any other id is looked up.
type flows struct {
	m     map[string]*flow
	ring  []string
	next  int
	floor string // the largest UUID that was forgotten or is in the database
}

func newFlows(n int) *flows {
	return &flows{m: make(map[string]*flow, n), ring: make([]string, n)}
}

// fresh says that an id can be in no leaf.
func (fs *flows) fresh(id string) bool {
	if _, ok := uuidBytes(id); !ok {
		return false
	}
	return id > fs.floor && fs.m[id] == nil
}

// add remembers f and forgets the oldest that is settled: in a batch that is
// committed, and not waiting for its entry.
func (fs *flows) add(f *flow, settled uint64) {
	fs.m[f.id] = f
	for range 2 {
		old := fs.ring[fs.next]
		if o := fs.m[old]; o == nil || (o.batch <= settled && !o.open()) {
			fs.forget(old, o)
			fs.ring[fs.next] = f.id
			fs.next = (fs.next + 1) % len(fs.ring)
			return
		}
		fs.next = (fs.next + 1) % len(fs.ring)
	}
	fs.ring = append(fs.ring, f.id)
}

func (fs *flows) forget(id string, f *flow) {
	if f == nil {
		return
	}
	delete(fs.m, id)
	if _, ok := uuidBytes(id); ok && id > fs.floor {
		fs.floor = id
	}
}

// stampSize is what one taking of a rate takes, in bytes.
const stampSize = 8

// appendStamp and stamps are the form of a rate's takings, stampSize bytes each.
func appendStamp(b []byte, v int64) []byte {
	return append(b, byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func stamps(b []byte) []int64 {
	out := make([]int64, 0, len(b)/stampSize)
	for ; len(b) >= stampSize; b = b[stampSize:] {
		v := int64(0)
		for _, c := range b[:stampSize] {
			v = v<<8 | int64(c)
		}
		out = append(out, v)
	}
	return out
}

// bytes is about how much the batch adds to the log.
func (b *batch) bytes() int64 {
	n := int64(len(b.heads)+len(b.counters)+len(b.rates)+len(b.agents)+2*len(b.reviews))*pageSize + pageSize
	for i := range b.leaves {
		n += int64(len(b.leaves[i].s.Record)+len(b.leaves[i].s.Part)) + 256
	}
	for _, ch := range b.rows {
		n += int64(len(ch.row.Doc)) + pageSize
	}
	for _, r := range b.replays {
		n += int64(len(r.Sealed)) + pageSize
	}
	return n + int64(len(b.tiles))*3*pageSize
}

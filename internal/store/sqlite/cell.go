package sqlite

import (
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// A cell keeps one small value in memory, so that the hot path asks the
// database nothing. It has two sides: now is what the running update sees and
// belongs to whoever holds Store.run; pub is what is committed, is what views
// see, and is guarded by Store.seen.
type cell[T comparable] struct {
	key string
	now slot[T]
	pub slot[T]
	// since is the version whose commit changed pub last, or that was
	// current when pub was read: a view of an older version may not use it, but
	// was, if was is known to be what that version has.
	since uint64
	was   past[slot[T]]
	// batch is the last batch that touched now.
	batch uint64
}

// past is what stood in the versions from since on until a newer value came;
// the zero value is unknown in all of them. A view that a commit overtakes then
// needs the database for nothing.
type past[T any] struct {
	val   T
	since uint64
	known bool
}

// at returns what version v has, which is before the newer value.
func (p *past[T]) at(v uint64) (val T, known bool) {
	if !p.known || p.since > v {
		return val, false
	}
	return p.val, true
}

// slot is a value that may be absent.
type slot[T comparable] struct {
	val T
	ok  bool
}

// cells is a bounded table of cells. Insertion and eviction need Store.run and
// Store.seen both; reading needs either.
type cells[T comparable] struct {
	m   map[string]*cell[T]
	max int
	// whole says that everything the database has is here, so that what is
	// missing here is nowhere.
	whole bool
	dirty []*cell[T] // touched since the last seal; Store.run
}

func newCells[T comparable](limit int) *cells[T] {
	return &cells[T]{m: make(map[string]*cell[T]), max: limit}
}

// put inserts a cell with its committed value as of version v. Cells that no
// batch under way has touched may be evicted for it; settled is the newest
// batch that is committed.
func (cs *cells[T]) put(mu *sync.RWMutex, key string, s slot[T], v, settled uint64) *cell[T] {
	c := &cell[T]{key: key, now: s, pub: s, since: v}
	mu.Lock()
	defer mu.Unlock()
	if len(cs.m) >= cs.max {
		cs.evict(settled)
	}
	cs.m[key] = c
	return c
}

// evict drops an eighth of the cells, whichever the map yields first.
func (cs *cells[T]) evict(settled uint64) {
	drop := cs.max/8 + 1
	for k, c := range cs.m {
		if c.batch > settled {
			continue
		}
		delete(cs.m, k)
		cs.whole = false
		if drop--; drop == 0 {
			return
		}
	}
}

// touch marks a cell as changed by the batch, before its now is changed.
func (cs *cells[T]) touch(c *cell[T], batch uint64) {
	if c.batch != batch {
		c.batch = batch
		cs.dirty = append(cs.dirty, c)
	}
}

// change is the final value of a cell in a sealed batch.
type change[T comparable] struct {
	c *cell[T]
	v slot[T]
}

// seal takes what changed since the last seal.
func (cs *cells[T]) seal() []change[T] {
	var out []change[T]
	for _, c := range cs.dirty {
		if c.now != c.pub {
			out = append(out, change[T]{c, c.now})
		}
	}
	clear(cs.dirty)
	cs.dirty = cs.dirty[:0]
	return out
}

// publish shows committed changes to the views. The caller holds Store.seen.
func publish[T comparable](changes []change[T], v uint64) {
	for _, ch := range changes {
		ch.c.was = past[slot[T]]{ch.c.pub, ch.c.since, true}
		ch.c.pub, ch.c.since = ch.v, v
	}
}

// view returns the committed value as version v has it; known is false where
// only the database can tell. The caller holds Store.seen.
func (cs *cells[T]) view(key string, v uint64) (s slot[T], known bool) {
	c := cs.m[key]
	if c == nil {
		return slot[T]{}, cs.whole
	}
	if c.since > v {
		return c.was.at(v)
	}
	return c.pub, true
}

type counterSlot = slot[budget.Counter]

// rateChunk is how many takings one row of the rate table holds.
const rateChunk = 128

// maxRate bounds a rate's limit: its takings are kept one by one.
const maxRate = 100_000

// rate keeps the last takings of a key, in microseconds, oldest first. Taking
// number n is counted from 0 for ever. stamps[0] is number first.
//
// stamps, first and keep belong to the committer, who changes them while it
// holds Store.run and Store.seen; fly and now to Store.run.
type rate struct {
	key    string
	first  int64
	stamps []int64
	keep   int     // the largest limit of a sealed taking
	ask    int     // the largest limit that was asked for; Store.run
	fly    []int64 // sealed, being committed
	now    []int64 // taken since the last seal
	since  uint64
	was    past[int64] // the number after the last taking
	batch  uint64
}

// view returns the n-th committed taking from the end, counting from 1, as
// version v has it; ok is false if there were not so many, known where only the
// database can tell. The caller holds Store.seen.
func (r *rate) view(n int, v uint64) (at int64, ok, known bool) {
	end := r.first + int64(len(r.stamps))
	if r.since > v {
		if end, known = r.was.at(v); !known {
			return 0, false, false
		}
	}
	number := end - int64(n)
	if number < r.first {
		// Those before the first were dropped, later than that version perhaps.
		return 0, false, number < 0 || r.since <= v
	}
	return r.stamps[number-r.first], true, true
}

// nth returns the n-th taking from the end, counting from 1, over committed,
// sealed and new ones; ok is false if there were not so many.
func (r *rate) nth(n int) (int64, bool) {
	for _, s := range [...][]int64{r.now, r.fly, r.stamps} {
		if n <= len(s) {
			return s[len(s)-n], true
		}
		n -= len(s)
	}
	return 0, false
}

// settle moves what was committed to the stamps and drops what no limit asks
// about any more.
func (r *rate) settle(v uint64) {
	r.was = past[int64]{r.first + int64(len(r.stamps)), r.since, true}
	r.stamps = append(r.stamps, r.fly...)
	r.fly = nil
	r.since = v
	if extra := len(r.stamps) - r.keep; extra > r.keep+rateChunk {
		r.first += int64(extra)
		r.stamps = slices.Clone(r.stamps[extra:])
	}
}

// chunks yields the rows that the sealed takings change: the number of the
// chunk, the number of its first stamp, and its stamps.
func (r *rate) chunks(fn func(chunk, first int64, stamps []byte) error) error {
	end := r.first + int64(len(r.stamps)+len(r.fly))
	from := end - int64(len(r.fly))
	oldest := max(r.first, end-int64(r.keep))
	for c := from / rateChunk; c*rateChunk < end; c++ {
		first := max(c*rateChunk, oldest)
		last := min((c+1)*rateChunk, end)
		if first >= last {
			continue
		}
		b := make([]byte, 0, (last-first)*8)
		for n := first; n < last; n++ {
			b = appendStamp(b, r.at(n))
		}
		if err := fn(c, first, b); err != nil {
			return err
		}
	}
	return nil
}

// at is taking number n, committed or sealed.
func (r *rate) at(n int64) int64 {
	if i := n - r.first; i < int64(len(r.stamps)) {
		return r.stamps[i]
	}
	return r.fly[n-r.first-int64(len(r.stamps))]
}

// stale is the first chunk that is still needed, and whether it is one that
// the sealed takings made so.
func (r *rate) stale() (int64, bool) {
	end := r.first + int64(len(r.stamps)+len(r.fly))
	now := (end - int64(r.keep)) / rateChunk
	was := (end - int64(len(r.fly)) - int64(r.keep)) / rateChunk
	return now, now > was && now > 0
}

// Package sqlite keeps the kernel's Store in one SQLite file (D14, D48).
//
// One process writes. Updates run one after another, against what is in
// memory, and write into the current batch; meanwhile one committer brings
// the batch before it to disk as a single transaction. So many updates share
// one sync, an update that fails leaves no trace, and none waits for the disk
// while it runs. The database's own constraints stand behind the checks that
// are made in memory: where they disagree, the commit fails and the store is
// poisoned.
//
// Views read a snapshot: what is in memory where it is still what the
// snapshot has, and otherwise a read transaction that was begun before the
// next commit. Where an update is the only one under way and nobody views, it
// commits by itself and without that transaction; who comes to view meanwhile
// waits for the commit.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// Options say how to open a store. Path is required.
type Options struct {
	// Path is the database file. It is made with mode 0600, its directory
	// with 0700, if they are not there.
	Path string
	// ReadOnly opens an existing store beside its owner, in short
	// transactions, and keeps nothing in memory. Update returns
	// kernel.ErrReadOnly.
	ReadOnly bool
	// Tables are the tables of features, in addition to the kernel's. A file with others
	// is not opened.
	Tables []*table.Def
	// Now is the clock by which replays expire; nil is time.Now.
	Now func() time.Time
	// Fault is a test seam, nil in production: an error it returns is that
	// step's. The steps are "begin", "flush" and "commit", which leave
	// nothing behind, and "committed", where everything is durable and the
	// store only believes that it failed.
	Fault func(step string) error
	// MaxPages is a test seam, 0 in production: the most pages the file
	// may grow to, beyond which the disk is full.
	MaxPages int
	// Looked is a test seam, nil in production: it gets how many of the
	// file's pages a view looked at, in memory or not, after each of its
	// reads. It must be safe for concurrent use.
	Looked func(pages int)
}

// Limits of what is kept in memory.
const (
	maxInFlight = 256 // updates in the current and the sealed batch
	maxViews    = 128 // views under way
	maxGather   = 16  // turns that others are given before a commit
	maxCounters = 32768
	maxRates    = 4096
	maxAgents   = 16384
	maxJTIs     = 65536
	maxFlows    = 16384
	maxDoc      = 1 << 20  // bytes of an agent, a review or a small value
	maxSealed   = 16 << 20 // bytes of a sealed replay
	maxKey      = 1024     // bytes of any name or key
)

var errClosed = errors.New("the store is closed")

// Store implements kernel.Store. It is safe for use by several goroutines.
type Store struct {
	opt       Options
	now       func() time.Time
	tables    map[*table.Def]*rowTable
	slots     chan struct{} // one per update under way
	lulled    atomic.Int32  // of them those that wait for another's commit
	viewSlots chan struct{} // one per view under way
	ran       atomic.Uint64 // updates that ran, in whatever batch
	wake      chan struct{} // tells the committer that there is a batch
	// committing is held while a batch is brought to disk: by the committer,
	// or by an update that is alone.
	committing sync.Mutex

	// run is held while an update runs and while batches change hands.
	run sync.Mutex
	cur *batch
	fly *batch // sealed, on its way to disk
	// settled is the newest batch that is committed.
	settled uint64
	side    *connection.Conn // reads for updates
	tenants map[string]*trunk
	nextID  int64 // the next tenant's number
	flows   *flows

	// seen guards everything that views look at; see cell.
	seen     sync.RWMutex
	version  uint64
	snap     *snapshot
	turn     chan struct{} // not nil while snap may not be viewed; closed when it may
	counters *cells[budget.Counter]
	agents   *cells[holdfast.Agent]
	jtis     *cells[bool]
	rates    map[string]*rate

	poison  atomic.Pointer[poisoned]
	closing atomic.Bool
	gone    chan struct{}    // closed when closing begins
	closed  chan struct{}    // the committer has ended
	write   *connection.Conn // whoever holds committing
	readers *readers
	tidy    *tidier
	closer  sync.Once
	closeEr error
}

// poisoned is why nothing is written any more.
type poisoned struct{ cause error }

func (p *poisoned) Error() string {
	return fmt.Sprintf("%v: %v; hint: see why the disk failed, then restart: what was acknowledged is kept", kernel.ErrPoisoned, p.cause)
}

func (p *poisoned) Unwrap() []error { return []error{kernel.ErrPoisoned, p.cause} }

// Poisoned implements kernel.Store.
func (s *Store) Poisoned() error {
	if p := s.poison.Load(); p != nil {
		return p
	}
	return nil
}

// Update implements kernel.Store. fn runs on the caller's goroutine, so that a
// panic is the caller's; it undoes what fn wrote, as an error does. fn must
// not call Update or View of the same store.
func (s *Store) Update(ctx context.Context, fn func(kernel.Tx) error) error {
	return s.updateBatch(ctx, fn, true)
}

// UpdateUnhurried implements kernel.Store.
func (s *Store) UpdateUnhurried(ctx context.Context, fn func(kernel.Tx) error) error {
	return s.updateBatch(ctx, fn, false)
}

// updateBatch runs fn in the current batch. due means that its commit is wanted now.
func (s *Store) updateBatch(ctx context.Context, fn func(kernel.Tx) error, due bool) error {
	if s.opt.ReadOnly {
		return fmt.Errorf("the store is open for reading only: %w", kernel.ErrReadOnly)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(ctx, s.slots); err != nil {
		return err
	}
	defer func() { <-s.slots }()
	b, err := s.runUpdate(ctx, fn, due)
	if err != nil {
		return err
	}
	if due || !s.lull(b) {
		s.toDisk()
	}
	<-b.done
	return b.err
}

// lull waits a little for the commit of an update that somebody waits for, and
// says whether there was one. Otherwise b is due.
func (s *Store) lull(b *batch) bool {
	s.lulled.Add(1)
	defer s.lulled.Add(-1)
	t := time.NewTimer(kernel.MaxLull)
	defer t.Stop()
	select {
	case <-b.done:
		return true
	case <-t.C:
	case <-s.gone:
	}
	s.run.Lock()
	b.due = true
	s.run.Unlock()
	return false
}

// toDisk sees to it that the current batch is committed. An update that is the
// only one does it itself, which spares waking others, before and after; where
// there are more, the committer waits for them all.
func (s *Store) toDisk() {
	if len(s.slots)-int(s.lulled.Load()) == 1 && s.committing.TryLock() {
		defer s.committing.Unlock()
		defer ending()
		s.commitOne(true)
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// ending ends the process where a commit panics: nobody knows what of it is on
// its way to disk, and whoever called Update may be used to recovering.
func ending() {
	if r := recover(); r != nil {
		stack := debug.Stack()
		go panic(fmt.Sprintf("%v\n\n%s", r, stack))
		select {}
	}
}

// enter waits for one of the slots.
func (s *Store) enter(ctx context.Context, slots chan struct{}) error {
	if s.closing.Load() {
		return errClosed
	}
	select {
	case slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-s.gone:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runUpdate runs fn in the current batch, which it returns.
func (s *Store) runUpdate(ctx context.Context, fn func(kernel.Tx) error, due bool) (*batch, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if s.closing.Load() {
		return nil, errClosed
	}
	if p := s.poison.Load(); p != nil {
		return nil, p
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tx := &updateTx{s: s, b: s.cur}
	kept := false
	defer func() {
		tx.over = true
		if !kept {
			tx.undoAll()
		}
	}()
	if err := fn(tx); err != nil {
		return nil, err
	}
	kept = true
	s.ran.Add(1)
	s.cur.due = s.cur.due || due
	return s.cur, nil
}

// commitLoop is the committer.
func (s *Store) commitLoop() {
	defer close(s.closed)
	for range s.wake {
		s.committing.Lock()
		s.gather()
		for s.commitOne(false) {
			s.gather()
		}
		s.committing.Unlock()
	}
}

// gather lets those who are about to write run first, as those who were just
// answered may be: what they write shares the next sync instead of waiting for
// the one after it. It goes on as long as there come more. Where nobody else is
// to run it takes no time.
func (s *Store) gather() {
	for range maxGather {
		before := s.ran.Load()
		for range 3 {
			runtime.Gosched()
		}
		if s.ran.Load() == before {
			return
		}
	}
}

// commitOne seals the current batch and commits it; false if nobody waits for
// it. alone says that no other update was under way. The
// caller holds committing.
func (s *Store) commitOne(alone bool) bool {
	s.run.Lock()
	b := s.cur
	if !b.due {
		s.run.Unlock()
		return false
	}
	s.seal(b)
	if b.empty() {
		// Nothing was written, and what was seen is committed.
		s.fly, s.settled = nil, b.no
		s.run.Unlock()
		close(b.done)
		return true
	}
	s.run.Unlock()

	err := s.flush(b, alone)

	s.run.Lock()
	if err != nil {
		s.fail(b, err)
	} else {
		s.publish(b)
	}
	s.run.Unlock()
	close(b.done)
	if err == nil {
		s.tidied(b.bytes())
	}
	return true
}

// seal ends the current batch and begins the next. The caller holds run.
func (s *Store) seal(b *batch) {
	for _, t := range b.touched {
		t.seal(b)
	}
	b.counters, b.agents, b.jtis = s.counters.seal(), s.agents.seal(), s.jtis.seal()
	live := b.rates[:0]
	for _, r := range b.rates {
		if len(r.now) > 0 {
			r.fly, r.now, r.keep = r.now, nil, max(r.keep, r.ask)
			live = append(live, r)
		}
	}
	b.rates = live
	s.fly, s.cur = b, newBatch(b.no+1)
}

// publish shows a committed batch to views and to later updates. The caller
// holds run.
func (s *Store) publish(b *batch) {
	s.seen.Lock()
	v := s.version + 1
	publish(b.counters, v)
	publish(b.agents, v)
	publish(b.jtis, v)
	for _, r := range b.rates {
		r.settle(v)
	}
	for _, h := range b.heads {
		h.t.pub, h.t.since = h.head, v
	}
	s.version = v
	old := s.snap
	s.snap = newSnapshot(v)
	s.turned()
	s.seen.Unlock()
	old.release(s.readers)

	for _, h := range b.heads {
		h.t.committed, h.t.fly, h.t.settled = h.head.Size, nil, h.settled
	}
	s.fly, s.settled = nil, b.no
}

// fail poisons the store: the batch and every update that ran on top of it
// are told. The caller holds run.
func (s *Store) fail(b *batch, err error) {
	p := &poisoned{cause: err}
	s.poison.Store(p)
	s.seen.Lock()
	s.turned()
	s.seen.Unlock()
	b.err = p
	if s.cur != b {
		s.cur.err = p
		close(s.cur.done)
		s.cur = newBatch(s.cur.no + 1)
	}
}

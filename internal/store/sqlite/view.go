package sqlite

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// snapshot is one committed version. Its read transaction is begun by the
// first view that needs the database, or else by the committer just before
// the next version exists; so it always shows exactly this version.
type snapshot struct {
	version uint64
	mu      sync.Mutex // guards the rest, and the use of c
	refs    int        // views, and one for being current
	c       *connection.Conn
}

func newSnapshot(v uint64) *snapshot { return &snapshot{version: v, refs: 1} }

func (p *snapshot) acquire() {
	p.mu.Lock()
	p.refs++
	p.mu.Unlock()
}

// release gives up one reference; the last ends the transaction.
func (p *snapshot) release(rs *readers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refs--; p.refs == 0 && p.c != nil {
		rs.end(p.c)
		p.c = nil
	}
}

// unseen says that no view has it.
func (p *snapshot) unseen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refs == 1 && p.c == nil
}

// begin begins the transaction if nobody did.
func (p *snapshot) begin(rs *readers) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beginLocked(rs)
}

func (p *snapshot) beginLocked(rs *readers) error {
	if p.c != nil {
		return nil
	}
	c, err := rs.begin()
	if err != nil {
		return fmt.Errorf("begin a snapshot: %w", err)
	}
	p.c = c
	return nil
}

// do calls fn with the connection, alone.
func (p *snapshot) do(rs *readers, fn func(*connection.Conn) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.beginLocked(rs); err != nil {
		return err
	}
	if rs.looked != nil {
		defer func() { rs.looked(p.c.CountPages()) }()
	}
	return fn(p.c)
}

// readers are connections for reading that wait for use.
type readers struct {
	path   string
	looked func(pages int) // Options.Looked
	mu     sync.Mutex
	idle   []*connection.Conn
	shut   bool
}

// maxIdle bounds the connections that wait.
const maxIdle = 4

// begin returns a connection with a read transaction that has its snapshot.
func (rs *readers) begin() (*connection.Conn, error) {
	rs.mu.Lock()
	var c *connection.Conn
	if n := len(rs.idle); n > 0 {
		c, rs.idle = rs.idle[n-1], rs.idle[:n-1]
	}
	rs.mu.Unlock()
	if c == nil {
		var err error
		if c, err = openReader(rs.path); err != nil {
			return nil, err
		}
	}
	_, err := c.Exec("BEGIN")
	if err == nil {
		// Only a read takes the snapshot; BEGIN alone does not.
		_, err = c.One("SELECT 1 FROM head LIMIT 1")
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// end ends the transaction of begin.
func (rs *readers) end(c *connection.Conn) {
	_, err := c.Exec("COMMIT")
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if err != nil || rs.shut || len(rs.idle) >= maxIdle {
		_ = c.Close()
		return
	}
	rs.idle = append(rs.idle, c)
}

func (rs *readers) close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.shut = true
	for _, c := range rs.idle {
		_ = c.Close()
	}
	rs.idle = nil
}

func openReader(path string) (*connection.Conn, error) {
	c, err := connection.Open(path, true)
	if err != nil {
		return nil, err
	}
	err = c.Script("PRAGMA query_only = 1; PRAGMA busy_timeout = 5000; PRAGMA cache_size = -1024; PRAGMA trusted_schema = 0")
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// View implements kernel.Store.
func (s *Store) View(ctx context.Context, fn func(kernel.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(ctx, s.viewSlots); err != nil {
		return err
	}
	defer func() { <-s.viewSlots }()
	if s.closing.Load() {
		return errClosed
	}
	tx := &viewTx{s: s}
	if s.opt.ReadOnly {
		tx.snap = newSnapshot(0)
	} else if err := s.look(ctx, tx); err != nil {
		return err
	}
	defer func() {
		tx.over = true
		tx.snap.release(s.readers)
	}()
	return fn(tx)
}

// look gives a view the newest snapshot that may be viewed.
func (s *Store) look(ctx context.Context, tx *viewTx) error {
	s.seen.RLock()
	for s.turn != nil {
		turn := s.turn
		s.seen.RUnlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.seen.RLock()
	}
	defer s.seen.RUnlock()
	tx.snap = s.snap
	tx.snap.acquire()
	return nil
}

// keepViews lets the views of the version before have their snapshot before
// there is a newer one. A commit that is alone, and that nobody views beside,
// spares the transaction for it; a view that begins now waits for the commit,
// and then sees it.
func (s *Store) keepViews(alone bool) error {
	if !alone {
		return s.snap.begin(s.readers)
	}
	s.seen.Lock()
	spared := s.snap.unseen()
	if spared {
		s.turn = make(chan struct{})
	}
	s.seen.Unlock()
	if spared {
		return nil
	}
	return s.snap.begin(s.readers)
}

// turned lets the newest snapshot be viewed again. The caller holds seen.
func (s *Store) turned() {
	if s.turn != nil {
		close(s.turn)
		s.turn = nil
	}
}

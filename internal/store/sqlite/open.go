package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
	"github.com/holdfast-dev/holdfast/ledger"
)

// ErrOlder reports that a store that is only read has an older schema. Opening it for
// writing migrates it.
var ErrOlder = schema.ErrOlder

// Open opens the store, makes it or migrates it where that is needed, and
// checks that the schema is as Holdfast made it, that nothing belongs to no
// tree, and that the end of every tenant's tree is what its head says. ctx bounds
// the opening only. The caller makes sure that it is the one owner (D48).
// kernel.ErrNewer means that a newer Holdfast wrote the file.
func Open(ctx context.Context, opt Options) (*Store, error) {
	s, err := open(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", opt.Path, err)
	}
	return s, nil
}

func open(ctx context.Context, opt Options) (*Store, error) {
	if opt.Path == "" {
		return nil, errors.New("no path was given")
	}
	path, err := filepath.Abs(opt.Path)
	if err != nil {
		return nil, err
	}
	opt.Path = path
	s := &Store{opt: opt, now: opt.Now, viewSlots: make(chan struct{}, maxViews), gone: make(chan struct{}),
		readers: &readers{path: path, looked: opt.Looked}}
	if s.tables, err = newRowTables(opt.Tables); err != nil {
		return nil, err
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opt.ReadOnly {
		return s, s.openReadOnly()
	}
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	if err := s.openConns(); err != nil {
		s.closeConns()
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		s.closeConns()
		return nil, err
	}
	s.snap = newSnapshot(0)
	s.closed = make(chan struct{})
	s.tidy.start()
	go s.commitLoop()
	return s, nil
}

// openReadOnly checks that the file is a store that can be read.
func (s *Store) openReadOnly() error {
	if _, err := os.Stat(s.opt.Path); err != nil {
		return err
	}
	c, err := openReader(s.opt.Path)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := schema.Migrate(c, true); err != nil {
		return err
	}
	return createTables(c, s.tables, true)
}

// prepareFile makes the directory and an empty file with the modes that keep
// others out, and takes away what an existing file gives them.
func prepareFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case err == nil && info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o600)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *Store) openConns() error {
	var err error
	if s.write, err = openWriter(s.opt.Path); err != nil {
		return err
	}
	if err = schema.Migrate(s.write, false); err != nil {
		return err
	}
	if err = createTables(s.write, s.tables, false); err != nil {
		return err
	}
	if err = refuseTampered(s.write, s.tables); err != nil {
		return err
	}
	if n := s.opt.MaxPages; n > 0 {
		if err = s.write.Script(fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
			return err
		}
	}
	if s.side, err = openReader(s.opt.Path); err != nil {
		return err
	}
	s.tidy, err = newTidier(s.opt.Path)
	return err
}

func openWriter(path string) (*connection.Conn, error) {
	c, err := connection.Open(path, false)
	if err != nil {
		return nil, err
	}
	// fullfsync makes a sync reach the disk on macOS, and is nothing
	// elsewhere. The log is copied back by the tidier's connection.
	err = c.Script(`PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
		PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1; PRAGMA foreign_keys = 1;
		PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16384; PRAGMA trusted_schema = 0; PRAGMA temp_store = MEMORY`)
	if err == nil {
		var r connection.Row
		if r, err = c.One("PRAGMA journal_mode"); err == nil && r.Text(0) != "wal" {
			err = fmt.Errorf("the file system does not allow a write-ahead log (journal mode %s)", r.Text(0))
		}
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// load reads what is kept in memory.
func (s *Store) load(ctx context.Context) error {
	s.slots = make(chan struct{}, maxInFlight)
	s.wake = make(chan struct{}, 1)
	s.cur = newBatch(1)
	s.tenants = make(map[string]*trunk)
	s.flows = newFlows(maxFlows)
	s.counters = newCells[budget.Counter](maxCounters)
	s.agents = newCells[holdfast.Agent](maxAgents)
	s.jtis = newCells[bool](maxJTIs)
	s.rates = make(map[string]*rate)
	if err := s.loadTenants(ctx); err != nil {
		return err
	}
	return errors.Join(s.loadAgents(), s.loadRevoked())
}

func (s *Store) loadTenants(ctx context.Context) error {
	s.nextID = 1
	err := s.side.Query("SELECT id, name FROM tenant", func(r connection.Row) error {
		t := &trunk{tenantID: tenantID{r.Text(1), r.Int(0)}, inDB: true, tree: new(ledger.Tree)}
		s.tenants[t.name] = t
		s.nextID = max(s.nextID, t.id+1)
		return nil
	})
	if err != nil {
		return err
	}
	hs, err := readHeads(s.side)
	if err != nil {
		return err
	}
	for _, h := range hs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.loadTree(h); err != nil {
			return fmt.Errorf("the ledger of tenant %q does not hold: %w; hint: run `holdfast ledger verify`, and restore a backup", h.name, err)
		}
	}
	r, err := s.side.One("SELECT max(crossing) FROM leaf WHERE kind < 3")
	if err != nil {
		return err
	}
	s.flows.floor = crossingText(r[0])
	return nil
}

// loadTree reads the right edge of a tenant's tree and compares it with the
// head: the leaves since the last complete tile, from their bytes.
func (s *Store) loadTree(h dbHead) error {
	last, err := s.side.One("SELECT max(id) FROM leaf WHERE id >= ? AND id < ?", leafID(h.id, 0), leafID(h.id+1, 0))
	if err != nil {
		return err
	}
	if n := leafSeq(last.Int(0)) + 1; last.IsNull(0) || n != h.size {
		return fmt.Errorf("the head counts %d leaves and the last leaf is number %d", h.size, n-1)
	}
	tail := h.size / ledger.TileWidth * ledger.TileWidth
	err = eachLeaf(s.side, h.tenantID, tail, h.size, nil, func(l ledger.Stored) error {
		if ledger.LeafHash(l.Record) != l.Hash {
			return fmt.Errorf("leaf %d: the record does not have the hash that stands beside it", l.Seq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	side := nodes{t: h.tenantID, do: func(fn func(*connection.Conn) error) error { return fn(s.side) }}
	tree, err := ledger.TreeOf(side, h.size)
	if err != nil {
		return err
	}
	if root := tree.Root(); !bytes.Equal(root[:], h.root[:]) {
		return fmt.Errorf("the tree of %d leaves has root %v and the head says %v", h.size, root, h.root)
	}
	t := s.tenants[h.name]
	t.tree, t.committed, t.settled = tree, h.size, h.settled
	t.pub = ledger.Head{Tenant: h.name, Size: h.size, Root: h.root}
	open, err := readOpen(s.side, h)
	for _, o := range open {
		f := &flow{id: o.crossing, t: t, begin: o.seq, entry: -1, at: o.at}
		t.begins = append(t.begins, f)
		s.flows.add(f, 0)
	}
	return err
}

// loadAgents and loadRevoked keep everything, as long as it fits.
func (s *Store) loadAgents() error {
	s.agents.whole = true
	k, err := s.side.OpenCursor("SELECT doc FROM agent LIMIT ?", int64(maxAgents/2))
	if err != nil {
		return err
	}
	defer k.Close()
	for {
		r, err := k.Next()
		if err != nil || r == nil {
			s.agents.whole = err == nil && len(s.agents.m) < maxAgents/2
			return err
		}
		a, err := readAgent(r)
		if err != nil {
			return err
		}
		s.agents.put(&s.seen, pairKey(a.Tenant, a.Name), slot[holdfast.Agent]{val: a, ok: true}, 0, 0)
	}
}

func (s *Store) loadRevoked() error {
	err := s.side.Query("SELECT tenant, jti FROM revocation LIMIT ?", func(r connection.Row) error {
		s.jtis.put(&s.seen, pairKey(r.Text(0), r.Text(1)), slot[bool]{true, true}, 0, 0)
		return nil
	}, int64(maxJTIs/2))
	s.jtis.whole = err == nil && len(s.jtis.m) < maxJTIs/2
	return err
}

// Close implements kernel.Store. Close of a closed store is nil.
func (s *Store) Close() error {
	s.closer.Do(func() { s.closeEr = s.close() })
	return s.closeEr
}

func (s *Store) close() error {
	s.closing.Store(true)
	close(s.gone)
	if s.opt.ReadOnly {
		s.drainViews()
		s.readers.close()
		return nil
	}
	// Whoever has a slot is under way; when all slots are ours, nobody is.
	for range maxInFlight {
		s.slots <- struct{}{}
	}
	s.run.Lock()
	close(s.wake)
	s.run.Unlock()
	<-s.closed
	s.drainViews()
	s.tidy.stop()
	s.snap.release(s.readers)
	s.readers.close()
	s.tidy.copyBack("TRUNCATE")
	return s.closeConns()
}

func (s *Store) drainViews() {
	for range maxViews {
		s.viewSlots <- struct{}{}
	}
}

// closeConns closes every connection. The last one removes the log.
func (s *Store) closeConns() error {
	s.readers.close()
	err := s.side.Close()
	if s.tidy != nil {
		err = errors.Join(err, s.tidy.c.Close())
	}
	return errors.Join(err, s.write.Close())
}

// Backup implements kernel.Store: the file has mode 0600 and is synced, and
// its directory too, when Backup returns nil. On an error there is no file.
func (s *Store) Backup(ctx context.Context, file string) error {
	err := s.View(ctx, func(kernel.Tx) error { return s.backup(ctx, file) })
	if err != nil {
		return fmt.Errorf("back up to %s: %w", file, err)
	}
	return nil
}

func (s *Store) backup(ctx context.Context, file string) (err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	c, err := openReader(s.opt.Path)
	if err != nil {
		return err
	}
	defer c.Close()
	// VACUUM INTO takes an empty file that exists, and copies one snapshot.
	if err := c.Script("PRAGMA query_only = 0"); err != nil {
		return err
	}
	if err := c.ExecCtx(ctx, "VACUUM INTO ?", path); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

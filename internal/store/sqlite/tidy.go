package sqlite

import (
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// The log is copied back into the file each time it has grown by about
// tidyBytes, and begun anew once it is longer than logBytes.
const (
	tidyBytes = 4 << 20
	logBytes  = 24 << 20
	pageSize  = 4096
)

// tidier copies the write-ahead log back into the database on a connection of
// its own, beside the commits, so that no commit waits for the bulk of it.
type tidier struct {
	log   string     // the log's path
	mu    sync.Mutex // guards c
	c     *connection.Conn
	wake  chan struct{}
	ended chan struct{}
	grown int64       // bytes since the last wake, about; whoever holds Store.committing
	first bool        // the log has only its first, short runway; whoever holds Store.committing
	long  atomic.Bool // the log should begin anew
}

func newTidier(path string) (*tidier, error) {
	c, err := connection.Open(path, false)
	if err != nil {
		return nil, err
	}
	err = c.Script(`PRAGMA busy_timeout = 0; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1;
		PRAGMA checkpoint_fullfsync = 1; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -512`)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &tidier{log: path + "-wal", c: c, wake: make(chan struct{}, 1), ended: make(chan struct{}), first: true}, nil
}

func (t *tidier) start() {
	go func() {
		defer close(t.ended)
		lengthen(t.log, firstBytes)
		ahead := int64(runwayBytes)
		for range t.wake {
			lengthen(t.log, ahead)
			ahead = tidyBytes
			if t.copyBack("PASSIVE")*pageSize > logBytes {
				t.long.Store(true)
			}
		}
	}()
}

// copyBack copies what it can and returns the pages of the log. That it could
// not copy everything is no error: the log stays, and the next time goes on.
func (t *tidier) copyBack(mode string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.c.One("PRAGMA wal_checkpoint(" + mode + ")")
	if err != nil || len(r) < 2 {
		return 0
	}
	return r.Int(1)
}

// tidied is called after each commit of about n bytes. A
// log that is too long is copied to its end, which is near, so that the next
// commit finds nothing left in it and writes it from the start; no snapshot
// may then still look into it.
func (s *Store) tidied(n int64) {
	t := s.tidy
	if t.grown += n; t.grown > tidyBytes || t.first && t.grown > firstBytes/2 {
		t.grown, t.first = 0, false
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	if !t.long.CompareAndSwap(true, false) {
		return
	}
	t.copyBack("PASSIVE")
	s.seen.Lock()
	old := s.snap
	s.snap = newSnapshot(s.version)
	s.seen.Unlock()
	old.release(s.readers)
}

func (t *tidier) stop() {
	close(t.wake)
	<-t.ended
}

package sqlite

import "errors"

// Bare is the least that durable rows can cost here: callers who each wait,
// one group commit, one table with a key and a unique constraint, on one
// connection as SQLite comes. It is what a Store is measured beside, and
// keeps nothing that anybody needs.
type Bare struct {
	c     *conn
	next  map[int64]int64 // by tenant; the committer's
	queue chan bareLeaf
	ended chan struct{}
}

type bareLeaf struct {
	tenant, kind int64
	crossing     [16]byte
	record       []byte
	done         chan error
}

// OpenBare makes the file, which must not exist, and begins to commit.
func OpenBare(path string) (*Bare, error) {
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	c, err := openWriter(path)
	if err != nil {
		return nil, err
	}
	err = c.script(`PRAGMA wal_autocheckpoint = 1000;
		CREATE TABLE leaf (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, crossing BLOB NOT NULL, record BLOB NOT NULL) STRICT;
		CREATE UNIQUE INDEX leaf_crossing ON leaf (crossing, kind)`)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	b := &Bare{c: c, next: map[int64]int64{}, queue: make(chan bareLeaf, maxInFlight), ended: make(chan struct{})}
	go b.loop()
	return b, nil
}

// Put inserts one row and returns when it is durable. The crossing is a UUID,
// and it and the kind are unique together. Tenants count from 1.
func (b *Bare) Put(tenant, kind int64, crossing string, record []byte) error {
	id, ok := uuidBytes(crossing)
	if !ok {
		return errors.New("the crossing is no UUID")
	}
	done := make(chan error, 1)
	b.queue <- bareLeaf{tenant, kind, id, record, done}
	return <-done
}

// Close waits for what is under way. Nobody may call Put any more.
func (b *Bare) Close() error {
	close(b.queue)
	<-b.ended
	return b.c.close()
}

func (b *Bare) loop() {
	defer close(b.ended)
	for first := range b.queue {
		rows := []bareLeaf{first}
		for len(b.queue) > 0 && len(rows) < maxInFlight {
			rows = append(rows, <-b.queue)
		}
		err := b.commit(rows)
		for _, r := range rows {
			r.done <- err
		}
	}
}

func (b *Bare) commit(rows []bareLeaf) error {
	if _, err := b.c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := many(b.c, "INSERT INTO leaf (id, kind, crossing, record)", "", 4, len(rows), func(args []any, i int) []any {
		r := &rows[i]
		args = append(args, leafID(r.tenant, b.next[r.tenant]), r.kind, r.crossing[:], r.record)
		b.next[r.tenant]++
		return args
	})
	if err == nil {
		_, err = b.c.exec("COMMIT")
	}
	if err != nil {
		return errors.Join(err, b.c.script("ROLLBACK"))
	}
	return nil
}

// Package barerows is what a store of the ledger is measured beside.
package barerows

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/url"
	"os"
	"strings"

	"github.com/google/uuid"
	"modernc.org/sqlite"
)

// Rows is the least that durable rows can cost here: callers who each wait,
// one group commit, one table with a key and a unique constraint, on one
// connection as SQLite comes. It is what a Store is measured beside, and
// keeps nothing that anybody needs.
type Rows struct {
	dc      driver.Conn
	inserts map[int]driver.Stmt // by the number of rows; the committer's
	next    map[int64]int64     // by tenant; the committer's
	queue   chan row
	ended   chan struct{}
}

type row struct {
	tenant, kind int64
	crossing     [16]byte
	record       []byte
	done         chan error
}

// maxRows is how many rows a commit has at most, as many as a Store's.
const maxRows = 256

// Open makes the file, which must not exist, and begins to commit. Its connection is
// set up as a Store's writer, but for the log, which SQLite copies back by itself.
func Open(path string) (*Rows, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=rw"}
	dc, err := (&sqlite.Driver{}).Open(u.String())
	if err != nil {
		return nil, err
	}
	b := &Rows{
		dc: dc, inserts: map[int]driver.Stmt{}, next: map[int64]int64{},
		queue: make(chan row, maxRows), ended: make(chan struct{}),
	}
	err = b.run(`PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
		PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1; PRAGMA foreign_keys = 1;
		PRAGMA cache_size = -16384; PRAGMA trusted_schema = 0; PRAGMA temp_store = MEMORY;
		PRAGMA wal_autocheckpoint = 1000;
		CREATE TABLE leaf (
			id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, crossing BLOB NOT NULL, record BLOB NOT NULL) STRICT;
		CREATE UNIQUE INDEX leaf_crossing ON leaf (crossing, kind)`)
	for _, n := range []int{16, 4, 1} {
		if err == nil {
			b.inserts[n], err = dc.Prepare("INSERT INTO leaf (id, kind, crossing, record) VALUES (?,?,?,?)" +
				strings.Repeat(",(?,?,?,?)", n-1))
		}
	}
	if err != nil {
		return nil, errors.Join(err, dc.Close())
	}
	go b.loop()
	return b, nil
}

func (b *Rows) run(sql string) error {
	_, err := b.dc.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}

// Put inserts one row and returns when it is durable. The crossing is a UUID,
// and it and the kind are unique together. Tenants count from 1.
func (b *Rows) Put(tenant, kind int64, crossing string, record []byte) error {
	id, err := uuid.Parse(crossing)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	b.queue <- row{tenant, kind, id, record, done}
	return <-done
}

// Close waits for what is under way. Nobody may call Put any more.
func (b *Rows) Close() error {
	close(b.queue)
	<-b.ended
	var errs []error
	for _, s := range b.inserts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, b.dc.Close())...)
}

func (b *Rows) loop() {
	defer close(b.ended)
	for first := range b.queue {
		rows := []row{first}
		for len(b.queue) > 0 && len(rows) < maxRows {
			rows = append(rows, <-b.queue)
		}
		err := b.commit(rows)
		for _, r := range rows {
			r.done <- err
		}
	}
}

func (b *Rows) commit(rows []row) error {
	err := b.run("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	for _, n := range []int{16, 4, 1} {
		for ; len(rows) >= n && err == nil; rows = rows[n:] {
			err = b.insert(rows[:n])
		}
	}
	if err == nil {
		err = b.run("COMMIT")
	}
	if err != nil {
		return errors.Join(err, b.run("ROLLBACK"))
	}
	return nil
}

// insert inserts so many rows as there is a statement for.
func (b *Rows) insert(rows []row) error {
	args := make([]driver.NamedValue, 0, 4*len(rows))
	for _, r := range rows {
		id := r.tenant<<40 + b.next[r.tenant]
		b.next[r.tenant]++
		for _, v := range []driver.Value{id, r.kind, r.crossing[:], r.record} {
			args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: v})
		}
	}
	_, err := b.inserts[len(rows)].(driver.StmtExecContext).ExecContext(context.Background(), args)
	return err
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one connection of the driver, with its prepared statements. It is
// used by one goroutine at a time; who that is, is said where a conn is kept.
type conn struct {
	dc    driver.Conn
	stmts map[string]*stmt
}

// stmt is one prepared statement. args is reused between executions.
type stmt struct {
	c    *conn
	sql  string
	ds   driver.Stmt
	args []driver.NamedValue
	busy bool
}

// maxStmts bounds the prepared statements of a connection; the shapes are few
// and fixed, so that the bound is never met in practice.
const maxStmts = 192

// dsn names the file for the driver. Special characters of the path are
// escaped, so that no path can carry a parameter of its own.
func dsn(path string, readOnly bool) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: path}
	if readOnly {
		u.RawQuery = "mode=ro"
	} else {
		u.RawQuery = "mode=rw"
	}
	return u.String()
}

func connect(path string, readOnly bool) (*conn, error) {
	dc, err := (&sqlite.Driver{}).Open(dsn(path, readOnly))
	if err != nil {
		return nil, err
	}
	return &conn{dc: dc, stmts: make(map[string]*stmt)}, nil
}

// openMemory opens a new database in memory.
func openMemory() (*conn, error) {
	dc, err := (&sqlite.Driver{}).Open(":memory:")
	if err != nil {
		return nil, err
	}
	return &conn{dc: dc, stmts: make(map[string]*stmt)}, nil
}

// isFull reports whether an error is SQLite's own of a disk without room.
func isFull(err error) bool {
	var db *sqlite.Error
	return errors.As(err, &db) && db.Code()&0xff == sqlite3.SQLITE_FULL
}

// isDatabaseError reports whether an error is SQLite's own.
func isDatabaseError(err error) bool { return errors.As(err, new(*sqlite.Error)) }

// looked is how many pages the connection looked at since it was asked last,
// or -1 where that cannot be told.
func (c *conn) looked() (pages int) {
	of, ok := c.dc.(sqlite.DBStatus)
	for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
		if !ok {
			return -1
		}
		n, _, err := of.Status(op, true)
		pages, ok = pages+n, err == nil
	}
	return pages
}

func (c *conn) close() error {
	if c == nil {
		return nil
	}
	for _, s := range c.stmts {
		_ = s.ds.Close()
	}
	c.stmts = nil
	return c.dc.Close()
}

// take gives a prepared statement to its caller alone, until give.
func (c *conn) take(sql string) (*stmt, error) {
	s := c.stmts[sql]
	if s != nil && !s.busy {
		s.busy = true
		return s, nil
	}
	ds, err := c.dc.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", sql, err)
	}
	fresh := &stmt{c: c, sql: sql, ds: ds, busy: true}
	if s == nil && len(c.stmts) < maxStmts {
		c.stmts[sql] = fresh
	}
	return fresh, nil
}

func (c *conn) give(s *stmt) {
	for i := range s.args {
		s.args[i].Value = nil
	}
	s.busy = false
	if c.stmts[s.sql] != s {
		_ = s.ds.Close()
	}
}

// bind fills the statement's arguments. Strings are text, byte slices blobs.
func (s *stmt) bind(args []any) {
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
}

func (s *stmt) exec() (int64, error) {
	r, err := s.ds.(driver.StmtExecContext).ExecContext(context.Background(), s.args)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return n, err
}

// exec runs one statement and returns how many rows it changed.
func (c *conn) exec(sql string, args ...any) (int64, error) {
	s, err := c.take(sql)
	if err != nil {
		return 0, err
	}
	defer c.give(s)
	s.bind(args)
	return s.exec()
}

// row is one row of a result, in the columns' order.
type row []driver.Value

func (r row) int(i int) int64   { v, _ := r[i].(int64); return v }
func (r row) text(i int) string { v, _ := r[i].(string); return v }
func (r row) blob(i int) []byte { v, _ := r[i].([]byte); return v }
func (r row) isNull(i int) bool { return r[i] == nil }

// cursor is a query under way.
type cursor struct {
	s    *stmt
	rows driver.Rows
	row  row
}

func (c *conn) open(sql string, args ...any) (*cursor, error) {
	s, err := c.take(sql)
	if err != nil {
		return nil, err
	}
	s.bind(args)
	rows, err := s.ds.(driver.StmtQueryContext).QueryContext(context.Background(), s.args)
	if err != nil {
		c.give(s)
		return nil, err
	}
	return &cursor{s: s, rows: rows, row: make(row, len(rows.Columns()))}, nil
}

// next returns the next row, or nil at the end. The row's slices are fresh,
// the row itself is reused.
func (k *cursor) next() (row, error) {
	err := k.rows.Next(k.row)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return k.row, nil
}

func (k *cursor) close() error {
	err := k.rows.Close()
	k.s.c.give(k.s)
	return err
}

// query calls fn for each row.
func (c *conn) query(sql string, fn func(row) error, args ...any) error {
	k, err := c.open(sql, args...)
	if err != nil {
		return err
	}
	for {
		r, err := k.next()
		if err == nil && r != nil {
			err = fn(r)
		}
		if err != nil {
			_ = k.close()
			return err
		}
		if r == nil {
			return k.close()
		}
	}
}

// one returns the first row, or nil if there is none.
func (c *conn) one(sql string, args ...any) (row, error) {
	k, err := c.open(sql, args...)
	if err != nil {
		return nil, err
	}
	r, err := k.next()
	if cerr := k.close(); err == nil {
		err = cerr
	}
	return r, err
}

// scalar returns the single whole number that sql yields.
func (c *conn) scalar(sql string, args ...any) (int64, error) {
	r, err := c.one(sql, args...)
	if err != nil {
		return 0, err
	}
	if len(r) == 0 {
		return 0, fmt.Errorf("%.60q yields no row", sql)
	}
	return r.int(0), nil
}

// script runs several statements.
func (c *conn) script(sql string) error {
	_, err := c.dc.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}

// execCtx is exec that ends when ctx does.
func (c *conn) execCtx(ctx context.Context, sql string, args ...any) error {
	s, err := c.take(sql)
	if err != nil {
		return err
	}
	defer c.give(s)
	s.bind(args)
	_, err = s.ds.(driver.StmtExecContext).ExecContext(ctx, s.args)
	return err
}

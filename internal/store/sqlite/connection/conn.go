package connection

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

// Conn is one connection of the driver, with its prepared statements. It is
// used by one goroutine at a time; who that is, is said where a conn is kept.
type Conn struct {
	dc    driver.Conn
	stmts map[string]*Statement
}

// Statement is one prepared statement. args is reused between executions.
type Statement struct {
	c    *Conn
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

func Open(path string, readOnly bool) (*Conn, error) {
	dc, err := (&sqlite.Driver{}).Open(dsn(path, readOnly))
	if err != nil {
		return nil, err
	}
	return &Conn{dc: dc, stmts: make(map[string]*Statement)}, nil
}

// OpenMemory opens a new database in memory.
func OpenMemory() (*Conn, error) {
	dc, err := (&sqlite.Driver{}).Open(":memory:")
	if err != nil {
		return nil, err
	}
	return &Conn{dc: dc, stmts: make(map[string]*Statement)}, nil
}

// IsFull reports whether an error is SQLite's own of a disk without room.
func IsFull(err error) bool {
	var db *sqlite.Error
	return errors.As(err, &db) && db.Code()&0xff == sqlite3.SQLITE_FULL
}

// IsDatabaseError reports whether an error is SQLite's own.
func IsDatabaseError(err error) bool { return errors.As(err, new(*sqlite.Error)) }

// CountPages is how many pages the connection looked at since it was asked last,
// or -1 where that cannot be told.
func (c *Conn) CountPages() (pages int) {
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

func (c *Conn) Close() error {
	if c == nil {
		return nil
	}
	for _, s := range c.stmts {
		_ = s.ds.Close()
	}
	c.stmts = nil
	return c.dc.Close()
}

// Take gives a prepared statement to its caller alone, until give.
func (c *Conn) Take(sql string) (*Statement, error) {
	s := c.stmts[sql]
	if s != nil && !s.busy {
		s.busy = true
		return s, nil
	}
	ds, err := c.dc.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", sql, err)
	}
	fresh := &Statement{c: c, sql: sql, ds: ds, busy: true}
	if s == nil && len(c.stmts) < maxStmts {
		c.stmts[sql] = fresh
	}
	return fresh, nil
}

func (c *Conn) Give(s *Statement) {
	for i := range s.args {
		s.args[i].Value = nil
	}
	s.busy = false
	if c.stmts[s.sql] != s {
		_ = s.ds.Close()
	}
}

// Bind fills the statement's arguments. Strings are text, byte slices blobs.
func (s *Statement) Bind(args []any) {
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
}

func (s *Statement) Exec() (int64, error) {
	r, err := s.ds.(driver.StmtExecContext).ExecContext(context.Background(), s.args)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return n, err
}

// Exec runs one statement and returns how many rows it changed.
func (c *Conn) Exec(sql string, args ...any) (int64, error) {
	s, err := c.Take(sql)
	if err != nil {
		return 0, err
	}
	defer c.Give(s)
	s.Bind(args)
	return s.Exec()
}

// Row is one row of a result, in the columns' order.
type Row []driver.Value

func (r Row) Int(i int) int64   { v, _ := r[i].(int64); return v }
func (r Row) Text(i int) string { v, _ := r[i].(string); return v }
func (r Row) Blob(i int) []byte { v, _ := r[i].([]byte); return v }
func (r Row) IsNull(i int) bool { return r[i] == nil }

// Cursor is a query under way.
type Cursor struct {
	s    *Statement
	rows driver.Rows
	row  Row
}

func (c *Conn) OpenCursor(sql string, args ...any) (*Cursor, error) {
	s, err := c.Take(sql)
	if err != nil {
		return nil, err
	}
	s.Bind(args)
	rows, err := s.ds.(driver.StmtQueryContext).QueryContext(context.Background(), s.args)
	if err != nil {
		c.Give(s)
		return nil, err
	}
	return &Cursor{s: s, rows: rows, row: make(Row, len(rows.Columns()))}, nil
}

// Next returns the next row, or nil at the end. The row's slices are fresh,
// the row itself is reused.
func (k *Cursor) Next() (Row, error) {
	err := k.rows.Next(k.row)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return k.row, nil
}

func (k *Cursor) Close() error {
	err := k.rows.Close()
	k.s.c.Give(k.s)
	return err
}

// Query calls fn for each row.
func (c *Conn) Query(sql string, fn func(Row) error, args ...any) error {
	k, err := c.OpenCursor(sql, args...)
	if err != nil {
		return err
	}
	for {
		r, err := k.Next()
		if err == nil && r != nil {
			err = fn(r)
		}
		if err != nil {
			_ = k.Close()
			return err
		}
		if r == nil {
			return k.Close()
		}
	}
}

// One returns the first row, or nil without one.
func (c *Conn) One(sql string, args ...any) (Row, error) {
	k, err := c.OpenCursor(sql, args...)
	if err != nil {
		return nil, err
	}
	r, err := k.Next()
	if cerr := k.Close(); err == nil {
		err = cerr
	}
	return r, err
}

// Scalar returns the single whole number that sql yields.
func (c *Conn) Scalar(sql string, args ...any) (int64, error) {
	r, err := c.One(sql, args...)
	if err != nil {
		return 0, err
	}
	if len(r) == 0 {
		return 0, fmt.Errorf("%.60q yields no row", sql)
	}
	return r.Int(0), nil
}

// Script runs several statements.
func (c *Conn) Script(sql string) error {
	_, err := c.dc.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}

// ExecCtx is exec that ends when ctx does.
func (c *Conn) ExecCtx(ctx context.Context, sql string, args ...any) error {
	s, err := c.Take(sql)
	if err != nil {
		return err
	}
	defer c.Give(s)
	s.Bind(args)
	_, err = s.ds.(driver.StmtExecContext).ExecContext(ctx, s.args)
	return err
}

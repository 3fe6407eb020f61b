package sqlite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/mod/sumdb/tlog"
)

// This file is what the database says, as plain functions over a connection.
// Tx implementations lay what is in memory over it.

func leafID(tenant, seq int64) int64 { return tenant<<schema.SeqBits + seq }
func leafSeq(id int64) int64         { return id & (1<<schema.SeqBits - 1) }
func micros(t time.Time) int64       { return t.UnixMicro() }
func fromMicros(v int64) time.Time   { return time.UnixMicro(v).UTC() }

const leafColumns = "SELECT id, kind, at, hash, crossing, record, part FROM leaf "

// stored reads one row of leafColumns.
func stored(tenant string, r connection.Row) (ledger.Stored, error) {
	s := ledger.Stored{
		Place: ledger.Place{Tenant: tenant, Seq: leafSeq(r.Int(0))},
		Kind:  ledger.Kind(r.Int(1)), At: fromMicros(r.Int(2)),
		Record: r.Blob(5), Part: r.Blob(6),
	}
	s.Crossing = crossingText(r[4])
	var err error
	s.Hash, err = leafHash(tenant, s.Seq, r.Blob(3))
	return s, err
}

// leafHash is what stands beside a record as its hash.
func leafHash(tenant string, seq int64, b []byte) (tlog.Hash, error) {
	h, ok := hashOf(b)
	if !ok {
		return h, &ledger.Fault{Tenant: tenant, Seq: seq, Why: fmt.Sprintf("a hash of %d bytes stands beside the record, not of %d", len(b), tlog.HashSize)}
	}
	return h, nil
}

// hashOf reads one hash. The file is anybody's who can write to it: what it holds
// need not be as long as the schema asks for.
func hashOf(b []byte) (h tlog.Hash, ok bool) {
	if len(b) != len(h) {
		return h, false
	}
	return tlog.Hash(b), true
}

func readLeaf(c *connection.Conn, t tenantID, seq int64) (ledger.Stored, error) {
	r, err := c.One(leafColumns+"WHERE id = ?", leafID(t.id, seq))
	if err != nil {
		return ledger.Stored{}, err
	}
	if r == nil {
		return ledger.Stored{}, notFound("leaf %d of tenant %q", seq, t.name)
	}
	return stored(t.name, r)
}

func notFound(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, kernel.ErrNotFound)...)
}

// crossed is where the begin and the entry of a crossing stand.
type crossed struct {
	tenant       int64
	begin, entry int64 // sequence numbers, -1 where there is none
}

func readCrossed(c *connection.Conn, id string) (crossed, error) {
	x := crossed{begin: -1, entry: -1}
	err := c.Query("SELECT id, kind FROM leaf WHERE crossing = ? AND kind < 3", func(r connection.Row) error {
		x.tenant = r.Int(0) >> schema.SeqBits
		if ledger.Kind(r.Int(1)) == ledger.KindBegin {
			x.begin = leafSeq(r.Int(0))
		} else {
			x.entry = leafSeq(r.Int(0))
		}
		return nil
	}, crossingValue(id))
	return x, err
}

// readEvents returns the events of one tenant that name a crossing, by the index
// leaf_event, whose condition stands in the query as it stands in the schema.
func readEvents(c *connection.Conn, t tenantID, crossing string, limit int) ([]ledger.Stored, error) {
	var out []ledger.Stored
	err := c.Query(leafColumns+"WHERE crossing = ? AND kind = 3 AND id >= ? AND id < ? ORDER BY id LIMIT ?",
		func(r connection.Row) error {
			l, err := stored(t.name, r)
			out = append(out, l)
			return err
		}, crossingValue(crossing), leafID(t.id, 0), leafID(t.id+1, 0), int64(limit))
	return out, err
}

// tenantID is a tenant's name and number.
type tenantID struct {
	name string
	id   int64
}

func readTenant(c *connection.Conn, name string) (tenantID, bool, error) {
	r, err := c.One("SELECT id FROM tenant WHERE name = ?", name)
	if err != nil || r == nil {
		return tenantID{name: name}, false, err
	}
	return tenantID{name: name, id: r.Int(0)}, true, nil
}

// dbHead is one row of head with its tenant.
type dbHead struct {
	tenantID
	size, settled int64
	root          tlog.Hash
}

func readHeads(c *connection.Conn) ([]dbHead, error) {
	var hs []dbHead
	err := c.Query("SELECT tenant.name, tenant.id, size, settled, root FROM head JOIN tenant ON tenant.id = head.tenant ORDER BY tenant.name",
		func(r connection.Row) error {
			h := dbHead{tenantID: tenantID{r.Text(0), r.Int(1)}, size: r.Int(2), settled: r.Int(3)}
			root, ok := hashOf(r.Blob(4))
			if !ok {
				return rootFault(h.name, "the head", r.Blob(4))
			}
			h.root = root
			hs = append(hs, h)
			return nil
		})
	return hs, err
}

// What is said of what has another length than it should.
const (
	otherRoot   = "%s has a root of %d bytes, not of %d"
	otherHashes = "%s has hashes of %d bytes, not of %d"
)

// rootFault is the fault of a root that is none.
func rootFault(tenant, of string, b []byte) error {
	return &ledger.Fault{Tenant: tenant, Seq: -1, Why: fmt.Sprintf(otherRoot, of, len(b), tlog.HashSize)}
}

// begun is a begin without an entry.
type begun struct {
	tenantID
	seq, at  int64
	crossing string
}

// oldestFirst orders begins of several tenants.
func oldestFirst(a, b begun) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name), cmp.Compare(a.seq, b.seq))
}

// readOpen returns the begins without an entry of one tenant, in order.
func readOpen(c *connection.Conn, h dbHead) ([]begun, error) {
	var open []begun
	err := c.Query(`SELECT id, at, crossing FROM leaf AS b WHERE id >= ? AND id < ? AND kind = 1
		AND NOT EXISTS (SELECT 1 FROM leaf AS e WHERE e.crossing = b.crossing AND e.kind = 2)`,
		func(r connection.Row) error {
			open = append(open, begun{h.tenantID, leafSeq(r.Int(0)), r.Int(1), crossingText(r[2])})
			return nil
		}, leafID(h.id, h.settled), leafID(h.id, h.size))
	return open, err
}

func readTile(c *connection.Conn, t tenantID, level int, n int64) ([]tlog.Hash, error) {
	r, err := c.One("SELECT hashes FROM tile WHERE tenant = ? AND level = ? AND n = ?", t.id, int64(level), n)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, notFound("tile %d at level %d of tenant %q", n, level, t.name)
	}
	return unpackTile(t.name, level, n, r.Blob(0))
}

func tileName(level int, n int64) string { return fmt.Sprintf("tile %d at level %d", n, level) }

// unpackTile reads the hashes of a complete tile.
func unpackTile(tenant string, level int, n int64, b []byte) ([]tlog.Hash, error) {
	if len(b) != tileSize {
		return nil, tileFault(tenant, level, n, len(b))
	}
	hs := make([]tlog.Hash, ledger.TileWidth)
	for i := range hs {
		copy(hs[i][:], b[i*tlog.HashSize:])
	}
	return hs, nil
}

// tileSize is what the hashes of a complete tile take, in bytes.
const tileSize = ledger.TileWidth * tlog.HashSize

func tileFault(tenant string, level int, n int64, size int) error {
	return &ledger.Fault{Tenant: tenant, Seq: -1, Why: fmt.Sprintf(otherHashes, tileName(level, n), size, tileSize)}
}

func readRoots(c *connection.Conn, t tenantID, level int, from, to int64) ([]tlog.Hash, error) {
	var hs []tlog.Hash
	err := c.Query("SELECT root, n FROM tile WHERE tenant = ? AND level = ? AND n >= ? AND n < ? ORDER BY n",
		func(r connection.Row) error {
			h, ok := hashOf(r.Blob(0))
			if !ok {
				return rootFault(t.name, tileName(level, r.Int(1)), r.Blob(0))
			}
			hs = append(hs, h)
			return nil
		}, t.id, int64(level), from, to)
	if err == nil && int64(len(hs)) != to-from {
		err = notFound("tiles [%d, %d) at level %d of tenant %q", from, to, level, t.name)
	}
	return hs, err
}

// readLeafHashes reads hashes of leaves, from tiles where they are complete.
func readLeafHashes(c *connection.Conn, t tenantID, from, to int64) ([]tlog.Hash, error) {
	hs := make([]tlog.Hash, 0, min(to-from, 1<<20))
	for n := from / ledger.TileWidth; from < to; n++ {
		end := min(to, (n+1)*ledger.TileWidth)
		r, err := c.One("SELECT hashes FROM tile WHERE tenant = ? AND level = 0 AND n = ?", t.id, n)
		if err != nil {
			return nil, err
		}
		if r == nil {
			break
		}
		all, err := unpackTile(t.name, 0, n, r.Blob(0))
		if err != nil {
			return nil, err
		}
		hs = append(hs, all[from-n*ledger.TileWidth:end-n*ledger.TileWidth]...)
		from = end
	}
	if from == to {
		return hs, nil
	}
	want := from
	err := c.Query("SELECT id, hash FROM leaf WHERE id >= ? AND id < ?", func(r connection.Row) error {
		if leafSeq(r.Int(0)) != want {
			return fmt.Errorf("leaf %d of tenant %s is missing", want, t.name)
		}
		h, err := leafHash(t.name, want, r.Blob(1))
		want++
		hs = append(hs, h)
		return err
	}, leafID(t.id, from), leafID(t.id, to))
	if err == nil && want != to {
		err = notFound("leaf %d of tenant %q", want, t.name)
	}
	return hs, err
}

// nodes reads the tree of a tenant as the database has it.
type nodes struct {
	do func(func(*connection.Conn) error) error
	t  tenantID
}

func (n nodes) LeafHashes(from, to int64) (hs []tlog.Hash, err error) {
	if from < 0 || from > to {
		return nil, fmt.Errorf("leaves [%d, %d) are no range", from, to)
	}
	err = n.do(func(c *connection.Conn) error { hs, err = readLeafHashes(c, n.t, from, to); return err })
	return hs, err
}

func (n nodes) Tile(level int, i int64) (hs []tlog.Hash, err error) {
	err = n.do(func(c *connection.Conn) error { hs, err = readTile(c, n.t, level, i); return err })
	return hs, err
}

func (n nodes) Roots(level int, from, to int64) (hs []tlog.Hash, err error) {
	err = n.do(func(c *connection.Conn) error { hs, err = readRoots(c, n.t, level, from, to); return err })
	return hs, err
}

func packHashes(hs []tlog.Hash) []byte {
	b := make([]byte, 0, len(hs)*tlog.HashSize)
	for i := range hs {
		b = append(b, hs[i][:]...)
	}
	return b
}

func readCheckpoint(c *connection.Conn, tenant string) (ledger.SignedCheckpoint, error) {
	var cp ledger.SignedCheckpoint
	r, err := c.One("SELECT size, root, at, note FROM checkpoint WHERE tenant = ? ORDER BY size DESC LIMIT 1", tenant)
	if err != nil {
		return cp, err
	}
	if r == nil {
		return cp, notFound("checkpoint of tenant %q", tenant)
	}
	root, ok := hashOf(r.Blob(1))
	if !ok {
		return cp, rootFault(tenant, fmt.Sprintf("the checkpoint of %d leaves", r.Int(0)), r.Blob(1))
	}
	cp.Tenant, cp.Size, cp.Root, cp.At, cp.Note = tenant, r.Int(0), root, fromMicros(r.Int(2)), r.Blob(3)
	return cp, nil
}

func readCounter(c *connection.Conn, key string) (budget.Counter, bool, error) {
	r, err := c.One(`SELECT used, "window" FROM counter WHERE key = ?`, key)
	if err != nil || r == nil {
		return budget.Counter{}, false, err
	}
	return budget.Counter{Used: r.Int(0), Window: r.Int(1)}, true, nil
}

// keyed is a counter with its key.
type keyed struct {
	key string
	budget.Counter
}

// counterPage is how many counters are read at once.
const counterPage = 1024

// readCounters reads the first page of those behind after whose keys begin with
// prefix. No key has the byte 0xff, which therefore ends them.
func readCounters(c *connection.Conn, prefix, after string) ([]keyed, error) {
	var out []keyed
	err := c.Query(`SELECT key, used, "window" FROM counter WHERE key >= ? AND key > ? AND key < ? ORDER BY key LIMIT ?`, func(r connection.Row) error {
		out = append(out, keyed{r.Text(0), budget.Counter{Used: r.Int(1), Window: r.Int(2)}})
		return nil
	}, prefix, after, prefix+"\xff", int64(counterPage))
	return out, err
}

func readAgent(r connection.Row) (holdfast.Agent, error) {
	var a holdfast.Agent
	err := json.Unmarshal([]byte(r.Text(0)), &a)
	return a, err
}

func readReview(r connection.Row) (review.Review, error) {
	var v review.Review
	err := json.Unmarshal([]byte(r.Text(0)), &v)
	return v, err
}

func readReplay(c *connection.Conn, key string) (kernel.Replay, bool, error) {
	r, err := c.One("SELECT exact, crossing, sealed, expires FROM replay WHERE key = ?", key)
	if err != nil || r == nil {
		return kernel.Replay{}, false, err
	}
	return kernel.Replay{Key: key, Exact: r.Text(0), Crossing: r.Text(1), Sealed: r.Blob(2),
		Expires: fromMicros(r.Int(3))}, true, nil
}

// windowFits guards arithmetic on times of a rate.
func windowFits(d time.Duration) bool { return d > 0 && d.Microseconds() < math.MaxInt64/4 }

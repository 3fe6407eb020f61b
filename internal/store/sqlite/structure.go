package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
	"github.com/holdfast-dev/holdfast/ledger"
)

// object is one table, index, trigger or view of a schema.
type object struct{ kind, name, sql string }

func (o object) String() string {
	if o.kind == "trigger" {
		return "the append-only trigger " + o.name
	}
	return "the " + o.kind + " " + o.name
}

// readSchema reads what was made with SQL, by name; SQLite's own is left out.
func readSchema(c *connection.Conn) (map[string]object, error) {
	all := make(map[string]object)
	err := c.Query("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL", func(r connection.Row) error {
		if o := (object{r.Text(0), r.Text(1), r.Text(2)}); !strings.HasPrefix(o.name, "sqlite_") {
			all[o.name] = o
		}
		return nil
	})
	return all, err
}

// schemaDigest is digestSchema of the schema that the migrations make, so that a process
// does not make one to compare with.
const schemaDigest = "29e163dfd6ba8d50aaca0fa099b59830620cbb9ca277e2a7c0ca77d37850d479"

// digestSchema returns the SHA-256 of a schema, in hexadecimal.
func digestSchema(all map[string]object) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%q %q %q\n", all[name].kind, name, all[name].sql)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// expectedSchema returns the schema as the migrations make it, by the objects' names.
// It is made once a process, and must not be changed.
var expectedSchema = sync.OnceValues(migrateInMemory)

// migrateInMemory returns the schema of a new database in memory.
func migrateInMemory() (_ map[string]object, err error) {
	c, err := connection.OpenMemory()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := schema.Migrate(c, false); err != nil {
		return nil, err
	}
	return readSchema(c)
}

// schemaFaults says what of the schema is missing, changed or not Holdfast's:
// who can write to the file can take away what makes the ledger append-only.
func schemaFaults(c *connection.Conn, tables map[*table.Def]*rowTable) ([]string, error) {
	have, err := readSchema(c)
	if err != nil {
		return nil, err
	}
	var out []string
	for name, w := range laterObjects(tables) {
		switch h, ok := have[name]; {
		case !ok:
			out = append(out, w.String()+" is missing")
		case h != w:
			out = append(out, w.String()+" was changed")
		}
		delete(have, name)
	}
	if digestSchema(have) == schemaDigest {
		slices.Sort(out)
		return out, nil
	}
	want, err := expectedSchema()
	if err != nil {
		return nil, err
	}
	for name, w := range want {
		switch h, ok := have[name]; {
		case !ok:
			out = append(out, w.String()+" is missing")
		case h != w:
			out = append(out, w.String()+" was changed")
		}
	}
	for name, h := range have {
		if _, ok := want[name]; !ok {
			out = append(out, fmt.Sprintf("the %s %.80q is not one of Holdfast's", h.kind, name))
		}
	}
	slices.Sort(out)
	return out, nil
}

// orphans finds what belongs to no tree: a tenant without a head, and leaves,
// tiles and, for all, checkpoints of none or beyond one, and a state that only
// a ledger can have made. It looks a tenant up, never a leaf, so that it costs
// O(tenants log n); for all, it reads each tile besides.
func orphans(c *connection.Conn, all bool) ([]ledger.Fault, error) {
	o := orphanage{heads: make(map[int64]int64), names: make(map[int64]string)}
	err := c.Query("SELECT id, name FROM tenant", func(r connection.Row) error {
		o.names[r.Int(0)] = r.Text(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = c.Query("SELECT tenant, size FROM head", func(r connection.Row) error {
		o.heads[r.Int(0)] = r.Int(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.tenants()
	err = errors.Join(o.leaves(c), o.tiles(c))
	if all {
		err = errors.Join(err, o.checkpoints(c), o.rest(c), o.hashes(c))
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(o.found, func(a, b ledger.Fault) int { return strings.Compare(a.Tenant+"\x00"+a.Why, b.Tenant+"\x00"+b.Why) })
	return o.found, nil
}

type orphanage struct {
	heads map[int64]int64 // size by tenant
	names map[int64]string
	found []ledger.Fault
}

func (o *orphanage) add(tenant, seq int64, format string, args ...any) {
	name, ok := o.names[tenant]
	if !ok {
		name = fmt.Sprintf("number %d", tenant)
	}
	o.found = append(o.found, ledger.Fault{Tenant: name, Seq: seq, Why: fmt.Sprintf(format, args...)})
}

func (o *orphanage) tenants() {
	for id := range o.names {
		if _, ok := o.heads[id]; !ok {
			o.add(id, -1, "the tenant has no head: its tree was taken away")
		}
	}
	for id := range o.heads {
		if _, ok := o.names[id]; !ok {
			o.add(id, -1, "a head of a tenant that is not there")
		}
	}
}

// leaves compares each tenant's last leaf with its head. The leaves of a tenant
// lie together, so that the next tenant is one look-up away.
func (o *orphanage) leaves(c *connection.Conn) error {
	for from := int64(math.MinInt64); ; {
		r, err := c.One("SELECT min(id) FROM leaf WHERE id >= ?", from)
		if err != nil || r.IsNull(0) {
			return err
		}
		tenant := r.Int(0) >> schema.SeqBits
		first, end := leafSeq(r.Int(0)), tenant<<schema.SeqBits|(1<<schema.SeqBits-1)
		if r, err = c.One("SELECT max(id) FROM leaf WHERE id <= ?", end); err != nil {
			return err
		}
		last := leafSeq(r.Int(0))
		size, ok := o.heads[tenant]
		_, named := o.names[tenant]
		switch {
		case !ok || !named:
			o.add(tenant, first, "leaves %d to %d belong to no head", first, last)
		case last >= size:
			o.add(tenant, size, "the head counts %d leaves, and there are leaves up to %d", size, last)
		}
		if end == math.MaxInt64 {
			return nil
		}
		from = end + 1
	}
}

// rest finds what only records can have made, in a file without any.
func (o *orphanage) rest(c *connection.Conn) error {
	if len(o.heads) > 0 || len(o.found) > 0 {
		return nil
	}
	for _, table := range [...]string{"agent", "review", "revocation", "replay"} {
		r, err := c.One("SELECT 1 FROM " + table + " LIMIT 1")
		if err != nil {
			return err
		}
		if r != nil {
			o.found = append(o.found, ledger.Fault{Seq: -1, Why: "there is no tree at all, and the table " + table + " is not empty: the ledger was taken away"})
		}
	}
	return nil
}

func (o *orphanage) tiles(c *connection.Conn) error {
	for from := int64(math.MinInt64); ; {
		r, err := c.One("SELECT min(tenant) FROM tile WHERE tenant >= ?", from)
		if err != nil || r.IsNull(0) {
			return err
		}
		tenant := r.Int(0)
		if _, ok := o.heads[tenant]; !ok {
			o.add(tenant, -1, "tiles of the tree are there, and no head")
		}
		if tenant == math.MaxInt64 {
			return nil
		}
		from = tenant + 1
	}
}

func (o *orphanage) checkpoints(c *connection.Conn) error {
	sizes := make(map[string]int64)
	for id, name := range o.names {
		if size, ok := o.heads[id]; ok {
			sizes[name] = size
		}
	}
	for after := ""; ; {
		r, err := c.One("SELECT min(tenant) FROM checkpoint WHERE tenant > ?", after)
		if err != nil || r.IsNull(0) {
			return err
		}
		after = r.Text(0)
		if r, err = c.One("SELECT max(size) FROM checkpoint WHERE tenant = ?", after); err != nil {
			return err
		}
		f := ledger.Fault{Tenant: after, Seq: -1}
		size, ok := sizes[after]
		switch {
		case !ok:
			f.Why = fmt.Sprintf("a checkpoint of %d leaves is there, and no tree", r.Int(0))
		case r.Int(0) > size:
			f.Why = fmt.Sprintf("a checkpoint of %d leaves is there, and the head counts %d: the ledger was cut back", r.Int(0), size)
		default:
			continue
		}
		o.found = append(o.found, f)
	}
}

// Structure says what is wrong with the file around the trees, which no
// verification of a tree that is there can see: a schema that is not
// Holdfast's, tiles that are not the tree's, and leaves, tiles and checkpoints that
// belong to no tree. Of the leaves it reads the last 255 of each tree at most. Nothing
// found is nil.
func (s *Store) Structure(ctx context.Context) ([]ledger.Fault, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx, s.viewSlots); err != nil {
		return nil, err
	}
	defer func() { <-s.viewSlots }()
	if s.closing.Load() {
		return nil, errClosed
	}
	c, err := s.readers.begin()
	if err != nil {
		return nil, err
	}
	defer s.readers.end(c)
	return structure(c, s.tables, true)
}

func structure(c *connection.Conn, tables map[*table.Def]*rowTable, all bool) ([]ledger.Fault, error) {
	var out []ledger.Fault
	whys, err := schemaFaults(c, tables)
	if err != nil {
		return nil, err
	}
	for _, why := range whys {
		out = append(out, ledger.Fault{Seq: -1, Why: why})
	}
	found, err := orphans(c, all)
	return append(out, found...), err
}

// refuseTampered is structure's first fault as the error of opening. What
// checkpoints must find is for who has the key, and reads their log.
func refuseTampered(c *connection.Conn, tables map[*table.Def]*rowTable) error {
	fs, err := structure(c, tables, false)
	if err != nil || len(fs) == 0 {
		return err
	}
	return fmt.Errorf("%s; hint: somebody changed the file: keep it as it is, run `holdfast ledger verify`, and restore a backup", fs[0].Error())
}

package sqlite

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/mod/sumdb/tlog"
)

// maxTiles bounds how many tiles are told of.
const maxTiles = 100

// hashes finds tiles that are not the tree's, which verification has no need to read:
// it goes by the leaves. Where each tile's root is the one over its hashes, and those
// are the roots of the tiles below, and the edge of the tree, of the roots of its
// largest tiles and the leaves behind them, gives the head's root, all of them are what
// the leaves make up, or somebody has broken SHA-256. There must be no others: one that
// the tree comes to later would be taken for its own, and nothing could be written over it.
func (o *orphanage) hashes(c *connection.Conn) error {
	told := len(o.found) + maxTiles
	err := c.Query("SELECT tenant, level, n, root, hashes FROM tile ORDER BY tenant, level, n",
		func(r connection.Row) error {
			if len(o.found) >= told {
				return nil
			}
			return o.tile(c, r)
		})
	if err != nil {
		return err
	}
	return c.Query("SELECT tenant, size, root FROM head WHERE size >= ?",
		func(r connection.Row) error { return o.edge(c, r) }, int64(ledger.TileWidth))
}

// tile looks at one row.
func (o *orphanage) tile(c *connection.Conn, r connection.Row) error {
	t, level, n := tenantID{o.names[r.Int(0)], r.Int(0)}, int(r.Int(1)), r.Int(2)
	if size, ok := o.heads[t.id]; !ok || n < 0 || n >= complete(size, level) {
		if ok { // else that is told elsewhere
			o.add(t.id, -1, "%s is not of a tree of %d leaves", tileName(level, n), size)
		}
		return nil
	}
	root, ok := hashOf(r.Blob(3))
	if !ok {
		o.add(t.id, -1, otherRoot, tileName(level, n), len(r.Blob(3)), tlog.HashSize)
	}
	hs, err := unpackTile(t.name, level, n, r.Blob(4))
	switch {
	case err != nil:
		o.add(t.id, -1, otherHashes, tileName(level, n), len(r.Blob(4)), tileSize)
		return nil
	case ok && fullRoot(hs) != root:
		o.add(t.id, -1, "%s has another root than its hashes give", tileName(level, n))
	}
	if level == 0 {
		return nil
	}
	below, err := readRoots(c, t, level-1, n*ledger.TileWidth, (n+1)*ledger.TileWidth)
	if err != nil {
		return o.wrong(t.id, "what is below "+tileName(level, n), err)
	}
	for i := range below {
		if below[i] != hs[i] {
			o.add(t.id, -1, "%s has another root than %s says", tileName(level-1, n*ledger.TileWidth+int64(i)), tileName(level, n))
			return nil
		}
	}
	return nil
}

// complete is how many tiles of a level are complete in a tree of that size.
func complete(size int64, level int) int64 {
	if level < 0 {
		return 0
	}
	for ; level >= 0 && size > 0; level-- {
		size /= ledger.TileWidth
	}
	return size
}

// edge looks whether tiles and last leaves give the root that the head has.
func (o *orphanage) edge(c *connection.Conn, r connection.Row) error {
	id, size := r.Int(0), r.Int(1)
	head, ok := hashOf(r.Blob(2))
	if _, named := o.names[id]; !ok || !named {
		return nil // that is told elsewhere
	}
	all := nodes{t: tenantID{o.names[id], id}, do: func(fn func(*connection.Conn) error) error { return fn(c) }}
	tree, err := ledger.TreeOf(all, size)
	if err != nil {
		return o.wrong(id, fmt.Sprintf("the tree of %d leaves", size), err)
	}
	if root := tree.Root(); root != head {
		o.add(id, -1, "the tiles and the last leaves give the root %v over %d leaves, and the head says %v", root, size, head)
	}
	return nil
}

// IsFull reports whether an error is SQLite's own of a disk without room.
func IsFull(err error) bool {
	return connection.IsFull(err)
}

// wrong is of an error of what was read; the database's own goes on.
func (o *orphanage) wrong(tenant int64, what string, err error) error {
	if connection.IsDatabaseError(err) {
		return err
	}
	var f *ledger.Fault
	why := err.Error()
	if errors.As(err, &f) {
		why = f.Why
	}
	o.add(tenant, -1, "%s: %s", what, why)
	return nil
}

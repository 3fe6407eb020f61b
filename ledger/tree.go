package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// TileWidth is how many hashes a complete tile has.
const TileWidth = 256

// tileBits is log2 of TileWidth.
const tileBits = 8

// Tile is 256 hashes of one level that are complete for ever. At level 0 they
// are leaf hashes; hash i of level L is the root of the complete subtree of
// 256^L leaves that starts at leaf (N*256+i) * 256^L.
type Tile struct {
	Level  int
	N      int64
	Hashes []tlog.Hash
	// Root is the root over the 256 hashes, which is hash N of the level
	// above. A store that keeps it makes proofs at the right edge cheap
	// (see Roots).
	Root tlog.Hash
}

// Tree is the right edge of a tenant's RFC 6962 tree: what is needed to
// append leaves, to know the root, and to hand out tiles as they fill. The
// zero Tree is the empty tree. It is not safe for use by several goroutines.
type Tree struct {
	size int64
	// edge holds the roots of the complete subtrees that make up the tree,
	// the largest first: one per set bit of size.
	edge []tlog.Hash
	// tiles holds, per level, the hashes of the tile that is not full yet.
	tiles [][]tlog.Hash
}

// Size is the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Root is the root over all leaves; of the empty tree, SHA-256 of nothing.
func (t *Tree) Root() tlog.Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	h := t.edge[len(t.edge)-1]
	for i := len(t.edge) - 2; i >= 0; i-- {
		h = tlog.NodeHash(t.edge[i], h)
	}
	return h
}

// Head is the tree's size and root under that tenant.
func (t *Tree) Head(tenant string) Head { return Head{Tenant: tenant, Size: t.size, Root: t.Root()} }

// LeafHash is the RFC 6962 leaf hash of a record: SHA-256 over a zero byte
// and the record.
func LeafHash(record []byte) tlog.Hash { return tlog.RecordHash(record) }

// Append adds a leaf hash and returns the tiles that it filled, lowest level
// first: none for 255 leaves of 256. The tiles are the caller's.
func (t *Tree) Append(h tlog.Hash) []Tile {
	var full []Tile
	t.push(0, h)
	level := 0
	for n := t.size; n&1 == 1; n >>= 1 {
		h = tlog.NodeHash(t.edge[len(t.edge)-1], h)
		t.edge = t.edge[:len(t.edge)-1]
		if level++; level%tileBits == 0 {
			k := level / tileBits
			full = append(full, Tile{Level: k - 1, N: t.size >> uint(level), Hashes: t.tiles[k-1], Root: h})
			t.tiles[k-1] = nil
			t.push(k, h)
		}
	}
	t.edge = append(t.edge, h)
	t.size++
	return full
}

// append adds a leaf hash and keeps nothing for tiles: a tree that only wants
// its root.
func (t *Tree) append(h tlog.Hash) {
	for n := t.size; n&1 == 1; n >>= 1 {
		h = tlog.NodeHash(t.edge[len(t.edge)-1], h)
		t.edge = t.edge[:len(t.edge)-1]
	}
	t.edge = append(t.edge, h)
	t.size++
}

func (t *Tree) push(level int, h tlog.Hash) {
	if level == len(t.tiles) {
		t.tiles = append(t.tiles, nil)
	}
	t.tiles[level] = append(t.tiles[level], h)
}

// Clone returns a tree of its own, so that a transaction can be undone by
// keeping the old one. It copies at most 8 KiB per 256-fold of the size.
func (t *Tree) Clone() *Tree {
	c := &Tree{size: t.size, edge: append([]tlog.Hash(nil), t.edge...)}
	for _, l := range t.tiles {
		c.tiles = append(c.tiles, append([]tlog.Hash(nil), l...))
	}
	return c
}

// partial is how many hashes the tile that is not full has at a level.
func partial(size int64, level int) int64 { return size >> uint(level*tileBits) & (TileWidth - 1) }

// levels is how many levels a tree of that size has hashes at.
func levels(size int64) int { return (bits.Len64(uint64(size)) + tileBits - 1) / tileBits }

// MarshalBinary writes the tree: the size in 8 bytes, big endian, then the
// hashes of the tiles that are not full, highest level first. The length
// follows from the size.
func (t *Tree) MarshalBinary() ([]byte, error) {
	b := binary.BigEndian.AppendUint64(nil, uint64(t.size))
	for k := levels(t.size) - 1; k >= 0; k-- {
		for _, h := range t.tiles[k] {
			b = append(b, h[:]...)
		}
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote. Any other length is an
// error and leaves t as it was; that the hashes are the right ones only a
// known root can tell.
func (t *Tree) UnmarshalBinary(b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("tree of %d bytes has no size", len(b))
	}
	size := int64(binary.BigEndian.Uint64(b))
	if size < 0 {
		return fmt.Errorf("tree with a negative size")
	}
	want := int64(0)
	for k := range levels(size) {
		want += partial(size, k)
	}
	if b = b[8:]; int64(len(b)) != want*tlog.HashSize {
		return fmt.Errorf("tree of %d leaves has %d bytes of hashes, not %d", size, want*tlog.HashSize, len(b))
	}
	tiles := make([][]tlog.Hash, levels(size))
	for k := len(tiles) - 1; k >= 0; k-- {
		for range partial(size, k) {
			tiles[k] = append(tiles[k], tlog.Hash(b[:tlog.HashSize]))
			b = b[tlog.HashSize:]
		}
	}
	*t = treeOfTiles(size, tiles)
	return nil
}

// treeOfTiles finds the edge again.
func treeOfTiles(size int64, tiles [][]tlog.Hash) Tree {
	t := Tree{size: size, tiles: tiles}
	for k := len(tiles) - 1; k >= 0; k-- {
		for rest := tiles[k]; len(rest) > 0; {
			n := 1 << (bits.Len(uint(len(rest))) - 1)
			t.edge = append(t.edge, subtree(rest[:n]))
			rest = rest[n:]
		}
	}
	return t
}

// subtree is the root over a power of two hashes; it does not change them.
func subtree(hs []tlog.Hash) tlog.Hash {
	if len(hs) == 1 {
		return hs[0]
	}
	return tlog.NodeHash(subtree(hs[:len(hs)/2]), subtree(hs[len(hs)/2:]))
}

// TreeOf reads the right edge of the tree of that size, so that a store can go
// on appending after it was opened. It reads at most 255 leaf hashes and, on
// each higher level, as many roots: from Roots where nodes has it, else from
// whole tiles.
func TreeOf(nodes Nodes, size int64) (*Tree, error) {
	if size < 0 {
		return nil, fmt.Errorf("tree with a negative size")
	}
	tiles := make([][]tlog.Hash, levels(size))
	for k := range tiles {
		if partial(size, k) == 0 {
			continue
		}
		hs, err := row(nodes, size, rowAt{k, size >> uint((k+1)*tileBits)})
		if err != nil {
			return nil, err
		}
		tiles[k] = append([]tlog.Hash(nil), hs...)
	}
	t := treeOfTiles(size, tiles)
	return &t, nil
}

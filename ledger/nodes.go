package ledger

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Roots is what a Nodes may have besides: the roots of complete tiles, which
// are Tile.Root. With it a proof reads O(log n) hashes; without it the roots
// at the right edge are computed again from up to 255 tiles.
type Roots interface {
	// Roots returns the roots of the complete tiles [from, to) of a level.
	Roots(level int, from, to int64) ([]tlog.Hash, error)
}

// HashReader reads the tree's hashes for tlog.TreeHash, tlog.ProveRecord and
// tlog.ProveTree at sizes up to size.
func HashReader(nodes Nodes, size int64) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		r := rows{nodes: nodes, size: size, have: make(map[rowAt][]tlog.Hash)}
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			h, err := r.hash(index)
			if err != nil {
				return nil, err
			}
			out[i] = h
		}
		return out, nil
	})
}

// rows reads each tile that a proof touches once.
type rows struct {
	nodes Nodes
	size  int64
	have  map[rowAt][]tlog.Hash
}

type rowAt struct {
	level int
	n     int64
}

func (r *rows) hash(index int64) (tlog.Hash, error) {
	if index < 0 {
		return tlog.Hash{}, fmt.Errorf("hash with a negative index")
	}
	level, n := tlog.SplitStoredHashIndex(index)
	if n >= r.size>>uint(level) {
		return tlog.Hash{}, fmt.Errorf("hash %d is not in a tree of %d leaves", index, r.size)
	}
	// Below the tile's own level, the hash is a root over width hashes of it.
	first, width := n<<uint(level%tileBits), int64(1)<<uint(level%tileBits)
	at := rowAt{level / tileBits, first / TileWidth}
	hs, ok := r.have[at]
	if !ok {
		var err error
		if hs, err = row(r.nodes, r.size, at); err != nil {
			return tlog.Hash{}, err
		}
		r.have[at] = hs
	}
	first %= TileWidth
	return subtree(hs[first : first+width]), nil
}

// row returns the hashes that a tile has in a tree of that size.
func row(nodes Nodes, size int64, at rowAt) ([]tlog.Hash, error) {
	from := at.n * TileWidth
	to := min(from+TileWidth, size>>uint(at.level*tileBits))
	r, rooted := nodes.(Roots)
	switch {
	case from >= to:
		return nil, nil
	case to == from+TileWidth:
		return counted(TileWidth)(nodes.Tile(at.level, at.n))
	case at.level == 0:
		return counted(to - from)(nodes.LeafHashes(from, to))
	case rooted:
		return counted(to - from)(r.Roots(at.level-1, from, to))
	}
	out := make([]tlog.Hash, 0, to-from)
	for n := from; n < to; n++ {
		hs, err := counted(TileWidth)(nodes.Tile(at.level-1, n))
		if err != nil {
			return nil, err
		}
		out = append(out, subtree(hs))
	}
	return out, nil
}

// counted refuses an answer of another length than was asked for.
func counted(want int64) func([]tlog.Hash, error) ([]tlog.Hash, error) {
	return func(hs []tlog.Hash, err error) ([]tlog.Hash, error) {
		if err == nil && int64(len(hs)) != want {
			err = fmt.Errorf("%d hashes where %d were asked for", len(hs), want)
		}
		if err != nil {
			return nil, err
		}
		return hs, nil
	}
}

package ledger

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// memory keeps leaf hashes and tiles as a store does. It counts what is read.
type memory struct {
	leaves []tlog.Hash
	tiles  map[[2]int64][]tlog.Hash
	reads  int
}

// rooted is memory with the roots of its tiles.
type rooted struct {
	memory
	roots map[[2]int64]tlog.Hash
}

func newRooted() *rooted {
	return &rooted{memory{tiles: map[[2]int64][]tlog.Hash{}}, map[[2]int64]tlog.Hash{}}
}

func (m *rooted) add(t *Tree, h tlog.Hash) {
	m.leaves = append(m.leaves, h)
	for _, tile := range t.Append(h) {
		k := [2]int64{int64(tile.Level), tile.N}
		m.tiles[k], m.roots[k] = tile.Hashes, tile.Root
	}
}

func (m *memory) LeafHashes(from, to int64) ([]tlog.Hash, error) {
	if from < 0 || to > int64(len(m.leaves)) {
		return nil, fmt.Errorf("leaves %d to %d are not there", from, to)
	}
	m.reads++
	return m.leaves[from:to], nil
}

func (m *memory) Tile(level int, n int64) ([]tlog.Hash, error) {
	hs, ok := m.tiles[[2]int64{int64(level), n}]
	if !ok {
		return nil, fmt.Errorf("tile %d/%d is not there", level, n)
	}
	m.reads++
	return hs, nil
}

func (m *rooted) Roots(level int, from, to int64) ([]tlog.Hash, error) {
	var out []tlog.Hash
	for n := from; n < to; n++ {
		h, ok := m.roots[[2]int64{int64(level), n}]
		if !ok {
			return nil, fmt.Errorf("root %d/%d is not there", level, n)
		}
		out = append(out, h)
	}
	m.reads++
	return out, nil
}

// reference is x/mod's own storage.
type reference []tlog.Hash

func (r *reference) ReadHashes(ix []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(ix))
	for i, x := range ix {
		out[i] = (*r)[x]
	}
	return out, nil
}

func (r *reference) add(t testing.TB, n int64, h tlog.Hash) {
	hs, err := tlog.StoredHashesForRecordHash(n, h, r)
	if err != nil {
		t.Fatal(err)
	}
	*r = append(*r, hs...)
}

func leafOf(i int64) tlog.Hash { return LeafHash(fmt.Appendf(nil, "leaf %d", i)) }

// The eight inputs and the roots that certificate-transparency publishes for
// RFC 6962.
func TestRFC6962Vectors(t *testing.T) {
	leaves := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	roots := []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var tree Tree
	for i, want := range roots {
		root := tree.Root()
		if got := hex.EncodeToString(root[:]); got != want {
			t.Errorf("size %d: root %s, want %s", i, got, want)
		}
		if i < len(leaves) {
			b, err := hex.DecodeString(leaves[i])
			if err != nil {
				t.Fatal(err)
			}
			tree.Append(LeafHash(b))
		}
	}
}

func TestTreeEqualsTlogAtEverySize(t *testing.T) {
	var tree Tree
	var ref reference
	m := newRooted()
	for n := int64(0); n <= 5000; n++ {
		want, err := tlog.TreeHash(n, &ref)
		if err != nil {
			t.Fatal(err)
		}
		if tree.Size() != n || tree.Root() != want {
			t.Fatalf("size %d: root differs from tlog's", n)
		}
		if n%97 == 0 || n%256 < 2 || n%256 == 255 {
			sameTree(t, &tree, m, want)
		}
		m.add(&tree, leafOf(n))
		ref.add(t, n, leafOf(n))
	}
}

// sameTree rebuilds the tree in every way there is.
func sameTree(t *testing.T, tree *Tree, m *rooted, root tlog.Hash) {
	t.Helper()
	b, _ := tree.MarshalBinary()
	var back Tree
	if err := back.UnmarshalBinary(b); err != nil || back.Root() != root {
		t.Fatalf("size %d: read back with root %v, %v", tree.Size(), back.Root(), err)
	}
	if again, _ := back.MarshalBinary(); !bytes.Equal(again, b) {
		t.Fatalf("size %d: prints back differently", tree.Size())
	}
	for _, nodes := range []Nodes{m, &m.memory} {
		of, err := TreeOf(nodes, tree.Size())
		if err != nil {
			t.Fatal(err)
		}
		if of.Root() != root {
			t.Fatalf("size %d: rebuilt with another root", tree.Size())
		}
		if again, _ := of.MarshalBinary(); !bytes.Equal(again, b) {
			t.Fatalf("size %d: rebuilt tree prints differently", tree.Size())
		}
		if got, err := tlog.TreeHash(tree.Size(), HashReader(nodes, tree.Size())); err != nil || got != root {
			t.Fatalf("size %d: tlog reads root %v, %v", tree.Size(), got, err)
		}
	}
}

func TestLargeTreeAndItsProofs(t *testing.T) {
	var tree Tree
	var ref reference
	m := newRooted()
	rnd := rand.New(rand.NewPCG(1, 2))
	size := int64(70_000 + rnd.IntN(5_000))
	for n := range size {
		m.add(&tree, leafOf(n))
		ref.add(t, n, leafOf(n))
	}
	root, err := tlog.TreeHash(size, &ref)
	if err != nil || root != tree.Root() {
		t.Fatalf("root differs: %v", err)
	}
	sameTree(t, &tree, m, root)
	r := HashReader(m, size)
	for range 300 {
		at := 1 + rnd.Int64N(size)
		n := rnd.Int64N(at)
		th, err := tlog.TreeHash(at, r)
		if err != nil {
			t.Fatal(err)
		}
		m.reads = 0
		p, err := tlog.ProveRecord(at, n, r)
		if err != nil {
			t.Fatal(err)
		}
		if m.reads > 6 {
			t.Errorf("proof of %d in %d took %d reads", n, at, m.reads)
		}
		if err := tlog.CheckRecord(p, at, th, n, leafOf(n)); err != nil {
			t.Errorf("record %d in %d: %v", n, at, err)
		}
		tp, err := tlog.ProveTree(size, at, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := tlog.CheckTree(tp, size, root, at, th); err != nil {
			t.Errorf("tree %d in %d: %v", at, size, err)
		}
	}
}

func TestTreeCloneIsIndependent(t *testing.T) {
	var a Tree
	for i := range int64(255) {
		a.Append(leafOf(i))
	}
	b := a.Clone()
	before := a.Root()
	if tiles := b.Append(leafOf(255)); len(tiles) != 1 || tiles[0].Root != b.Root() {
		t.Fatalf("the 256th leaf filled %v", tiles)
	}
	b.Append(leafOf(256))
	if a.Root() != before || a.Size() != 255 {
		t.Error("the clone changed what it was cloned from")
	}
	a.Append(leafOf(9))
	a.Append(leafOf(256))
	if a.Root() == b.Root() {
		t.Error("two trees share memory")
	}
}

func TestTreeUnmarshalRefuses(t *testing.T) {
	var a Tree
	for i := range int64(300) {
		a.Append(leafOf(i))
	}
	good, _ := a.MarshalBinary()
	for name, b := range map[string][]byte{
		"empty":         nil,
		"no size":       good[:7],
		"short":         good[:len(good)-1],
		"long":          append(bytes.Clone(good), 0),
		"negative":      append([]byte{0x80}, good[1:]...),
		"other size":    append([]byte{0, 0, 0, 0, 0, 0, 1, 45}, good[8:]...),
		"enormous size": append([]byte{0x7f, 255, 255, 255, 255, 255, 255, 255}, good[8:]...),
	} {
		var tr Tree
		if err := tr.UnmarshalBinary(b); err == nil || tr.Size() != 0 {
			t.Errorf("%s: %v, size %d", name, err, tr.Size())
		}
	}
}

func BenchmarkTreeAppend(b *testing.B) {
	var t Tree
	h := leafOf(1)
	b.ReportAllocs()
	for b.Loop() {
		t.Append(h)
	}
}

package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// headGroup is how many recorded heads share one hash: where they are not the
// tree's, the fault names the group.
const headGroup = 32

// recorded is what the log of checkpoints says was signed of one tenant. Of each
// head but the newest it keeps the distance of the size to the one before, and of
// each headGroup of them one hash over sizes and roots: some three bytes a head,
// whatever the size of the tree.
type recorded struct {
	newest Head
	n      int64       // heads
	sizes  []byte      // uvarints
	groups []tlog.Hash // of the groups that are full
	sum    tlog.Hash   // of the one that is not
}

// add takes the next head, of a larger size than the one before.
func (r *recorded) add(h Head) {
	before := r.newest.Size
	if r.n == 0 {
		before = 0
	}
	r.sizes = binary.AppendUvarint(r.sizes, uint64(h.Size-before))
	r.newest = h
	r.sum = sumHead(r.sum, h.Size, h.Root)
	if r.n++; r.n%headGroup == 0 {
		r.groups, r.sum = append(r.groups, r.sum), tlog.Hash{}
	}
}

// sumHead is the hash of a group with one more head in it.
func sumHead(sum tlog.Hash, size int64, root tlog.Hash) tlog.Hash {
	b := make([]byte, 0, 2*tlog.HashSize+8)
	b = binary.BigEndian.AppendUint64(append(b, sum[:]...), uint64(size))
	return sha256.Sum256(append(b, root[:]...))
}

// follower holds a tenant's tree, while it grows, against every head that the log
// of checkpoints records of it.
type follower struct {
	r     recorded
	at    int64 // the size of the next, where left is not 0
	left  int64
	first int64 // the size of the first of the group
	sum   tlog.Hash
	last  int64 // the newest size that was met, -1 for none
}

// follow is a follower from the empty tree on.
func (l *CheckpointLog) follow(tenant string) *follower {
	f := &follower{last: -1}
	if r := l.tenants[tenant]; r != nil {
		f.r, f.left = *r, r.n
	}
	f.next()
	return f
}

func (f *follower) next() {
	if f.left == 0 {
		return
	}
	d, n := binary.Uvarint(f.r.sizes)
	f.r.sizes = f.r.sizes[n:]
	f.at += int64(d)
	if (f.r.n-f.left)%headGroup == 0 {
		f.first = f.at
	}
}

// grown takes the tree after each leaf, and before the first. What it returns
// is wrong with it, empty for nothing.
func (f *follower) grown(t *Tree) string {
	if f.left == 0 || f.at != t.size {
		return ""
	}
	f.sum, f.last = sumHead(f.sum, t.size, t.Root()), t.size
	f.left--
	met, want := f.r.n-f.left, f.r.sum
	if met%headGroup == 0 {
		want = f.r.groups[met/headGroup-1]
	}
	if met%headGroup == 0 || f.left == 0 {
		if f.sum != want {
			return fmt.Sprintf("the log of checkpoints records %s, and not every one is a head of this tree: history was rewritten after it was signed", sizes(f.first, f.at))
		}
		f.sum = tlog.Hash{}
	}
	f.next()
	return ""
}

func sizes(first, last int64) string {
	if first == last {
		return fmt.Sprintf("a head of %d leaves", first)
	}
	return fmt.Sprintf("heads of %d to %d leaves", first, last)
}

// met is what is wrong with a signed head of the size that the tree has now.
func (f *follower) met(size int64) string {
	if f.last == size {
		return ""
	}
	return fmt.Sprintf("%d leaves were signed, and the log of checkpoints does not record it", size)
}

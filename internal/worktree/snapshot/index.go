package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
)

// index is what was kept of a tree last. It saves reading what nobody touched; it
// is believed only whole, and without it everything is read again.
type index struct {
	tree    string    // git's name of the version's root
	known   string    // likewise, of the newest version that the ledger knows; "" is none
	meta    [20]byte  // blob of metaName in it; zero is none
	at      time.Time // when the walk for it began
	entries []entry   // each path once, in their order
	files   int       // of the entries, those that are no folders; of one that was loaded
	next    int       // where the one that is asked for next stands, if they are in order
}

// find is what the index has of a path; nil is nothing. It belongs to the index.
func (x *index) find(path string) *entry {
	i := x.next
	if i >= len(x.entries) || x.entries[i].path != path {
		i = sort.Search(len(x.entries), func(i int) bool { return x.entries[i].path >= path })
		if i == len(x.entries) || x.entries[i].path != path {
			return nil
		}
	}
	x.next = i + 1
	return &x.entries[i]
}

func byPath(a, b entry) int { return strings.Compare(a.path, b.path) }

// indexMagic begins the file. One of version 1 is none, and everything is read once more.
const indexMagic = "holdfast snapshot index v2\n"

// settled is how long a file must have rested before the walk to be believed
// unchanged by its times: those of a file system are coarse.
const settled = time.Second

// rests is what the index has of a name on the disk that still is what it was; nil of
// any other.
func (x *index) rests(e *entry) *entry {
	if x == nil {
		return nil
	}
	old := x.find(e.path)
	if old != nil && old.kind == e.kind && old.size == e.size && old.seen == e.seen && old.read && e.seen.ctime < x.at.Add(-settled).UnixNano() {
		return old
	}
	return nil
}

// same says whether it rests, and takes over what is known of the content.
func (x *index) same(e *entry) bool {
	old := x.rests(e)
	if old != nil {
		e.blob, e.sum, e.read = old.blob, old.sum, true
	}
	return old != nil
}

func (x *index) save(path string) error {
	var b bytes.Buffer
	text := func(s string) {
		b.Write(binary.AppendUvarint(nil, uint64(len(s))))
		b.WriteString(s)
	}
	b.WriteString(indexMagic)
	text(x.tree)
	text(x.known)
	b.Write(x.meta[:])
	b.Write(binary.AppendVarint(nil, x.at.UnixNano()))
	b.Write(binary.AppendUvarint(nil, uint64(len(x.entries))))
	var n []byte
	for i := range x.entries {
		e := &x.entries[i]
		text(e.path)
		n = append(n[:0], byte(e.kind), b2i(e.read))
		n = binary.AppendUvarint(n, uint64(e.perm))
		n = binary.AppendVarint(n, e.size)
		n = binary.AppendUvarint(n, e.seen.ino)
		n = binary.AppendVarint(n, e.seen.mtime)
		n = binary.AppendVarint(n, e.seen.ctime)
		b.Write(n)
		b.Write(e.blob[:])
		b.Write(e.sum[:])
	}
	sum := sha256.Sum256(b.Bytes())
	b.Write(sum[:])
	return durable.ReplaceCache(path, b.Bytes(), 0o600)
}

func b2i(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// loadIndex is nil where there is none that can be believed.
func loadIndex(path string) *index {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < len(indexMagic)+sha256.Size || string(b[:len(indexMagic)]) != indexMagic {
		return nil
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return nil
	}
	r := reader{b: body[len(indexMagic):], all: string(body)}
	x := &index{tree: r.text(), known: r.text()}
	copy(x.meta[:], r.bytes(20))
	x.at = time.Unix(0, r.int())
	n := r.uint()
	if n > uint64(len(body))/leastOfEntry {
		return nil
	}
	x.entries = make([]entry, 0, n)
	for range n {
		e := entry{path: r.text()}
		two := r.bytes(2)
		e.kind, e.read = kind(two[0]), two[1] == 1
		e.perm, e.size = uint32(r.uint()), r.int()
		e.seen = stamp{ino: r.uint(), mtime: r.int(), ctime: r.int()}
		copy(e.blob[:], r.bytes(20))
		copy(e.sum[:], r.bytes(32))
		if r.bad {
			return nil
		}
		x.entries = append(x.entries, e)
		if e.kind != folder {
			x.files++
		}
	}
	if r.bad || len(r.b) != 0 {
		return nil
	}
	for i := 1; i < len(x.entries); i++ {
		if x.entries[i-1].path >= x.entries[i].path {
			return nil
		}
	}
	return x
}

// leastOfEntry is how many bytes an entry has at least.
const leastOfEntry = 60

// reader takes apart what save wrote.
type reader struct {
	b   []byte
	all string // what b is the end of, once more as text, so that each name need not be
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) || r.bad {
		r.bad = true
		return make([]byte, min(n, 64))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string {
	n := r.uint()
	if n > math.MaxInt32 || int(n) > len(r.b) {
		r.bad = true
		return ""
	}
	from := len(r.all) - len(r.b)
	r.bytes(int(n))
	return r.all[from : from+int(n)]
}

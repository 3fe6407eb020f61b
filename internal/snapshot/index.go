package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"
)

// index is what was kept of a tree last. It saves reading what nobody touched; it
// is believed only whole, and without it everything is read again.
type index struct {
	tree    string    // git's name of the version's root
	meta    [20]byte  // blob of metaName in it; zero is none
	at      time.Time // when the walk for it began
	entries map[string]entry
}

const indexMagic = "holdfast snapshot index v1\n"

// settled is how long a file must have rested before the walk to be believed
// unchanged by its times: those of a file system are coarse.
const settled = time.Second

// rests says whether a name on the disk is still what the index has of it, and what
// that is.
func (x *index) rests(e *entry) (old entry, ok bool) {
	if x == nil {
		return old, false
	}
	old, ok = x.entries[e.path]
	return old, ok && old.kind == e.kind && old.size == e.size && old.seen == e.seen && old.read && e.seen.ctime < x.at.Add(-settled).UnixNano()
}

// same is rests, and takes over what is known of the content.
func (x *index) same(e *entry) bool {
	old, ok := x.rests(e)
	if ok {
		e.blob, e.sum, e.read = old.blob, old.sum, true
	}
	return ok
}

func (x *index) save(path string) error {
	var b bytes.Buffer
	text := func(s string) {
		b.Write(binary.AppendUvarint(nil, uint64(len(s))))
		b.WriteString(s)
	}
	b.WriteString(indexMagic)
	text(x.tree)
	b.Write(x.meta[:])
	b.Write(binary.AppendVarint(nil, x.at.UnixNano()))
	b.Write(binary.AppendUvarint(nil, uint64(len(x.entries))))
	var n []byte
	for _, e := range x.entries {
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
	return replace(path, b.Bytes(), false)
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
	r := reader{b: body[len(indexMagic):]}
	x := &index{tree: r.text()}
	copy(x.meta[:], r.bytes(20))
	x.at = time.Unix(0, r.int())
	n := r.uint()
	if n > uint64(len(body)) {
		return nil
	}
	x.entries = make(map[string]entry, n)
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
		x.entries[e.path] = e
	}
	if r.bad || len(r.b) != 0 {
		return nil
	}
	return x
}

// reader takes apart what save wrote.
type reader struct {
	b   []byte
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
	return string(r.bytes(int(n)))
}

// unplaced is what replace writes, before it is in its place.
const unplaced = ".new-*.tmp"

// replace puts a 0600 file in the place of another, whole or not at all; durable
// where that is asked for.
func replace(path string, b []byte, durable bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), unplaced)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err == nil && durable {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil || !durable {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package snapshot

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// copied is the content of a file as it was read once.
type copied struct {
	b      []byte
	staged *os.File // beside b, of a long one
	size   int64
	blob   [20]byte
	sum    [32]byte
	err    error // why it is no content
	// unreadable says that err is a failure to read.
	unreadable bool
}

func (c *copied) close() {
	if c.staged != nil {
		c.staged.Close()
		os.Remove(c.staged.Name())
	}
}

// copy reads a file to its end, or to the limit of one file.
func (k *keeping) copy(f *os.File) (*copied, error) {
	head, err := io.ReadAll(io.LimitReader(f, min(inMemory, k.limits.File)+1))
	if err != nil {
		return &copied{err: errors.New("it cannot be read: " + err.Error()), unreadable: true}, nil
	}
	c := &copied{b: head, size: int64(len(head))}
	if c.size > k.limits.File {
		c.err = errors.New("it grew beyond what one file may have while it was read")
		return c, nil
	}
	if c.size <= inMemory {
		c.blob, c.sum = blobOf(nonNil(head)), sha256.Sum256(head)
		return c, nil
	}
	return c, k.stage(f, c)
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// stage copies a long file beside the repository.
func (k *keeping) stage(f *os.File, c *copied) (err error) {
	if c.staged, err = os.CreateTemp(k.r.dir, "staged-*"); err != nil {
		return full(err)
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	rest := k.limits.File - c.size + 1
	if _, err = c.staged.Write(c.b); err == nil {
		var n int64
		n, err = k.pour(c.staged, f, rest)
		c.size += n
	}
	if err != nil {
		return full(err)
	}
	c.b = nil
	if c.size > k.limits.File {
		c.err = errors.New("it grew beyond what one file may have while it was read")
		return nil
	}
	one, two := sha1.New(), sha256.New()
	fmt.Fprintf(one, "blob %d\x00", c.size)
	if _, err = c.staged.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(io.MultiWriter(one, two), c.staged)
	}
	if err == nil {
		_, err = c.staged.Seek(0, io.SeekStart)
	}
	c.blob, c.sum = [20]byte(one.Sum(nil)), [32]byte(two.Sum(nil))
	return err
}

// stride is how much of a file is copied before room is asked for again, in bytes.
const stride = 4 << 20

// pour copies most bytes of a file, or what there is, which may be more than the walk
// saw: who writes to it meanwhile must not fill the disk with the copy.
func (k *keeping) pour(to, from *os.File, most int64) (n int64, err error) {
	for n < most && err == nil {
		step := min(stride, most-n)
		if k.a.room {
			err = Room(k.r.dir, step)
		}
		if err == nil {
			step, err = io.CopyN(to, from, step)
			n += step
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// indexed is about how much the index has of one name beside its path, in bytes.
const indexed = 96

// room is an error where what is to be written, which is at most what is fresh, with an
// index of all names, would leave the ledger too little.
func (k *keeping) room(fresh []int) error {
	if !k.a.room {
		return nil
	}
	var need, staged int64
	for i := range k.s.entries {
		need += indexed + int64(len(k.s.entries[i].path))
	}
	there := make(map[string]int64, len(k.a.there))
	for i := range k.a.there {
		there[k.a.there[i].path] = k.a.there[i].size
	}
	for _, i := range fresh {
		e := &k.s.entries[i]
		if e.size > inMemory {
			staged = max(staged, e.size)
		}
		// What is only read again is there already.
		size, back := there[e.path]
		if k.last.rests(e) == nil && !(back && size == e.size) {
			need += e.size
		}
	}
	k.need = need + staged
	return Room(k.r.dir, k.need)
}

// grown asks for room again, for a file that holds so many bytes more than the walk saw.
func (k *keeping) grown(more int64) error {
	if !k.a.room || more <= 0 {
		return nil
	}
	return Room(k.r.dir, k.need+more)
}

func hexOf(b [20]byte) string { return hex.EncodeToString(b[:]) }

package vm

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox/copies"
)

// keptFormat is part of every template's name: a change of what guests are or
// how they are kept makes new ones.
const keptFormat = 1

// A template's copy is named by its key and holds these.
const (
	keptMemory = "memory" // the parts of the memory that are not zero: offset, length (8 bytes each, little endian), content
	keptState  = "state"
	keptMark   = "template.json"
)

// mark says what a kept template is. It is believed where it says the key that
// is looked for, and the files are what it says.
type mark struct {
	Key      string   `json:"key"`
	QEMU     string   `json:"qemu"`
	Memory   string   `json:"memory_sha256"`
	State    string   `json:"state_sha256"`
	Greeting greeting `json:"greeting"`
}

// key names everything that decides what a template is: a template of another
// QEMU, kernel, file system or machine has another.
func (p plan) key() string {
	b, err := json.Marshal([]any{keptFormat, p.version, p.digests, p.kvm, p.memoryMB, p.arguments(true), bootArguments()})
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// save keeps a template in dir, where another process has not kept the same, and
// removes those of other keys that nobody loads: nothing here would ever take them.
func (t *template) save(ctx context.Context, dir string, p plan) error {
	c, err := copies.Begin(ctx, dir, "")
	if err != nil {
		return err
	}
	if err := t.write(c.Home, p); err != nil {
		return errors.Join(err, c.Discard(ctx))
	}
	if _, err := c.Finish(ctx, p.key()); err != nil {
		return errors.Join(err, c.Discard(ctx))
	}
	copies.Sweep(ctx, dir, func(name string) bool { return name != p.key() })
	return c.Release()
}

// write writes a template into a folder, and forces it to the disk.
func (t *template) write(home string, p plan) (err error) {
	m := mark{Key: p.key(), QEMU: p.version, Greeting: t.hello, State: digestOf(t.state)}
	if m.Memory, err = writeMemory(filepath.Join(home, keptMemory), t.memory); err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(home, keptState), t.state, 0o600), os.WriteFile(filepath.Join(home, keptMark), b, 0o600), syncAll(home))
}

func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// writeMemory writes what of a memory is not zero, and returns the file's digest.
func writeMemory(name string, memory *os.File) (string, error) {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer out.Close()
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(out, sum), 1<<20)
	for at := int64(0); ; {
		begin, err := unix.Seek(int(memory.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break
		}
		if err != nil {
			return "", err
		}
		end, err := unix.Seek(int(memory.Fd()), begin, unix.SEEK_HOLE)
		if err != nil {
			return "", err
		}
		head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(begin)), uint64(end-begin))
		if _, err := w.Write(head); err != nil {
			return "", err
		}
		if _, err := io.Copy(w, io.NewSectionReader(memory, begin, end-begin)); err != nil {
			return "", err
		}
		at = end
	}
	err = errors.Join(w.Flush(), out.Close())
	return hex.EncodeToString(sum.Sum(nil)), err
}

// load takes the template that the plan would make, if it is kept and whole.
// Where there is none the error is fs.ErrNotExist; any other says why what was
// there is not taken, and it is there no more.
func load(ctx context.Context, dir string, p plan) (*template, error) {
	c, err := copies.Hold(ctx, dir, p.key())
	if err != nil {
		return nil, err
	}
	t, err := read(c.Home, p)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%v", err), c.Discard(ctx)) // a file that is missing is not nothing
	}
	return t, c.Release()
}

// forget removes the plan's template, where it is kept.
func forget(ctx context.Context, dir string, p plan) {
	if c, err := copies.Hold(ctx, dir, p.key()); err == nil {
		c.Discard(ctx)
	}
}

// read reads a template from a folder.
func read(home string, p plan) (_ *template, err error) {
	b, err := os.ReadFile(filepath.Join(home, keptMark))
	if err != nil {
		return nil, err
	}
	var m mark
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("its mark cannot be read: %w", err)
	}
	if m.Key != p.key() || m.QEMU != p.version {
		return nil, fmt.Errorf("it is of another machine, of %.80q, and this is %q", m.QEMU, p.version)
	}
	t := &template{hardware: p.hardware, hello: m.Greeting}
	if t.state, err = os.ReadFile(filepath.Join(home, keptState)); err != nil {
		return nil, err
	}
	if digestOf(t.state) != m.State {
		return nil, errors.New("its state was changed since it was kept")
	}
	if t.memory, err = memory("ram", int64(p.memoryMB)<<20); err != nil {
		return nil, err
	}
	if err := readMemory(filepath.Join(home, keptMemory), t.memory, int64(p.memoryMB)<<20, m.Memory); err != nil {
		t.memory.Close()
		return nil, err
	}
	return t, seal(t.memory)
}

// readMemory is writeMemory's way back, into a memory of a size.
func readMemory(name string, memory *os.File, size int64, digest string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	r := io.TeeReader(bufio.NewReaderSize(in, 1<<20), sum)
	var head [16]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("its memory ends early: %w", err)
		}
		at, n := binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(head[8:])
		if at > uint64(size) || n > uint64(size)-at {
			return errors.New("its memory was changed since it was kept")
		}
		if got, err := io.Copy(io.NewOffsetWriter(memory, int64(at)), io.LimitReader(r, int64(n))); err != nil || got != int64(n) {
			return fmt.Errorf("its memory ends early (%v)", err)
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != digest {
		return errors.New("its memory was changed since it was kept")
	}
	return nil
}

// absent says whether nothing is kept at all.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

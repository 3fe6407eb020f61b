package vm

import (
	"bufio"
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
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// keptFormat is part of every template's name: a change of what guests are or
// how they are kept makes new ones.
const keptFormat = 1

// A template's directory is named by its key and holds these; it gets its name
// when all of them are whole.
const (
	keptMemory = "memory" // the parts of the memory that are not zero: offset, length (8 bytes each, little endian), content
	keptState  = "state"
	keptMark   = "template.json"
	keptDraft  = ".new-"
	draftAge   = 10 * time.Minute // after which a draft is nobody's any more
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

// save keeps a template in dir, and removes those of other keys, which nothing
// here would ever take.
func (t *template) save(dir string, p plan) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(dir, keptDraft)
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	m := mark{Key: p.key(), QEMU: p.version, Greeting: t.hello, State: digestOf(t.state)}
	if m.Memory, err = writeMemory(filepath.Join(draft, keptMemory), t.memory); err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(draft, keptState), t.state, 0o600), os.WriteFile(filepath.Join(draft, keptMark), b, 0o600), syncAll(draft)); err != nil {
		return err
	}
	home := filepath.Join(dir, m.Key)
	if err := errors.Join(os.RemoveAll(home), os.Rename(draft, home)); err != nil {
		return err
	}
	sweep(dir, m.Key)
	return nil
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

// sweep removes other templates, and drafts that nobody finishes.
func sweep(dir, keep string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, d := range list {
		info, err := d.Info()
		young := err != nil || time.Since(info.ModTime()) < draftAge
		if d.Name() == keep || strings.HasPrefix(d.Name(), keptDraft) && young {
			continue
		}
		os.RemoveAll(filepath.Join(dir, d.Name()))
	}
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
// Where there is none the error is fs.ErrNotExist; any other says why what is
// there is not taken.
func load(dir string, p plan) (_ *template, err error) {
	home := filepath.Join(dir, p.key())
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

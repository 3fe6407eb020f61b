// Package latch is the latch that stops everything (D34): one file whose
// presence, whatever it holds, means that nothing may be done. It is the one
// package of the pure floors that touches a file, because the latch must be
// readable without the store, the daemon or any lock.
package latch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Bounds on what a latch file may hold.
const (
	// MaxSize is the largest file, in bytes, that is read for its reason. A
	// larger one halts all the same.
	MaxSize = 64 << 10
	// MaxWho and MaxWhy bound the two texts, in code points.
	MaxWho = 128
	MaxWhy = 1024
)

// Unreadable is the reason of a latch that says nothing that can be read.
const Unreadable = "latch unreadable"

// State is what the latch says. Its zero value is "not halted" and is returned
// only when the latch was looked for and is provably absent.
type State struct {
	Halted bool `json:"halted"`
	// Who, Why and When are what the setter wrote, free of control
	// characters and bounded. They are claims: anyone may write the latch.
	Who  string    `json:"who,omitempty"`
	Why  string    `json:"why,omitempty"`
	When time.Time `json:"when,omitzero"`
	// Err is why the latch could not be read; Halted is then true.
	Err error `json:"-"`
}

// Latch is one latch file. It holds no open file and no state, so every answer
// is as fresh as the file system. Safe for concurrent use.
type Latch struct {
	path string
	dir  string
}

// New returns the latch at path, which must be absolute: a latch that moves
// with the working directory could be stepped around.
func New(path string) (*Latch, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("the halt latch needs an absolute path, not %q", path)
	}
	path = filepath.Clean(path)
	if path == "/" {
		return nil, errors.New("the halt latch cannot be the root directory")
	}
	return &Latch{path: path, dir: filepath.Dir(path)}, nil
}

// Path returns the latch's absolute path.
func (l *Latch) Path() string { return l.path }

// Halted says whether the latch is set, as cheaply as that can be known: one
// lstat when it is set, and one more, of its directory, when it is not, because
// a directory that has gone is no proof of an absent latch. A nil latch is
// halted.
func (l *Latch) Halted() bool {
	absent, _ := l.absent()
	return !absent
}

// absent says whether the latch is provably not there. The error is why that
// cannot be known; it is nil when something simply is there.
func (l *Latch) absent() (bool, error) {
	if l == nil || l.path == "" {
		return false, errors.New("there is no latch to ask")
	}
	var st unix.Stat_t
	err := again(func() error { return unix.Lstat(l.path, &st) })
	switch {
	case err == nil:
		return false, nil
	case !errors.Is(err, unix.ENOENT):
		return false, &fs.PathError{Op: "lstat", Path: l.path, Err: err}
	}
	err = again(func() error { return unix.Stat(l.dir, &st) })
	switch {
	case err != nil:
		return false, &fs.PathError{Op: "stat", Path: l.dir, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return false, &fs.PathError{Op: "stat", Path: l.dir, Err: unix.ENOTDIR}
	}
	return true, nil
}

// Read returns the state of the latch. The error is State.Err: whenever it is
// not nil the state is halted. Read never waits: pipes, devices, links and
// directories in the latch's place halt without being opened.
func (l *Latch) Read() (State, error) {
	absent, err := l.absent()
	if absent {
		return State{}, nil
	}
	if err != nil {
		return unreadable(err)
	}
	b, info, err := l.content()
	if err != nil {
		return unreadable(err)
	}
	if len(b) == 0 {
		return touched(info), nil
	}
	var n note
	if err := json.Unmarshal(b, &n); err != nil {
		return unreadable(fmt.Errorf("%s: not one line of JSON: %w", l.path, err))
	}
	s := State{Halted: true, Who: clean(n.Who, MaxWho), Why: clean(n.Why, MaxWhy), When: n.When.UTC()}
	if s.Why == "" {
		s.Why = noReason
	}
	return s, nil
}

// noReason is the reason of a latch whose setter gave none.
const noReason = "no reason given"

// touched is what an empty file says, as `touch` makes one (spec 001, "Emergency Stop
// File"), or a disk that took no more: whose it is, and since when.
func touched(info fs.FileInfo) State {
	s := State{Halted: true, Why: noReason, When: info.ModTime().UTC()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Who = fmt.Sprintf("uid %d", st.Uid)
	}
	return s
}

// content reads the latch file. O_NONBLOCK keeps a pipe that took the file's
// place since the lstat from making the asker wait.
func (l *Latch) content() ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(l.path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s: not a regular file", l.path)
	case info.Size() > MaxSize:
		return nil, nil, fmt.Errorf("%s: %d bytes, more than %d", l.path, info.Size(), MaxSize)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(b) > MaxSize {
		err = fmt.Errorf("%s: more than %d bytes", l.path, MaxSize)
	}
	return b, info, err
}

// note is the file's one line.
type note struct {
	Who  string    `json:"who"`
	Why  string    `json:"why"`
	When time.Time `json:"when"`
}

func unreadable(err error) (State, error) {
	return State{Halted: true, Why: Unreadable, Err: err}, err
}

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// clean makes text of unknown origin fit for a terminal and a log: invalid
// UTF-8, control and format characters (such as those that turn the direction
// of writing) become spaces, runs of space become one, and at most limit code
// points stay.
func clean(s string, limit int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			space = n > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		if n >= limit {
			break
		}
		b.WriteRune(r)
		n++
	}
	return strings.TrimSpace(b.String())
}

// Enabled reads HOLDFAST_ENABLED (D35): unset, "true", "1", "yes" and "on" let
// Holdfast run; any other text, the empty one included, halts.
func Enabled(value string, set bool) bool {
	if !set {
		return true
	}
	switch value {
	case "true", "1", "yes", "on":
		return true
	}
	return false
}

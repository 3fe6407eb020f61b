package main

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast"
)

// maxFilter bounds what a filter reads, in bytes: it is held in memory whole.
const maxFilter = 64 << 20

// input reads the file that args name, or standard input for "-" or nothing.
// name is what messages call it. More than limit bytes is an error, and so is
// an empty input where there is nothing to work on.
func (a *app) input(args []string, limit int64) (name string, b []byte, err error) {
	r, name := a.in, "standard input"
	if len(args) > 0 && args[0] != "-" {
		f, err := openRegular(args[0])
		if err != nil {
			return args[0], nil, err
		}
		defer f.Close()
		r, name = f, args[0]
	}
	b, err = a.readAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Why: name + " has more than " + bytesOf(limit), Hint: "give it in parts"}
	}
	return name, b, err
}

// openRegular opens a file that people named. A pipe or a device in its place
// is refused without waiting for what may never come.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = fail("name a file", "%s is a directory", path)
	case !info.Mode().IsRegular():
		err = fail("give what it holds on standard input", "%s is not a regular file", path)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// readAll reads to the end, or until the program is interrupted: somebody may
// sit before an empty terminal.
func (a *app) readAll(r io.Reader) ([]byte, error) {
	return a.await(func() ([]byte, error) { return io.ReadAll(r) })
}

// await gives back what read reads, or the context's error when the program is
// interrupted before; read is left behind then.
func (a *app) await(read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := read()
		done <- result{b, err}
	}()
	select {
	case got := <-done:
		return got.b, got.err
	case <-a.ctx.Done():
		return nil, a.ctx.Err()
	}
}

// in says where a fault is, before its own words.
func in(name string, err error) error {
	var e *holdfast.Error
	if errors.As(err, &e) {
		own := *e
		own.Why = name + ": " + e.Why
		return &own
	}
	return err
}

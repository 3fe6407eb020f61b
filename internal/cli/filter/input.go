// Package filter is what the commands share that read a text or a document and write
// it changed. It imports little, so that such a command starts fast.
package filter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast"
)

// MaxInput bounds what a filter holds in memory, in bytes.
const MaxInput = 64 << 20

// ReadInput reads the file that args name, or stdin for "-" or nothing, until ctx
// ends. name is what messages call it. More than limit bytes is an error.
func ReadInput(ctx context.Context, stdin io.Reader, args []string, limit int64) (name string, b []byte, err error) {
	r, name := stdin, "standard input"
	if len(args) > 0 && args[0] != "-" {
		f, err := OpenRegular(args[0])
		if err != nil {
			return args[0], nil, err
		}
		defer f.Close()
		r, name = f, args[0]
	}
	b, err = Await(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, limit+1)) })
	if err == nil && int64(len(b)) > limit {
		err = &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Why: name + " has more than " + FormatBytes(limit), Hint: "give it in parts"}
	}
	return name, b, err
}

// OpenRegular opens a file that people named. A pipe or a device in its place
// is refused without waiting for what may never come.
func OpenRegular(path string) (*os.File, error) {
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

// Await returns what read returns, or the error of ctx if that ends first: a person
// may sit before an empty terminal. read is left behind then.
func Await(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
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
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// AddPlace returns err with the place of the fault before its words.
func AddPlace(place string, err error) error {
	var e *holdfast.Error
	if errors.As(err, &e) {
		own := *e
		own.Why = place + ": " + e.Why
		return &own
	}
	return err
}

// FormatBytes returns a size for people.
func FormatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

func fail(hint, format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindInternal, Why: fmt.Sprintf(format, args...), Hint: hint}
}

package main

import (
	"os"

	"github.com/holdfast-dev/holdfast/internal/cli/filter"
)

// maxFilter bounds what a filter reads, in bytes: it is held in memory whole.
const maxFilter = filter.MaxInput

// input reads the file that args name, or standard input for "-" or nothing.
// name is what messages call it. More than limit bytes is an error.
func (a *app) input(args []string, limit int64) (name string, b []byte, err error) {
	return filter.ReadInput(a.ctx, a.in, args, limit)
}

// openRegular opens a file that people named. A pipe or a device in its place
// is refused without waiting for what may never come.
func openRegular(path string) (*os.File, error) { return filter.OpenRegular(path) }

// await returns what read returns, or the context's error when the program is
// interrupted before; read is left behind then.
func (a *app) await(read func() ([]byte, error)) ([]byte, error) { return filter.Await(a.ctx, read) }

// in says where a fault is, before its own words.
func in(name string, err error) error { return filter.AddPlace(name, err) }

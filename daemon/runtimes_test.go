package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// tempDir is TMPDIR as it was before any test set it.
var tempDir = os.TempDir()

// runtimeCopies returns the directory with the copies of language runtimes that the
// daemons of all tests share. A copy takes longer than most tests.
var runtimeCopies = sync.OnceValues(func() (string, error) { return os.MkdirTemp(tempDir, "hfr") })

// shareRuntimes makes a daemon use the copies in runtimeCopies.
func shareRuntimes(o *Options) {
	dir, err := runtimeCopies()
	err = errors.Join(err, os.MkdirAll(o.State, 0o700), os.Symlink(dir, filepath.Join(o.State, "sandbox")))
	if err != nil {
		panic(err)
	}
}

// removeRuntimes removes the copies after the last test.
func removeRuntimes() {
	if dir, err := runtimeCopies(); err == nil {
		_ = os.RemoveAll(dir)
	}
}

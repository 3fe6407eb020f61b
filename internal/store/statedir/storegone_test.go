package statedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoreGone: a store that is missing or empty is one only until it was
// made once.
func TestStoreGone(t *testing.T) {
	for name, c := range map[string]struct {
		marked, there bool
		content       string
		gone          bool
	}{
		"first start":           {},
		"cut-off first start":   {there: true},
		"from before the mark":  {there: true, content: "x"},
		"as it should be":       {marked: true, there: true, content: "x"},
		"missing after a start": {marked: true, gone: true},
		"emptied after a start": {marked: true, there: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := PathsIn(t.TempDir())
			if c.marked {
				if err := MarkStore(p); err != nil {
					t.Fatal(err)
				}
			}
			if c.there {
				if err := os.WriteFile(p.DB, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := StoreGone(p)
			if (err != nil) != c.gone || c.gone && !strings.Contains(err.Error(), "is missing, but its keys are there") {
				t.Errorf("StoreGone: %v, want gone %v", err, c.gone)
			}
			if err := MarkStore(p); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(p.StoreMade); err != nil || info.Mode() != 0o600 {
				t.Errorf("the mark: %v, %v", info, err)
			}
		})
	}
}

// TestLongStateLeavesNothing: a directory that no socket fits in is not made,
// unless what it resolves to is short enough.
func TestLongStateLeavesNothing(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	above := filepath.Join(root, "a")
	if _, err := OpenState(filepath.Join(above, strings.Repeat("x", 120), "s")); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("OpenState: %v", err)
	}
	if _, err := os.Lstat(above); !missing(err) {
		t.Errorf("something was made: %v", err)
	}
	long := filepath.Join(root, strings.Repeat("y", 120))
	if err := os.Symlink(root, long); err != nil {
		t.Fatal(err)
	}
	if p, err := OpenState(filepath.Join(long, "s")); err != nil || len(p.Dir) > 100 {
		t.Errorf("by way of a link: %v, %v", p.Dir, err)
	}
}

package daemon

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
				if err := markStore(p); err != nil {
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
			if err := markStore(p); err != nil {
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

// TestOnlyMCPAndRunsKeepLingering: a plain call counts while it lasts, and leaves
// the clock as it was.
func TestOnlyMCPAndRunsKeepLingering(t *testing.T) {
	var c clients
	during := 0
	h := c.counting(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during = c.count() }))
	call := func(path string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, nil))
		if during != 1 || c.count() != 0 {
			t.Fatalf("%s: %d clients during the call, %d after", path, during, c.count())
		}
	}
	call("/v1/cross")
	if c.seen || !c.last.IsZero() {
		t.Error("a plain call started the clock")
	}
	call("/v1/mcp")
	before := c.last
	if !c.seen || before.IsZero() {
		t.Error("an MCP connection did not start the clock")
	}
	time.Sleep(time.Millisecond)
	call("/v1/status")
	if c.last != before {
		t.Error("a plain call restarted the clock")
	}
	call("/v1/exec")
	if c.last == before {
		t.Error("a run did not restart the clock")
	}
}

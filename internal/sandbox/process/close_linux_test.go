//go:build linux

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestClose_underRuns: a tier that is closed while programs run in it, others are
// asked for and its walls are looked at, ends them all, waits for them, leaves
// nothing, and says nothing of what it could not make ready any more.
func TestClose_underRuns(t *testing.T) {
	installed(t, "python3")
	dir := rootsFor(t)
	for range testrepeat.Times(3, 1) {
		var said sync.Map
		b, err := Open(context.Background(), Config{Dir: dir, Secret: func(string) bool { return false }, Warn: func(s string) { said.Store(s, true) }, Parked: 4})
		if err != nil {
			t.Fatal(err)
		}
		walls := len(b.Posture().Up)
		var begun atomic.Int64
		var all sync.WaitGroup
		for w := range 6 {
			all.Go(func() {
				code := "print(1)"
				if w == 0 {
					code = "import time; time.sleep(29)"
				}
				for {
					res, err := b.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "closed", Need: anyWalls, Code: []byte(code), Timeout: 30 * time.Second})
					if len(b.Posture().Up) != walls || b.Posture().Groups != b.groups.Mode() {
						t.Errorf("its walls have changed: %+v", b.Posture())
					}
					if own := (*holdfast.Error)(nil); err != nil && !errors.As(err, &own) {
						t.Errorf("%v", err)
					}
					if errors.Is(err, unix.ESHUTDOWN) {
						return
					}
					if err == nil && res.ExitCode == 0 {
						begun.Add(1)
					}
				}
			})
		}
		for begun.Load() < 8 {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		b.Close()
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it was closed after %v", took)
		}
		for _, home := range b.groups.Homes() {
			list, _ := filepath.Glob(filepath.Join(home, "*-seat"))
			if len(list) > 0 {
				t.Errorf("it left %v", list)
			}
		}
		all.Wait()
		if list := b.Troubles(); len(list) > 0 {
			t.Errorf("%q", list)
		}
		said.Range(func(line, _ any) bool { t.Errorf("it said %q", line); return true })
		b.Close() // once more is nothing
	}
	for _, pid := range descendants(os.Getpid()) {
		if b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); strings.HasPrefix(string(b), LauncherName) {
			t.Errorf("launcher %d is still there", pid)
		}
	}
}

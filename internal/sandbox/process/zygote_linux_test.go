//go:build linux && amd64

package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// stands says whether a process is there and no zombie.
func stands(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func vanishes(t *testing.T, pids ...int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, pid := range pids {
			if stands(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %v are still there", left, pids)
		}
	}
}

// served runs a program that says its hash of x, and how it came to run.
func served(t *testing.T, b *Tier) (seed string, path posture.Path) {
	t.Helper()
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "z", Language: "python3", Code: []byte("print(hash('x'))"), Need: anyWalls})
	if err != nil {
		t.Error(err)
		return "", ""
	}
	if res.ExitCode != 0 || len(res.Stdout) < 5 {
		t.Errorf("%+v %q", res, res.Stderr)
	}
	return string(res.Stdout), res.Path
}

// TestZygote_hasChildrenForAWhile: after so many forks another one takes its
// place, before it is needed, and the old one goes with its last child.
func TestZygote_hasChildrenForAWhile(t *testing.T) {
	b := warmed(t, "python3", 4)
	z := b.only(t)
	first := z.zygotes()[1:]
	seeds, paths := map[string]int{}, map[posture.Path]int{}
	n, zygotes := 3*zygoteForks, 3
	if !testrepeat.Enduring {
		n, zygotes = zygoteForks/4+8, 2
		z.pool.nursery.mu.Lock()
		z.pool.nursery.now.forks += zygoteForks * 3 / 4 // as if it had forked more
		z.pool.nursery.mu.Unlock()
	}
	for range n {
		seed, path := served(t, b)
		seeds[seed]++
		paths[path]++
	}
	for seed, n := range seeds {
		if n > zygoteForks {
			t.Errorf("%d had the seed of %q", n, seed)
		}
	}
	if len(seeds) < zygotes || paths[posture.PathCold] > n/3 {
		t.Errorf("%d seeds, %v", len(seeds), paths)
	}
	b.Settle(t.Context())
	vanishes(t, first...)
	if list := z.zygotes(); len(list) > 4 {
		t.Errorf("%d zygotes stand", len(list)-1)
	}
}

// TestZygote_killed: again and again, between runs and under them. Those that
// run or wait die with it; the next are served.
func TestZygote_killed(t *testing.T) {
	b := warmed(t, "python3", 4)
	z := b.only(t)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				// A run under which it dies ends as killed, or is not begun.
				res, err := b.Run(t.Context(), sandbox.Spec{ID: "k", Language: "python3", Code: []byte("print(1)"), Need: anyWalls})
				if err == nil && string(res.Stdout) != "1\n" && res.Reason != posture.ReasonSignal {
					t.Errorf("%+v %q %q", res, res.Stdout, res.Stderr)
				}
			}
		})
	}
	var killed []int
	for round := range testrepeat.Times(20, 4) {
		for _, pid := range z.anotherZygote(t, killed, round%2 == 0) {
			killed = append(killed, append(descendants(pid), pid)...)
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	close(stop)
	wg.Wait()
	z.pool.nursery.restIsOver()
	path := posture.PathCold
	for end := time.Now().Add(time.Minute); path != posture.PathParked && time.Now().Before(end); {
		b.Settle(t.Context())
		_, path = served(t, b)
	}
	if path != posture.PathParked || len(z.zygotes()) == 1 {
		t.Errorf("after all that it came by %s, and %d stand", path, len(z.zygotes())-1)
	}
	vanishes(t, killed...)
}

// anotherZygote waits for one that was not killed before, and where proven is set
// for a child of its that waits or runs, and returns all that stand.
func (z *launcherConn) anotherZygote(t *testing.T, killed []int, proven bool) (pids []int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		n := z.pool.nursery
		n.restIsOver()
		n.mu.Lock()
		another := n.now != nil && !slices.Contains(killed, n.now.cmd.Process.Pid) && (n.now.proven || !proven)
		n.mu.Unlock()
		if another {
			return z.zygotes()[1:]
		}
		if time.Now().After(end) {
			t.Fatalf("no other zygote came to stand after %d were killed", len(killed))
		}
	}
}

// restIsOver lets the time pass for which none is started after too many failed.
func (n *nursery) restIsOver() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failedAt = n.failedAt.Add(-zygoteRest)
}

// TestZygote_stopped: one that does not answer holds a request up for a moment,
// and is replaced.
func TestZygote_stopped(t *testing.T) {
	t.Parallel()
	b := warmed(t, "python3", 2)
	z := b.only(t)
	stopped := z.zygotes()[1:]
	for _, pid := range stopped {
		unix.Kill(pid, unix.SIGSTOP)
	}
	for range 4 { // those that wait, and then one that asks for a fork
		if _, path := served(t, b); path == "" {
			t.Fatal("not served")
		}
	}
	b.Settle(t.Context())
	vanishes(t, stopped...)
	b.Settle(t.Context())
	served(t, b)
	b.Settle(t.Context())
	if _, path := served(t, b); path != posture.PathParked {
		t.Errorf("after that it came by %s", path)
	}
}

// TestZygote_thatCannotBe: where none comes to stand, or its children come to
// nothing, workloads are parked one by one; after a rest it is tried again, and what
// has ended by then does not keep zygotes away for good.
func TestZygote_thatCannotBe(t *testing.T) {
	for name, start := range map[string]func(n *nursery, root string) (*launcherConn, error){
		"it ends": func(_ *nursery, root string) (*launcherConn, error) {
			z, err := startZygote(root, []string{"/usr/bin/python3.11", "-S", "-c", "1"}, nil)
			if err == nil {
				defer z.close()
				err = z.ping()
			}
			return nil, err
		},
		"not started": func(*nursery, string) (*launcherConn, error) { return nil, errors.New("not here") },
	} {
		t.Run(name, func(t *testing.T) {
			b := tierOf(t, "python3", 2)
			res, err := b.Run(t.Context(), sandbox.Spec{ID: "a", Language: "python3", Code: []byte("1"), Need: anyWalls})
			if err != nil || res.ExitCode != 0 {
				t.Fatal(res, err)
			}
			z := b.only(t)
			n, tries := z.pool.nursery, 0
			stands := n.start
			n.start = func() (*launcherConn, error) {
				tries++
				z, err := start(n, z.root.Path)
				if err == nil {
					t.Error("it stands")
				}
				return z, err
			}
			for range 3 {
				served(t, b)
				b.Settle(t.Context())
			}
			if _, path := served(t, b); path != posture.PathParked || tries != zygoteTries {
				t.Errorf("came by %s after %d tries", path, tries)
			}
			n.restIsOver()
			served(t, b)
			b.Settle(t.Context())
			if tries != zygoteTries+1 {
				t.Errorf("%d tries after a rest", tries)
			}
			n.restIsOver()
			n.start = stands
			served(t, b)
			b.Settle(t.Context())
			if n.mu.Lock(); n.failed != 0 || n.now == nil || !n.now.proven {
				t.Errorf("one that can be does not come to stand: %d failed", n.failed)
			}
			n.mu.Unlock()
		})
	}
}

// TestZygoteText: what the interpreter reads has zygote.py in it, and the places
// that this package means.
func TestZygoteText(t *testing.T) {
	text := parkText(zygoteText())
	for _, want := range []string{"own, size, tape, tape_size, file, control = 0x2008000000, 65536, 0x2000000000, 134217728, 5, 3\n", "    player(own, 0, control)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if plain := parkText(""); strings.Contains(plain, "player") || strings.Contains(plain, "Here stands") {
		t.Error("one that is no zygote reads what a zygote does")
	}
}

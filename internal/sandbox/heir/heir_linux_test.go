package heir

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const testName = "holdfast-test-heir"

// tasks is the will of the tests' heirs.
type tasks struct{ Marks string } // a folder, into which each try puts a file

func TestMain(m *testing.M) {
	Become(testName, func(text []byte) bool {
		var w tasks
		if json.Unmarshal(text, &w) != nil {
			return true
		}
		os.MkdirTemp(w.Marks, "try-")
		tries, _ := filepath.Glob(w.Marks + "/try-*")
		return len(tries) == 3 // and not at once
	})
	os.Exit(m.Run())
}

const ownerEnv = "HOLDFAST_TEST_HEIR_OWNER"

// TestHeirKillsWhatItHolds, which asked nobody to be ended and is no child of its
// own, when its owner is killed, and settles until nothing is left; signals that
// ask it to end do not.
func TestHeirKillsWhatItHolds(t *testing.T) {
	if dir := os.Getenv(ownerEnv); dir != "" {
		own(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownerEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	var heir, first, second int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), "OWNS %d %d %d", &heir, &first, &second); n == 3 {
			break
		}
		t.Log(lines.Text())
	}
	if !lives(heir) || !lives(first) || !lives(second) {
		t.Fatalf("%d, %d and %d are not all alive", heir, first, second)
	}
	for until := time.Now().Add(time.Minute); !ignores(heir, unix.SIGTSTP); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it never comes to ignore signals")
		}
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		if err := unix.Kill(heir, sig); err != nil {
			t.Fatal(err)
		}
	}
	if tries, _ := filepath.Glob(dir + "/try-*"); len(tries) > 0 {
		t.Errorf("it settled while its owner lived: %v", tries)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for until := time.Now().Add(time.Minute); lives(heir) || lives(first) || lives(second); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("of %d, %d and %d some live on", heir, first, second)
		}
	}
	if tries, _ := filepath.Glob(dir + "/try-*"); len(tries) != 3 {
		t.Errorf("it tried %d times: %v", len(tries), tries)
	}
}

// own starts an heir and two programs in sessions of their own, and waits.
func own(t *testing.T, dir string) {
	var l Line
	if err := l.Ensure(testName, tasks{dir}, unix.CAP_KILL); err != nil {
		t.Fatal(err)
	}
	var pids []any
	pids = append(pids, l.heir.cmd.Process.Pid)
	for range 2 {
		sleeper := exec.Command("sleep", "600")
		pidfd := -1
		sleeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd}
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		if err := l.Hold(pidfd); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, sleeper.Process.Pid)
	}
	fmt.Printf("\nOWNS %d %d %d\n", pids...)
	select {}
}

// TestThreadsKeepTheirRights: what an heir does not get is not lost to Holdfast.
func TestThreadsKeepTheirRights(t *testing.T) {
	before := rights(t)
	for range 3 {
		h, err := Start(testName, tasks{t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		h.Close()
		if !h.Ended() || lives(h.cmd.Process.Pid) {
			t.Error("a closed heir lives on")
		}
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		after := rights(t)
		if len(after) == 1 && after[0] == before[0] {
			return // the thread on which it was started has ended
		}
		if time.Now().After(until) {
			t.Fatalf("the threads' rights were %q and are %q", before, after)
		}
	}
}

// rights are the different ones of this process's threads.
func rights(t *testing.T) (list []string) {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	seen := map[string]bool{}
	for _, f := range threads {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has just ended
		}
		text := ""
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "CapBnd") || strings.HasPrefix(line, "CapEff") || strings.HasPrefix(line, "NoNewPrivs") {
				text += line
			}
		}
		if !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return list
}

// ignores says whether a process ignores the last signal that an heir comes to.
func ignores(pid int, sig unix.Signal) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), "SigIgn:\t")
	mask, _ := strconv.ParseUint(strings.Fields(rest + " 0")[0], 16, 64)
	return mask>>(sig-1)&1 == 1
}

func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

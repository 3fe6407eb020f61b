//go:build linux

package process

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// supervisorEnv makes the test's program a supervisor with one run that does not
// end.
const supervisorEnv = "HOLDFAST_TEST_SUPERVISOR"

// TestNothingOutlivesItsSupervisor: a supervisor that is killed takes its
// launchers, the seats that wait and what runs in them with it.
func TestNothingOutlivesItsSupervisor(t *testing.T) {
	if dir := os.Getenv(supervisorEnv); dir != "" {
		supervise(t, dir)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNothingOutlivesItsSupervisor$")
	cmd.Env = append(os.Environ(), supervisorEnv+"="+rootsFor(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "runs\n" {
		cmd.Process.Kill()
		t.Fatalf("%q %v", line, err)
	}
	var family []int
	for range 100 { // the seats behind it are made meanwhile
		if family = below(t, cmd.Process.Pid); len(family) >= 3 && busy(family) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(family) < 3 {
		t.Fatalf("below the supervisor there are %v, and a launcher, an init and a workload were expected", family)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	var left []int
	for range 200 {
		if left = living(family); len(left) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("of %v there still live %v", family, left)
}

// supervise runs a program without end, and says so once it runs.
func supervise(t *testing.T, dir string) {
	b, err := Open(context.Background(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	go b.Run(context.Background(), sandbox.Spec{ID: "endless", Language: "python3", Code: []byte("while True: pass"), Timeout: sandbox.MaxTimeout, Need: anyWalls})
	for len(below(t, os.Getpid())) < 3 || !busy(below(t, os.Getpid())) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("runs")
	select {}
}

// below are the processes under pid, all generations.
func below(t *testing.T, pid int) []int {
	t.Helper()
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stats {
		if child, parent, _, ok := stat(s); ok {
			children[parent] = append(children[parent], child)
		}
	}
	list := children[pid]
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// busy says whether one of them is an interpreter that runs.
func busy(pids []int) bool {
	for _, p := range pids {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p)); err == nil && strings.HasPrefix(string(b), "python3") {
			return true
		}
	}
	return false
}

func living(pids []int) []int {
	var list []int
	for _, p := range pids {
		if _, _, state, ok := stat(fmt.Sprintf("/proc/%d/stat", p)); ok && state != "Z" && state != "X" {
			list = append(list, p)
		}
	}
	return list
}

func stat(path string) (pid, parent int, state string, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, "", false
	}
	head, tail, _ := strings.Cut(string(b), " (")
	rest := strings.Fields(tail[strings.LastIndex(tail, ")")+1:])
	if len(rest) < 2 {
		return 0, 0, "", false
	}
	pid, err1 := strconv.Atoi(head)
	parent, err2 := strconv.Atoi(rest[1])
	return pid, parent, rest[0], err1 == nil && err2 == nil
}

package cgroup

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestWhoIsKin: who may be moved with this process is itself and whatever it
// started, and nobody else. (A command that started it is tried in a guest.)
func TestWhoIsKin(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sleep 60 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	grandchild, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild = strings.TrimSpace(grandchild)
	t.Cleanup(func() {
		exec.Command("kill", grandchild).Run()
		cmd.Wait()
	})
	for pid, want := range map[string]bool{
		strconv.Itoa(os.Getpid()): true, strconv.Itoa(cmd.Process.Pid): true, grandchild: true,
		strconv.Itoa(os.Getppid()): false, "1": false, "0": false, "-1": false, "": false, "x": false, "2147483646": false,
	} {
		if isKin(pid) != want {
			t.Errorf("%q is kin: %v", pid, !want)
		}
	}
}

package procstat

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestFieldsFollowTheLastParenthesis(t *testing.T) {
	proc := t.TempDir()
	for pid, text := range map[string]string{"9": "9 (a) S) 1 2) R 7 5\n", "8": "8 (a", "7": ""} {
		if err := os.Mkdir(filepath.Join(proc, pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for pid, want := range map[string][]string{"9": {"R", "7", "5"}, "8": {"8", "(a"}, "7": {}} {
		if got, err := ReadFields(proc, pid); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", pid, got, err)
		}
	}
	if got, err := ReadFields(proc, "6"); err == nil {
		t.Errorf("a process that is missing: %q", got)
	}
}

func TestParentIsFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no /proc/PID/stat")
	}
	if got := FindParent(os.Getpid()); got != os.Getppid() {
		t.Errorf("the parent is %d, got %d", os.Getppid(), got)
	}
	if got := FindParent(-1); got != 0 {
		t.Errorf("of no process: %d", got)
	}
}

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// limitEnv makes the test's program set limits, "NUMBER=VALUE" each, and run something
// with them.
const limitEnv = "HOLDFAST_TEST_LIMIT"

// TestSmallLimitsAreNamed: a limit that Holdfast was started with and that is too
// small for a run is said by its name and value with what is needed; one that
// leaves room, or that no run needs, is none.
func TestSmallLimitsAreNamed(t *testing.T) {
	if set := os.Getenv(limitEnv); set != "" {
		runLimited(t, set)
		return
	}
	cores := "ran"
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.HasPrefix(string(pattern), "|") {
		cores = "RLIMIT_CORE (bytes of a core file, which this machine hands to a program) at 0, and a run needs 1 | start it where `ulimit -c`"
	}
	enough := []string{setLimit(unix.RLIMIT_FSIZE, 128<<20)}
	if !raceDetector { // it takes more for itself
		enough = append(enough, setLimit(unix.RLIMIT_AS, 3<<30), setLimit(unix.RLIMIT_DATA, 400<<20))
	}
	for name, c := range map[string]struct {
		resource int
		value    uint64
		want     string // "ran", or of the error
		more     []string
	}{
		"open files":     {resource: unix.RLIMIT_NOFILE, value: 100, want: "RLIMIT_NOFILE (open files) at 100, and a run needs 256 | start it where `ulimit -n` is at least 256"},
		"file size":      {resource: unix.RLIMIT_FSIZE, value: 50 << 20, want: "RLIMIT_FSIZE (bytes in a file) at 51200 KB, and a run needs 131072 KB | start it where `ulimit -f`"},
		"address space":  {resource: unix.RLIMIT_AS, value: 2<<30 - 1, want: "RLIMIT_AS (bytes of address space) at 2097151 KB, and a run needs 2097152 KB | start it where `ulimit -v`"},
		"private memory": {resource: unix.RLIMIT_DATA, value: 200 << 20, want: "RLIMIT_DATA (bytes of private memory) at 204800 KB, and a run needs 262144 KB | start it where `ulimit -d`"},
		"enough of each": {resource: unix.RLIMIT_NOFILE, value: 256, want: "ran", more: enough},
		"what no run needs": {resource: unix.RLIMIT_MEMLOCK, value: 0, want: "ran", more: []string{
			setLimit(unix.RLIMIT_SIGPENDING, 20), setLimit(unix.RLIMIT_MSGQUEUE, 0),
			setLimit(unix.RLIMIT_CPU, 10), setLimit(unix.RLIMIT_STACK, 256<<10)}},
		"core files": {resource: unix.RLIMIT_CORE, value: 0, want: cores},
	} {
		if raceDetector && (c.resource == unix.RLIMIT_AS || c.resource == unix.RLIMIT_DATA) {
			continue // it takes more for itself; make test runs these without it
		}
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestSmallLimitsAreNamed$", "-test.timeout=15s")
			limits := strings.Join(append(c.more, setLimit(c.resource, c.value)), " ")
			cmd.Env = append(os.Environ(), limitEnv+"="+limits, "TMPDIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "said: ") || !strings.Contains(string(out), c.want) {
				t.Errorf("%v\n%s\nwant %s", err, out, c.want)
			}
		})
	}
}

// setLimit returns what limitEnv says of one limit.
func setLimit(resource int, value uint64) string { return fmt.Sprintf("%d=%d", resource, value) }

func runLimited(t *testing.T, set string) {
	b := tier(t)
	for one := range strings.FieldsSeq(set) {
		var resource int
		var l unix.Rlimit
		if _, err := fmt.Sscanf(one, "%d=%d", &resource, &l.Max); err != nil {
			t.Fatal(err)
		}
		l.Cur = l.Max
		if err := unix.Prlimit(0, resource, &l, nil); err != nil {
			t.Fatal(err)
		}
	}
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "limited", Language: sandbox.Static, Code: probe(), Need: anyWalls})
	var e *holdfast.Error
	switch {
	case errors.As(err, &e):
		fmt.Println("said:", e.Why, "|", e.Hint)
	case err != nil || res.ExitCode != 0 || res.State != posture.Completed:
		t.Fatal(err, res)
	default:
		fmt.Println("said: ran")
	}
}

// TestShortageIsTheHint: an error of the host leads to what is short, not to `holdfast doctor`.
func TestShortageIsTheHint(t *testing.T) {
	for _, err := range []error{unix.EMFILE, unix.EAGAIN, unix.ENOMEM, unix.EFBIG, unix.ENFILE, unix.ENOSPC, unix.EDQUOT} {
		var e *holdfast.Error
		ok := errors.As(failed(holdfast.KindSpawn, "start", fmt.Errorf("clone: %w", err)), &e)
		if !ok || strings.Contains(e.Hint, "holdfast doctor") || e.Hint == "" {
			t.Errorf("%v: %+v", err, e)
		}
	}
}

package sandboxtest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// enters386 says whether an attempt enters the kernel by the door of 32 bits.
func (a *try) enters386() bool {
	return strings.Contains(a.code, "int80(") || strings.Contains(a.code, `\xcd\x80`) || strings.HasPrefix(a.static, "int80")
}

// shut386 says whether the machine has no such door: some that are virtual have none,
// and there who tries it faults, outside the walls too.
func (s *suite) shut386(t *testing.T) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program)
	cmd.Env = append(os.Environ(), "TRICK=int80")
	out, err := cmd.CombinedOutput()
	return err != nil && bytes.Contains(out, []byte(fault))
}

// fault is what a compiled program says of its own fault before it ends.
const fault = "SIGSEGV"

// faulted says whether a program ended by a fault of its own.
func faulted(res *posture.Result) bool {
	return res.State == posture.Completed && (res.ExitCode == 128+int(syscall.SIGSEGV) || res.ExitCode == 2 && bytes.Contains(res.Stderr, []byte(fault)))
}

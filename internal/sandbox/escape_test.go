package sandbox_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestD16_whatARunBroke: an escape and a violation come back as errors of their
// own, through whatever wraps them, and a refused call as none.
func TestD16_whatARunBroke(t *testing.T) {
	call := sandbox.Call{Nr: 101, Name: "ptrace", Arch: "x86_64", Args: [6]uint64{16, 0, 0, 0, 0, 0}}
	escape := (&sandbox.Result{ID: "r1", Reason: sandbox.ReasonEscape, Call: &call}).Broke()
	var e *sandbox.Escape
	if !errors.As(fmt.Errorf("run: %w", escape), &e) || e.Run != "r1" || e.Call != call {
		t.Errorf("an escape came back as %v", escape)
	}
	if got := e.Error(); got != "the code tried to leave its sandbox with ptrace (call 101, x86_64)" {
		t.Error(got)
	}
	var v *sandbox.Violation
	violation := (&sandbox.Result{ID: "r2", Reason: sandbox.ReasonSyscall, Call: &call}).Broke()
	if !errors.As(violation, &v) || v.Run != "r2" || errors.As(violation, &e) && e.Run == "r2" {
		t.Errorf("a violation came back as %v", violation)
	}
	unnamed := (&sandbox.Result{ID: "r3", Reason: sandbox.ReasonEscape}).Broke()
	if !errors.As(unnamed, &e) || e.Call.String() != "a call that could not be named" {
		t.Errorf("an escape that nobody could name came back as %v", unnamed)
	}
	for _, r := range []sandbox.Reason{"", sandbox.ReasonWall, sandbox.ReasonOOM, sandbox.ReasonSignal, sandbox.ReasonHalt, sandbox.ReasonOutput} {
		if err := (&sandbox.Result{Reason: r, Call: &call, Refused: []sandbox.Refusal{{Name: "socket", Errno: "EACCES", Count: 3}}}).Broke(); err != nil {
			t.Errorf("a run that ended by %q broke %v", r, err)
		}
	}
}

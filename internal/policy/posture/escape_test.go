package posture_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// TestD16_whatARunBroke: an escape and a violation come back as errors of their
// own, through whatever wraps them, and a refused call as none.
func TestD16_whatARunBroke(t *testing.T) {
	call := posture.Call{Nr: 101, Name: "ptrace", Arch: "x86_64", Args: [6]uint64{16, 0, 0, 0, 0, 0}}
	escape := (&posture.Result{ID: "r1", Reason: posture.ReasonEscape, Call: &call}).Broke()
	var e *posture.Escape
	if !errors.As(fmt.Errorf("run: %w", escape), &e) || e.Run != "r1" || e.Call != call {
		t.Errorf("an escape came back as %v", escape)
	}
	if got := e.Error(); got != "the code tried to leave its sandbox with ptrace (call 101, x86_64)" {
		t.Error(got)
	}
	var v *posture.Violation
	violation := (&posture.Result{ID: "r2", Reason: posture.ReasonSyscall, Call: &call}).Broke()
	if !errors.As(violation, &v) || v.Run != "r2" || errors.As(violation, &e) && e.Run == "r2" {
		t.Errorf("a violation came back as %v", violation)
	}
	unnamed := (&posture.Result{ID: "r3", Reason: posture.ReasonEscape}).Broke()
	if !errors.As(unnamed, &e) || e.Call.String() != "a call that could not be named" {
		t.Errorf("an escape that nobody could name came back as %v", unnamed)
	}
	for _, r := range []posture.Reason{"", posture.ReasonWall, posture.ReasonOOM, posture.ReasonSignal, posture.ReasonHalt, posture.ReasonOutput} {
		if err := (&posture.Result{Reason: r, Call: &call, Refused: []posture.Refusal{{Name: "socket", Errno: "EACCES", Count: 3}}}).Broke(); err != nil {
			t.Errorf("a run that ended by %q broke %v", r, err)
		}
	}
}

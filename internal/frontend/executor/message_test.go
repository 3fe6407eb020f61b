package executor

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// A posture says all that the document promises of it: the walls, what bounds a
// run in place of one, and what nothing bounds.
func TestPostureIsWhole(t *testing.T) {
	m := postureOf(posture.Posture{Up: []posture.Wall{posture.WallPID}, Down: map[posture.Wall]string{posture.WallPids: "no group"},
		Instead: map[posture.Wall]string{posture.WallPids: "RLIMIT_NPROC"}, Unbound: map[string]string{"io": "no rate \xff"}, Names: true})
	if len(m.Up) != 1 || m.Down["pids"] != "no group" || m.Instead["pids"] != "RLIMIT_NPROC" || m.Unbounded["io"] != "no rate \uFFFD" || !m.NamesViolations {
		t.Errorf("%+v", m)
	}
}

// A request without an id is told what an id is.
func TestRequestWithoutAnID(t *testing.T) {
	spec, err := specOf(&executorpb.ExecutionRequest{Language: "python3", Code: "print(1)"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sandbox.Check(spec, func(string) bool { return false })
	why, hint := letter(err)
	if !strings.Contains(why, `the request_id "" is no id of a run`) || !strings.Contains(hint, "1 to 64 letters") {
		t.Errorf("%q %q", why, hint)
	}
}

// TestErrorMessageHasPutBackOnce: the fate of the work is in the error message
// once, whether or not the error already says so.
func TestErrorMessageHasPutBackOnce(t *testing.T) {
	out := &holdfast.Outcome{Crossing: "x", PutBack: "the work is restored"}
	for message, want := range map[string]string{"": "the work is restored", "it failed": "it failed; the work is restored"} {
		if r := resultOf(&posture.Document{ErrorMessage: message}, out); r.ErrorMessage != want || r.Crossing != "x" {
			t.Errorf("%q: %q", message, r.ErrorMessage)
		}
	}
	bare := &holdfast.Error{Kind: holdfast.KindSpawn, Why: "no wall"}
	full := &holdfast.Error{Kind: holdfast.KindSpawn, Why: "no wall; the work is restored", PutBack: true}
	for _, err := range []error{bare, full} {
		r := spawnResult("run", Answer{Outcome: out, Err: err})
		if r.ErrorMessage != "no wall; the work is restored" {
			t.Errorf("%v: %q", err, r.ErrorMessage)
		}
	}
}

package story

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/ledger"
)

// broke is what the events of the sandbox hold (D21).
type broke struct {
	Run      string `json:"request_id"`
	Boundary string `json:"boundary"`
	From     string `json:"trust_from"`
	To       string `json:"trust_to"`
	Review   string `json:"review"`
	Late     bool   `json:"late"`
	Intent   string `json:"intent"`
	Failed   *bool  `json:"intent_failed"`

	State posture.State `json:"state"`
	Kind  string        `json:"kind"`
	Call  struct {
		Nr   int    `json:"nr"`
		Name string `json:"name"`
		Arch string `json:"arch"`
	} `json:"call"`
}

// ranOut tells of a run that a limit ended, or whose walls could not be built.
func ranOut(e *ledger.Event, d *broke) string {
	how := map[posture.State]string{posture.Timeout: "was ended: its time by the wall was over", posture.OOM: "was ended: its memory was used up",
		posture.SpawnError: "did not run: its sandbox could not be built"}[d.State]
	if how == "" {
		how = "did not run: what was asked for cannot be"
	}
	if d.Kind != "" {
		how += ", " + d.Kind
	}
	return fmt.Sprintf("code of %s at %s %s (request %s)", e.Subject, d.Boundary, how, d.Run)
}

// Escape says whether an event tells that code tried to leave its sandbox.
func Escape(e *ledger.Event) bool { return e.Name == "sandbox_escape_attempted" }

// Event tells in plain words what code did to its sandbox and what was done
// about it, "" of any other event.
func Event(e *ledger.Event) string {
	var d broke
	if !Escape(e) && e.Name != "sandbox_violation" && e.Name != "sandbox_ended" || json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	if e.Name == "sandbox_ended" {
		return ranOut(e, &d)
	}
	call := posture.Call{Nr: d.Call.Nr, Name: d.Call.Name, Arch: d.Call.Arch}.String()
	if !Escape(e) {
		return fmt.Sprintf("code of %s at %s was ended for %s, which its sandbox does not allow (request %s)", e.Subject, d.Boundary, call, d.Run)
	}
	s := fmt.Sprintf("code of %s at %s tried to leave its sandbox with %s (request %s). It was killed, and its crossing failed; %s is paused, ", e.Subject, d.Boundary, call, d.Run, e.Subject)
	if d.Late {
		s = fmt.Sprintf("code of %s at %s tried to leave its sandbox with %s (request %s), which was heard of after its crossing had ended. It was killed; %s is paused, ", e.Subject, d.Boundary, call, d.Run, e.Subject)
	}
	if d.From == d.To {
		s += "its trust stays " + d.To + ", the lowest, "
	} else {
		s += "its trust went from " + d.From + " to " + d.To + ", "
	}
	switch {
	case d.Failed != nil && *d.Failed:
		s += "intent " + d.Intent + " failed, "
	case d.Failed != nil:
		s += "intent " + d.Intent + " could not be failed, "
	}
	return s + "and a person is asked in review " + d.Review
}

package posture

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The document's fields are all there, zeros included, and what was written is
// read again.
func TestDocument(t *testing.T) {
	b, err := json.Marshal((&Result{}).Document())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"request_id", "stdout", "stderr", "output_files", "exit_code", "wall_time", "user_time", "system_time",
		"memory_peak_mb", "page_faults", "error_message", "start_time", "end_time"} {
		if !strings.Contains(string(b), `"`+name+`":`) {
			t.Errorf("%s is not in %s", name, b)
		}
	}
	full := (&Result{ID: "r", MemoryPeak: 1, WallTime: 1500 * time.Millisecond, UserTime: time.Nanosecond, Start: time.Unix(1, 0), State: SyscallBlocked, Reason: ReasonEscape,
		Call: &Call{Nr: 161, Name: "chroot", Arch: "x86_64"}, Posture: Posture{Tier: TierProcess, Up: []Wall{WallPID}}}).Document()
	if b, err = json.Marshal(full); err != nil {
		t.Fatal(err)
	}
	var again Document
	if err := json.Unmarshal(b, &again); err != nil || again.WallTime != full.WallTime || again.UserTime != 1 || again.Posture.Tier != TierProcess || *again.Syscall != *full.Syscall || again.MemoryPeakMB != 1 {
		t.Errorf("%+v, %v", again, err)
	}
	if !strings.Contains(string(b), `"wall_time":"1.500s"`) || !strings.Contains(string(b), `"user_time":"0.000000001s"`) {
		t.Errorf("%s", b)
	}
}

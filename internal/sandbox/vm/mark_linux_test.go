package vm

import "testing"

// TestAMachineGoesBeforeHoldfast where the host's memory is short.
func TestAMachineGoesBeforeHoldfast(t *testing.T) {
	cmd, err := behindWalls("/usr/bin/cat", []string{"/proc/self/oom_score_adj"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if string(out) != "1000\n" {
		t.Errorf("its mark is %q (%v)", out, err)
	}
}

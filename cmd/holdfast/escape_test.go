package main

import (
	"testing"

	"github.com/holdfast-dev/holdfast/ledger"
)

// TestD21_tailTellsOfAnAttempt: what an event of the sandbox says stands in words
// behind its name.
func TestD21_tailTellsOfAnAttempt(t *testing.T) {
	e := &ledger.Event{Name: "sandbox_violation", Subject: "ada", Data: []byte(`{"request_id":"r1","boundary":"exec/node22","call":{"nr":155,"name":"pivot","arch":"x86_64"}}`)}
	if got, want := how(e), "code of ada at exec/node22 was ended for pivot (call 155, x86_64), which its sandbox does not allow (request r1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

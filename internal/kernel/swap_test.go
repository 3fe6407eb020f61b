package kernel

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func asking(t *testing.T, window string) *policy {
	t.Helper()
	s, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte(
		"rules:\n  - {id: r, on: request, when: \"past('test/low', '" + window + "').happened()\", message: m}\n")}})
	if err != nil {
		t.Fatal(err)
	}
	return &policy{Policy: &Policy{Rules: s}}
}

// Who reads the ledger anew because the clock was set back does not bring back the
// past functions of a policy that was replaced meanwhile: those of the new one
// would have no answer until the next.
func TestThePastIsThatOfThePolicyInForce(t *testing.T) {
	k := &Kernel{clock: time.Now}
	if err := k.past.open(nil); err != nil {
		t.Fatal(err)
	}
	k.policy.Store(asking(t, "1h"))
	k.past.mu.Lock() // as another swap would
	done := make(chan struct{})
	go func() {
		k.usePast()
		close(done)
	}()
	time.Sleep(20 * time.Millisecond) // it waits for the lock; where not, nothing is shown
	next := asking(t, "2h")
	k.policy.Store(next)
	k.past.mu.Unlock()
	<-done
	for _, s := range k.past.kept.Status(time.Now()) {
		if s.Past.ID != next.Rules.Pasts()[0].ID {
			t.Errorf("%s is kept, which is in force no more", s.Past.Text)
		}
	}
}

package past

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func load(t *testing.T, window string) *constitution.Set {
	t.Helper()
	s, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte(
		"rules:\n  - {id: r, on: request, when: \"past('test/low', '" + window + "').happened()\", message: m}\n")}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A Keeper that reads the ledger again because the clock was set back does not restore the past
// functions of a policy that was replaced meanwhile: those of the new one would have no answer
// until the next.
func TestUseActiveTakesTheNewestFunctions(t *testing.T) {
	var active atomic.Pointer[constitution.Set]
	active.Store(load(t, "1h"))
	k, err := New(nil, Source{Now: time.Now, Functions: func() []*constitution.Past { return active.Load().Pasts() }})
	if err != nil {
		t.Fatal(err)
	}
	k.mu.Lock() // as another swap would
	done := make(chan struct{})
	go func() {
		k.UseActive()
		close(done)
	}()
	time.Sleep(20 * time.Millisecond) // it waits for the lock; if it does not, nothing is shown
	next := load(t, "2h")
	active.Store(next)
	k.mu.Unlock()
	<-done
	for _, s := range k.kept.Status(time.Now()) {
		if s.Past.ID != next.Pasts()[0].ID {
			t.Errorf("%s is kept, and is no longer active", s.Past.Text)
		}
	}
}

func TestNewRefusesAKeyOfAnotherSize(t *testing.T) {
	src := Source{Now: time.Now, Functions: func() []*constitution.Past { return nil }}
	if _, err := New(make([]byte, 16), src); err == nil {
		t.Error("a key of 16 bytes is accepted")
	}
	k, err := New(make([]byte, 32), src)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Read(context.Background()); err != nil || !k.Status().Ready {
		t.Errorf("without functions there is something to read: %v", err)
	}
	if k.Seal("group", "") != "" || k.Seal("group", "a") == k.Seal("value", "a") || len(k.Seal("group", "a")) != 32 {
		t.Error("sealed wrongly")
	}
}

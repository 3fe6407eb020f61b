package bystander

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// TestBystandersHoldNothing: of what is open here when one is started, nothing
// stays open in it. Of two that were started at once each would hold what the
// other waits for to be closed.
func TestBystandersHoldNothing(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	p, err := Start(-1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.End()
	to.Close()
	from.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := from.Read(make([]byte, 1)); os.IsTimeout(err) {
		t.Error("it holds a pipe open that was closed here")
	}
}

// TestBystandersAtOnce: many of them begin and end beside each other.
func TestBystandersAtOnce(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range testrepeat.Times(50, 8) {
					p, err := Start(-1, nil)
					if err != nil {
						t.Error(err)
						return
					}
					p.End()
				}
			})
		}
		wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("they wait for each other")
	}
}

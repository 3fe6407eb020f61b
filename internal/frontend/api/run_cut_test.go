package api

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// contracts is a kernel that knows none.
type contracts struct{ Kernel }

func (contracts) Contract(string) (holdfast.Contract, bool) { return holdfast.Contract{}, false }

// A run whose crossing the owner has ended is ended, also where no word to stop it
// came before.
func TestRunEndsWithItsCrossing(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	owner := newLines(there, there)
	go func() {
		var ask RunAsk
		_ = owner.read(&ask)
		_ = owner.write(RunWord{Go: &RunTerms{}})
		_ = owner.write(RunWord{Done: newExecutedReply(&Executed{})})
		var said RunSaid
		_ = owner.read(&said)
	}()
	_, err := runOver(t.Context(), newLines(here, here), RunAsk{}, func(ctx context.Context, _ RunTerms) (*posture.Result, error) {
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Second):
			t.Error("it went on without a crossing")
		}
		return nil, context.Cause(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// A halt's word reaches the run before what serves its network has ended.
func TestRunIsToldToStopBeforeItsNetworkEnds(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	s := &Server{Kernel: contracts{}, Mask: func(s string) string { return s }}
	h := &runHand{s: s, conn: there, lines: newLines(there, there), over: make(chan struct{}), net: &sandbox.Network{}}
	ctx, halt := context.WithCancel(t.Context())
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		_, _ = h.act(ctx, "run/x")
	}()
	caller := newLines(here, here)
	var word RunWord
	if err := caller.read(&word); err != nil || word.Go == nil {
		t.Fatalf("%v %+v", err, word)
	}
	served := s.handovers.take(word.Go.Ticket)
	served.mu.Lock() // as while what serves the network takes its time to end
	halt()
	_ = here.SetReadDeadline(time.Now().Add(30 * time.Second))
	word = RunWord{}
	if err := caller.read(&word); err != nil || word.Stop == nil {
		t.Errorf("%v %+v", err, word)
	}
	served.mu.Unlock()
	_ = caller.write(RunSaid{})
	<-acted
}

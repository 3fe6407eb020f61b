package api

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// underway are the runs that can be stopped, by the request id that their caller
// gave them. Its zero value is none.
type underway struct {
	mu   sync.Mutex
	runs map[string][]*stoppable // guarded by mu
}

// stoppable is one of them.
type stoppable struct{ stop context.CancelCauseFunc }

// begin makes a context that stop ends, or the end of the owner. The caller
// calls done.
func (u *underway) begin(ctx context.Context, id string, ending <-chan struct{}) (run context.Context, done func()) {
	run, cancel := context.WithCancelCause(ctx)
	r := &stoppable{cancel}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.runs == nil {
		u.runs = map[string][]*stoppable{}
	}
	u.runs[id] = append(u.runs[id], r)
	over := make(chan struct{})
	go func() {
		select {
		case <-ending:
			cancel(&holdfast.Error{Kind: holdfast.KindCanceled, Why: "stopped: Holdfast was ended while it ran"})
		case <-over:
		}
	}()
	return run, func() {
		close(over)
		cancel(nil)
		u.end(id, r)
	}
}

func (u *underway) end(id string, r *stoppable) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var left []*stoppable
	for _, other := range u.runs[id] {
		if other != r {
			left = append(left, other)
		}
	}
	if u.runs[id] = left; len(left) == 0 {
		delete(u.runs, id)
	}
}

// stop ends what runs under id, and returns how many that were.
func (u *underway) stop(id string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.runs[id] {
		r.stop(&holdfast.Error{Kind: holdfast.KindCanceled, Why: "stopped by the one who asked for it"})
	}
	return len(u.runs[id])
}

// StopAsk names the run that its caller gives up.
type StopAsk struct {
	RequestID string `json:"request_id"`
}

// Stopping says how many runs were told to end.
type Stopping struct {
	Runs int `json:"runs"`
}

// stopRun ends a run whose caller gives it up and still waits for what there is.
func (s *Server) stopRun(_ context.Context, a StopAsk) (Stopping, error) {
	return Stopping{Runs: s.underway.stop(a.RequestID)}, nil
}

// maxChosen bounds why a tier was chosen, in the ledger, so that what ran it stands
// behind that whole.
const maxChosen = 160

// ran is what the ledger keeps of a run beside its output, which an agent may
// fill up.
func ran(s posture.State, p posture.Posture, chosen string) *holdfast.Ran {
	x := &holdfast.Ran{State: string(s), Sandbox: chosen}
	if p.Runtime != "" {
		x.Sandbox = excerpt.Of(chosen, maxChosen) + "; by " + p.Runtime
	}
	for _, w := range p.Up {
		x.Walls = append(x.Walls, string(w))
	}
	return x
}

// came is the error of a run that was stopped: the caller of the crossing, a
// person, or its time was over. Any other says what it did to its walls, and how
// it ended.
func came(ctx context.Context, r *posture.Result) error {
	if err := context.Cause(ctx); err != nil && r.Reason == posture.ReasonHalt {
		return &posture.Stopped{Run: r.ID, Err: err}
	}
	return r.News()
}

// withCode names the code in an attempt to get out.
func withCode(err error, code []byte) error {
	var esc *posture.Escape
	if errors.As(err, &esc) {
		esc.Code = hash(code)
	}
	return err
}

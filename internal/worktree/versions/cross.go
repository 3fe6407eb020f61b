package versions

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// builtIn is the place of contracts that no file says.
const builtIn = "built in"

// The boundaries at which Holdfast itself keeps versions and puts them back. No
// role that an agent has may cross them.
const (
	snapshotTake       = snapshot.BoundaryPrefix + "take"
	snapshotCommit     = snapshot.BoundaryPrefix + "commit"
	snapshotRollback   = snapshot.BoundaryPrefix + "rollback"
	snapshotArchive    = snapshot.BoundaryPrefix + "archive"
	snapshotPermission = "snapshot:keep"
	// Role is Holdfast's own: only tokens that the daemon makes for itself
	// have it.
	Role        = "holdfast:keeper"
	keeperAgent = snapshot.Agent
)

// AddPolicy adds what Holdfast itself crosses to a policy.
func AddPolicy(p *kernel.Policy) {
	p.Roles = maps.Clone(p.Roles)
	p.Roles[Role] = []string{snapshotPermission}
	p.Contracts = slices.Clone(p.Contracts)
	for _, b := range []string{snapshotTake, snapshotCommit, snapshotRollback, snapshotArchive} {
		p.Contracts = append(p.Contracts, holdfast.Contract{Boundary: b, Risk: holdfast.Low, Permissions: []string{snapshotPermission},
			Timeout: 2 * time.Hour, Operation: snapshotPermission, Source: builtIn})
	}
}

// ownAct is something that Holdfast does of itself, or on a person's word.
type ownAct struct {
	boundary string
	payload  map[string]any
	// event, of about, is written when it is done: what it came to is in the
	// ledger for good. about is a snapshot's id, or the crossing that it is for.
	event string
	who   string
	// whole says that what was begun goes to its end, whoever halts or hangs up
	// meanwhile: a tree that is half put back is neither version.
	whole bool
	do    func(ctx context.Context) (about string, data map[string]any, err error)
}

// keep carries it out as a crossing of its own. Where none can be made, because
// everything is halted, Holdfast's own agent is paused or a budget is spent, it is
// done all the same, and the event alone tells of it: a person rolls back while
// everything stands still.
func (s *Service) keep(ctx context.Context, a ownAct) error {
	act, once := func(ctx context.Context) (holdfast.Output, error) { return s.did(ctx, a) }, (*begunOnce)(nil)
	if a.whole {
		var done func()
		if ctx, done = s.toItsEnd(ctx); ctx.Err() != nil {
			done()
			return context.Cause(ctx)
		}
		defer done()
		once = &begunOnce{under: ctx, act: act, ended: make(chan struct{})}
		act = once.wait
	}
	if s.Halted() { // the crossing would stand in the ledger as denied, though this is done
		_, err := s.did(ctx, a)
		return err
	}
	begun := false
	counted := func(ctx context.Context) (holdfast.Output, error) {
		begun = true
		return act(ctx)
	}
	payload, err := json.Marshal(a.payload)
	if err != nil {
		return err
	}
	tok, err := s.Token(time.Now())
	if err != nil {
		return err
	}
	_, err = s.host.Cross(ctx, holdfast.Request{Boundary: a.boundary, Payload: payload, Token: tok}, counted)
	switch {
	case begun && once != nil:
		<-once.ended // the crossing may have been cut, what it was for was not
		return once.err
	case begun || err == nil || ctx.Err() != nil:
		return err
	}
	switch holdfast.KindOf(err) {
	case holdfast.KindHalted, holdfast.KindPaused, holdfast.KindTenantBlocked, holdfast.KindBounds:
		_, err = s.did(ctx, a)
	}
	return err
}

// did carries it out, and records what it came to.
func (s *Service) did(ctx context.Context, a ownAct) (holdfast.Output, error) {
	about, data, err := a.do(ctx)
	if data == nil {
		return holdfast.Output{}, err
	}
	if id := kernel.CrossingID(ctx); id != "" {
		data["crossing"] = id
	}
	if rerr := s.recordEvent(kernel.Event{Tenant: holdfast.Local,
		Crossing: about, Name: a.event, Who: a.who, Subject: a.boundary, Data: data}); rerr != nil {
		return holdfast.Output{}, rerr
	}
	b, merr := json.Marshal(data)
	if err == nil {
		err = merr
	}
	return holdfast.Output{Body: b}, err
}

// begunOnce is an act that goes on when its crossing is cut.
type begunOnce struct {
	under context.Context // which ends with the daemon, and not with the crossing
	act   func(context.Context) (holdfast.Output, error)
	ended chan struct{}
	out   holdfast.Output // once ended
	err   error           // once ended
}

// wait begins it, and waits for its end or that of its crossing.
func (o *begunOnce) wait(ctx context.Context) (holdfast.Output, error) {
	under, stop := context.WithCancel(context.WithoutCancel(ctx)) // it knows its crossing
	unhook := context.AfterFunc(o.under, stop)
	go func() {
		defer close(o.ended)
		defer stop()
		defer unhook()
		o.out, o.err = o.act(under)
	}()
	select {
	case <-o.ended:
		return o.out, o.err
	case <-ctx.Done():
		return holdfast.Output{}, context.Cause(ctx)
	}
}

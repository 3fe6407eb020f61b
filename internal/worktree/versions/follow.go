package versions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// following is which acts have ended and are not looked after yet: the newest of
// each agent. Many that end at once make one commit.
type following struct {
	mu      sync.Mutex
	waiting map[string]kernel.Acting // guarded by mu; by agent
	wake    chan struct{}
}

// maxFollowed bounds how many agents wait to be looked after; one more is looked
// after with its next act.
const maxFollowed = 10_000

// Ended implements kernel.Versions: an act that may have changed something is looked
// after behind it.
func (s *Service) Ended(a kernel.Acting) {
	if a.Risk == holdfast.Low || a.Tenant != holdfast.Local || len(s.current().Trees) == 0 {
		return
	}
	s.behind.mu.Lock()
	if s.behind.waiting == nil {
		s.behind.waiting = map[string]kernel.Acting{}
	}
	if _, there := s.behind.waiting[a.Agent]; there || len(s.behind.waiting) < maxFollowed {
		s.behind.waiting[a.Agent] = a
	}
	s.behind.mu.Unlock()
	select {
	case s.behind.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// RunFollow looks after acts until ctx ends.
func (s *Service) RunFollow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.behind.wake:
			s.lookAfter(ctx)
		}
	}
}

// ending is how what goes to its end learns that the daemon itself ends.
type ending struct {
	mu    sync.Mutex
	over  bool           // guarded by mu
	next  int            // guarded by mu
	stops map[int]func() // guarded by mu
	going sync.WaitGroup
}

// toItsEnd is a context that ends with the daemon and not with ctx; done gives it
// back.
func (s *Service) toItsEnd(ctx context.Context) (_ context.Context, done func()) {
	e := &s.ending
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	e.mu.Lock()
	defer e.mu.Unlock()
	end := func() { stop(refusedAtEnd()) }
	if e.over {
		end()
		return ctx, func() {}
	}
	if e.stops == nil {
		e.stops = map[int]func(){}
	}
	e.next++
	id := e.next
	e.stops[id] = end
	e.going.Add(1)
	return ctx, func() {
		e.mu.Lock()
		delete(e.stops, id)
		e.mu.Unlock()
		stop(nil)
		e.going.Done()
	}
}

func refusedAtEnd() error {
	return &holdfast.Error{Kind: holdfast.KindCanceled, Why: "the daemon ends", Hint: "what was begun is carried to its end at the next start"}
}

// stop ends what goes to its end: the next start goes on with it.
func (e *ending) stop() {
	e.mu.Lock()
	e.over = true
	for _, stop := range e.stops {
		stop()
	}
	e.mu.Unlock()
	e.going.Wait()
}

// Rest looks after what is left, before the store is closed.
func (s *Service) Rest() {
	s.ending.stop()
	if s.host == nil || s.Store() == nil || s.Store().Poisoned() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.lookAfter(ctx)
	if left := s.behind.take(); len(left) > 0 {
		s.Log().Error("what agents did last could not be kept before the end; the next snapshot has it", "agents",
			len(left))
	}
}

// lookAfter keeps the trees of every agent that waits. What the end of ctx cuts
// waits on.
func (s *Service) lookAfter(ctx context.Context) {
	waiting := s.behind.take()
	for agent, a := range waiting {
		if s.lookedAfter(ctx, a) {
			delete(waiting, agent)
		}
	}
	s.behind.putBack(waiting)
}

// take is what waits, which then waits no more.
func (f *following) take() map[string]kernel.Acting {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := f.waiting
	f.waiting = nil
	return waiting
}

// putBack lets acts wait again, but for those of agents that have acted since.
func (f *following) putBack(cut map[string]kernel.Acting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil {
		f.waiting = cut
		return
	}
	for agent, a := range cut {
		if _, newer := f.waiting[agent]; !newer {
			f.waiting[agent] = a
		}
	}
}

// lookedAfter keeps the trees of an act's agent, and says whether it could look at
// each of them before ctx ended.
func (s *Service) lookedAfter(ctx context.Context, a kernel.Acting) bool {
	for _, t := range s.current().TreesOf(a.Agent) {
		if ctx.Err() != nil {
			return false
		}
		err := s.commit(ctx, t, a)
		switch {
		case err == nil:
			s.fail(ofActionIn(t.Path), "")
		case ctx.Err() != nil:
			return false
		default:
			s.fail(ofActionIn(t.Path), reason(err))
		}
	}
	return true
}

// ofActionIn is the trouble of one tree: that another is well says nothing of it.
func ofActionIn(tree string) trouble { return trouble{troubleAction, tree} }

// Reloaded forgets the troubles of trees that are tracked no more, and has what failed
// tried again.
func (s *Service) Reloaded() {
	tracked := map[string]bool{}
	for _, t := range s.current().Trees {
		tracked[t.Path] = true
	}
	s.mu.Lock()
	s.changed = true
	var gone []trouble
	for what := range s.trouble {
		if what.kind == troubleAction && !tracked[what.tree] {
			gone = append(gone, what)
		}
	}
	s.mu.Unlock()
	for _, what := range gone {
		s.fail(what, "")
	}
}

// commit keeps one tree after an act, where it changed (spec 001: every significant
// action results in a git commit). It is kept first, and then recorded, as a crossing
// of Holdfast's own with what it is: once it is kept nothing cuts the record, for the
// next look would find nothing that changed.
func (s *Service) commit(ctx context.Context, t snapshot.Tree, a kernel.Acting) error {
	k, err := s.hand()
	if err != nil {
		return err
	}
	m, err := s.message(ctx, a)
	if err != nil {
		return err
	}
	c, err := k.Commit(ctx, t, m)
	s.tidied(k)
	if err != nil || c == nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if !c.First {
		s.Committed(a, c.Changed)
	}
	at, err := s.position(ctx)
	if err != nil {
		return err
	}
	data := map[string]any{"tree": t.Path, "commit": c.Commit, "content": c.Content, "files": c.Changed, "agent": a.Agent, "for": a.Crossing, "ledger": at.Size}
	return s.keep(ctx, ownAct{boundary: snapshotCommit, event: eventKept, who: keeperAgent, payload: data,
		do: func(context.Context) (string, map[string]any, error) { return a.Crossing, data, nil }})
}

func (s *Service) message(ctx context.Context, a kernel.Acting) (snapshot.Message, error) {
	at, err := s.position(ctx)
	return snapshot.Message{Agent: a.Agent, Action: a.Boundary, Crossing: a.Crossing, Session: a.Session, At: time.Now(), Ledger: at.Size}, err
}

// Before implements kernel.Versions: the trees of the agent are kept as they are
// before the act, and put back if it fails (spec 001, "ON ERROR").
func (s *Service) Before(ctx context.Context, a kernel.Acting) (func(context.Context, bool) (string, error), error) {
	trees := s.current().TreesOf(a.Agent)
	if len(trees) == 0 {
		return nil, fmt.Errorf("no work tree of %s is tracked", excerpt.Word(a.Agent))
	}
	k, err := s.hand()
	if err != nil {
		return nil, err
	}
	m, err := s.message(ctx, a)
	if err != nil {
		return nil, err
	}
	var list []*snapshot.Mark
	for _, t := range trees {
		mark, err := k.Mark(ctx, t, m)
		s.tidied(k)
		if err != nil {
			forget(list)
			return nil, err
		}
		list = append(list, mark)
	}
	return func(ctx context.Context, failed bool) (string, error) {
		defer forget(list)
		if !failed {
			return "", nil
		}
		return s.putBack(ctx, a, list)
	}, nil
}

func forget(list []*snapshot.Mark) {
	for _, m := range list {
		m.Forget()
	}
}

// putBack puts trees back after an act failed, and says what became of them.
func (s *Service) putBack(ctx context.Context, a kernel.Acting, list []*snapshot.Mark) (string, error) {
	n, went, failed, where := 0, []string(nil), []error(nil), "before it"
	for _, m := range list {
		g := goBack{tree: m.Tree(), to: m.Target(), mark: m}
		r, err := s.back(ctx, g, keeperAgent, a.Crossing, map[string]any{"for": a.Crossing, "agent": a.Agent, "why": "on_error: rollback"})
		if err != nil {
			failed = append(failed, fmt.Errorf("%s did not go back: %w", g.tree.Path, err))
			continue
		}
		went = append(went, g.tree.Path)
		n += r.Removed + r.Written
		if r.To.From != snapshot.BeforeIt+a.Crossing {
			where = "before it, or to what was put back since"
		}
	}
	if len(failed) > 0 {
		if len(went) > 0 { // the kernel tells of the error alone
			failed = append(failed, fmt.Errorf("these went back: %s", strings.Join(went, ", ")))
		}
		return "", errors.Join(failed...)
	}
	if n == 0 {
		return "nothing in its work tree had changed", nil
	}
	return fmt.Sprintf("its work tree was rolled back to %s (%d names)", where, n), nil
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// wait is a place for one answer of the server, for a request in flight.
type wait struct {
	id   string
	ch   chan answer
	f    *flight
	line *queued // nil where the line cannot be taken back
}

// expect gives the id of the next request to the server.
func (s *session) expect(f *flight) (wait, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return wait{}, s.gone
	}
	s.last++
	w := wait{id: strconv.FormatUint(s.last, 10), ch: make(chan answer, 1), f: f}
	s.waits[w.id] = w
	return w, nil
}

// deliver hands an answer to whoever waits for it, and says whether anybody
// did. The second answer to one id finds nobody.
func (s *session) deliver(id []byte, a answer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.waits[string(id)]
	if ok {
		delete(s.waits, string(id))
		w.f.held += len(a.Raw)
		s.held += len(a.Raw)
		s.load.AddAnswer(len(a.Raw))
		w.ch <- a
	}
	return ok
}

// given says whether an id was ever ours.
func (s *session) given(id []byte) bool {
	n, err := strconv.ParseUint(string(id), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && n > 0 && n <= s.last
}

func (s *session) forget(w wait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, w.id)
}

// errUnsent is in the chain of an error where the line never left for the
// server, so that nothing has been done.
var errUnsent error = unsent{}

type unsent struct{}

func (unsent) Error() string { return "the MCP server has not been asked" }

// Is makes it one of what never began.
func (unsent) Is(target error) bool { return target == holdfast.ErrNotStarted }

// await waits for the answer. Where ctx ends first, a line that still waits is
// taken back; else the server is told, and what it still answers is dropped.
func (s *session) await(ctx context.Context, w wait) (mcp.Message, error) {
	defer s.forget(w)
	select {
	case a := <-w.ch:
		if !s.toServer.withdraw(w.line) {
			return a.Message, a.err
		}
		if a.err == nil {
			a.err = errors.New("the MCP server answered before it was asked")
		}
		return mcp.Message{}, fmt.Errorf("%w: %w", a.err, errUnsent)
	case <-ctx.Done():
		if s.toServer.withdraw(w.line) {
			return mcp.Message{}, fmt.Errorf("%w: %w", context.Cause(ctx), errUnsent)
		}
		s.toServer.urge("", []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+
			w.id+`,"reason":"cancelled by holdfast"}}`))
		return mcp.Message{}, context.Cause(ctx)
	}
}

// ask sends a request under an id of ours, and waits.
func (s *session) ask(ctx context.Context, f *flight, m mcp.Message) (mcp.Message, error) {
	w, err := s.expect(f)
	if err != nil {
		return mcp.Message{}, fmt.Errorf("%w: %w", err, errUnsent)
	}
	m.ID = []byte(w.id)
	if w.line, err = s.toServer.put(ctx, "", m.Line()); err != nil {
		s.forget(w)
		return mcp.Message{}, fmt.Errorf("%w: %w", err, errUnsent)
	}
	return s.await(ctx, w)
}

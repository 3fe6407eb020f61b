package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// How long the end of a session waits for each thing.
const (
	flushFor = 250 * time.Millisecond // what is queued for a peer
	closeFor = time.Second            // a client that was closed, to notice
	drainFor = 5 * time.Second        // answers, after the server went
	exitFor  = time.Second            // the server's exit status
)

// maxPings bounds the server's questions that wait for the client's answer.
const maxPings = 16

// Reasons why a request's context ends.
var (
	errCanceled = errors.New("the client cancelled the request")
	errGone     = errors.New("the client is gone")
)

// session is one client at one server.
type session struct {
	Config
	client   io.ReadWriter
	server   Conn
	toClient *outbox
	toServer *outbox
	tools    tools
	noise    atomic.Uint64 // peers' faults so far
	work     sync.WaitGroup
	// greeted is set when the server has answered a handshake.
	greeted atomic.Bool

	mu sync.Mutex
	// flights are the client's requests without an answer, by id key.
	flights map[string]*flight
	// asked is how many bytes the requests in flight have, and held how
	// many the answers have that are not yet on their way to the client.
	asked, held int
	// released is closed and replaced whenever held shrinks.
	released chan struct{}
	// waits are our requests to the server, by the id we gave.
	waits map[string]wait
	last  uint64 // the last id we gave; none is given twice
	pings map[string]bool
	gone  error // why the server will not answer any more
}

// Bounds of what the requests in flight and their answers keep, in bytes; one
// of each may be larger than what is left.
const (
	maxAsked = 64 << 20
	maxHeld  = 32 << 20
)

// flight is one request of the client. asked and held are its parts of the
// session's.
type flight struct {
	key         string
	cancel      context.CancelCauseFunc
	asked, held int
	// token is the call's progress token, or nil.
	token []byte
}

// answer is what the server said to a request of ours.
type answer struct {
	mcp.Message
	err error
}

func newSession(client io.ReadWriter, server Conn, c Config) *session {
	return &session{Config: c, client: client, server: server,
		toClient: newOutbox(), toServer: newOutbox(), tools: newTools(),
		flights: map[string]*flight{}, waits: map[string]wait{}, pings: map[string]bool{},
		released: make(chan struct{})}
}

// ending is why a session is over.
type ending struct {
	err    error
	server bool // the server went first
}

// run works until the first of the four streams ends, then puts everything
// away in the order in which it can still do its work.
func (s *session) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	ends := make(chan ending, 4)
	readClient := s.start(ends, false, func() error { return s.fromClient(ctx) })
	writeClient := s.start(ends, false, func() error { return s.toClient.run(s.client) })
	readServer := s.start(ends, true, func() error { return s.fromServer(ctx) })
	writeServer := s.start(ends, true, func() error { return s.toServer.run(s.server) })

	var why ending
	select {
	case why = <-ends:
	case <-parent.Done():
	}
	if parent.Err() != nil {
		why = ending{}
	}
	if why.server {
		why.err = s.serverWent(why.err)
		s.settle(drainFor)
		s.toClient.end(false)
		within(flushFor, writeClient)
	}
	cancel(errGone)
	s.toClient.end(true)
	s.refuseNew()
	s.work.Wait()
	s.toServer.end(false)
	within(flushFor, writeServer)
	closed := s.server.Close()
	s.toServer.end(true)
	<-readServer
	<-writeServer
	s.closeClient(readClient, writeClient)
	return errors.Join(why.err, closed)
}

// start runs f and reports its end twice: to ends, and by closing the channel.
func (s *session) start(ends chan<- ending, server bool, f func() error) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := f()
		if hungUp(err) {
			err = nil
		}
		ends <- ending{err, server}
	}()
	return done
}

// hungUp says whether an error is only a peer that went.
func hungUp(err error) bool {
	for _, e := range []error{io.EOF, io.ErrClosedPipe, os.ErrClosed, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET, errClosed, errGone} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// serverWent fails everything that waits for the server.
func (s *session) serverWent(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), exitFor)
	defer cancel()
	err := fmt.Errorf("%w", ErrServerEnded)
	if exit := s.server.Exit(ctx); exit != nil && !errors.Is(exit, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", ErrServerEnded, exit)
	} else if cause != nil {
		err = fmt.Errorf("%w: %w", ErrServerEnded, cause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = err
	for id, w := range s.waits {
		w.ch <- answer{err: err}
		delete(s.waits, id)
	}
	return err
}

// settle waits until the requests in flight have answered, at most for d.
func (s *session) settle(d time.Duration) {
	done := make(chan struct{})
	s.refuseNew()
	go func() { s.work.Wait(); close(done) }()
	within(d, done)
}

// refuseNew makes begin refuse, so that work only shrinks.
func (s *session) refuseNew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone == nil {
		s.gone = errGone
	}
}

func (s *session) closeClient(done ...<-chan struct{}) {
	c, ok := s.client.(io.Closer)
	if !ok {
		return
	}
	if err := c.Close(); err != nil {
		s.Log.Debug("close the MCP client", "err", err)
	}
	for _, d := range done {
		within(closeFor, d)
	}
}

func within(d time.Duration, done <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// odd logs what a peer did wrong, each time the count doubles: a peer that
// never stops cannot fill the log.
func (s *session) odd(what string, attrs ...any) {
	if n := s.noise.Add(1); bits.OnesCount64(n) == 1 || n <= 16 {
		s.Log.Log(context.Background(), slog.LevelWarn, what, append(attrs, "mcp_server", s.Server, "faults", n)...)
	}
}

// begin makes a request of the client one in flight, or says why not. Where it
// returns no error, finish must be called.
func (s *session) begin(ctx context.Context, m mcp.Message) (context.Context, *flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := m.Key()
	switch {
	case s.gone != nil:
		return nil, nil, s.gone
	case s.flights[key] != nil:
		return nil, nil, fmt.Errorf("id %s is already in flight", m.ID)
	case len(s.flights) >= s.MaxInFlight:
		return nil, nil, fmt.Errorf("busy: %d requests are in flight", s.MaxInFlight)
	case len(s.flights) > 0 && s.asked+len(m.Raw) > maxAsked:
		return nil, nil, fmt.Errorf("busy: the requests in flight have %d bytes", s.asked)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{key: key, cancel: cancel, asked: len(m.Raw)}
	s.flights[key] = f
	s.asked += f.asked
	s.work.Add(1)
	return ctx, f, nil
}

func (s *session) finish(f *flight) {
	s.letGo(f)
	s.mu.Lock()
	delete(s.flights, f.key)
	s.asked -= f.asked
	s.mu.Unlock()
	f.cancel(nil)
	s.work.Done()
}

// letGo says that a request does not keep its answers any more.
func (s *session) letGo(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.held == 0 {
		return
	}
	s.held -= f.held
	f.held = 0
	close(s.released)
	s.released = make(chan struct{})
}

// room waits until the answers that are kept leave room for one more, so that
// a client that does not read slows the server down and fills no memory.
func (s *session) room(ctx context.Context) error {
	for {
		s.mu.Lock()
		full, released := s.held > maxHeld, s.released
		s.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

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
var errUnsent = errors.New("the MCP server has not been asked")

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
		s.toServer.offer([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` +
			w.id + `,"reason":"cancelled by holdfast"}}`))
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
	if w.line, err = s.toServer.put(ctx, m.Line()); err != nil {
		s.forget(w)
		return mcp.Message{}, fmt.Errorf("%w: %w", err, errUnsent)
	}
	return s.await(ctx, w)
}

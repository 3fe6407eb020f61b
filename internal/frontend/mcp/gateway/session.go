package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// How long the end of a session waits for each thing.
const (
	flushFor = 250 * time.Millisecond // what is queued for a peer
	closeFor = time.Second            // a client that was closed, to notice
	drainFor = 5 * time.Second        // answers, after the server went
	exitFor  = time.Second            // the server's exit status
)

// Reasons why a request's context ends.
var (
	errCanceled = errors.New("the client cancelled the request")
	// ErrClientGone ends the contexts of a client's requests.
	ErrClientGone = errors.New("the client is gone")
)

// session is one client at one server.
type session struct {
	Config
	client   Client
	load     Load
	server   Conn
	toClient *outbox
	toServer *outbox
	tools    tools
	subs     subscribed
	faults   mcp.FaultCounter
	work     sync.WaitGroup
	// greeted is set when the server has answered a handshake.
	greeted atomic.Bool
	// introduced is set when the kernel knows of the methods.
	introduced atomic.Bool

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
	// tokens are the flights by the progress token that the server has.
	tokens    map[string]*flight
	lastToken uint64
	// listens are the subscriptions, by the key of the id that the server
	// knows them by.
	listens map[string]*flight
	// questions are the server's that wait for the client, by their key;
	// asks are our requests to the client, by the key of our id.
	questions map[string]context.CancelCauseFunc
	asks      map[string]chan mcp.Message
	lastAsk   uint64
	// handshaken says that the client has a session, and clientCan what it
	// said in its handshake that it can be asked.
	handshaken bool
	clientCan  abilities
	// muted says that something was withheld in this session, and seen what
	// the client was shown of the server's own before.
	muted bool
	seen  map[[32]byte]bool
	gone  error // why the server will not answer any more
	// broken says that something of the session's panicked.
	broken chan error
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
	// id is the client's, and crossing says that the request is one.
	id       []byte
	crossing bool
	// token is the call's progress token, or nil; theirs is the one that
	// the server has for it, or "".
	token  []byte
	theirs string
	// waited counts how often the client was told that the call waits.
	waited int
	// reached is the most that the server's progress said of it, and counted
	// how far the gateway's own count is.
	reached, counted float64
	// quiet says that what comes out of the call may be withheld.
	quiet bool
	// sub is what a subscription asks for.
	sub *subscription
}

// answer is what the server said to a request of ours.
type answer struct {
	mcp.Message
	err error
}

func newSession(client Client, server Conn, c Config) *session {
	return &session{Config: c, client: client, load: LoadOf(client), server: server,
		toClient: newOutbox(promptClient(client)), toServer: newOutbox(promptly(server)), tools: newTools(),
		flights: map[string]*flight{}, waits: map[string]wait{}, tokens: map[string]*flight{}, listens: map[string]*flight{},
		questions: map[string]context.CancelCauseFunc{}, asks: map[string]chan mcp.Message{}, released: make(chan struct{}), seen: map[[32]byte]bool{},
		broken: make(chan error, 1)}
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
	writeClient := s.start(ends, false, func() error { return s.toClient.run(s.client.Write) })
	readServer := s.start(ends, true, func() error { return s.fromServer(ctx) })
	writeServer := s.start(ends, true, func() error { return s.toServer.run(s.tellServer) })
	if s.Swapped != nil {
		swapped := s.Swapped()
		s.spawn(func() { s.relist(ctx, swapped) })
	}

	var why ending
	select {
	case why = <-ends:
	case why.err = <-s.broken:
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
	cancel(ErrClientGone)
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
		err := mcp.Guard(s.Panicked, f)
		if IsHangUp(err) {
			err = nil
		}
		ends <- ending{err, server}
	}()
	return done
}

// IsHangUp reports whether an error only means that a peer went.
func IsHangUp(err error) bool {
	for _, e := range []error{
		io.EOF, io.ErrClosedPipe, os.ErrClosed, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET,
		ErrPeerGone, ErrClientGone,
	} {
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
	s.spawn(func() { s.work.Wait(); close(done) })
	within(d, done)
}

// refuseNew makes begin refuse, so that work only shrinks.
func (s *session) refuseNew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone == nil {
		s.gone = ErrClientGone
	}
}

func (s *session) closeClient(done ...<-chan struct{}) {
	err := s.client.Close()
	if errors.Is(err, ErrNotCloser) {
		return
	}
	if err != nil {
		s.Log.Debug("close the MCP client", "err", err)
	}
	for _, d := range done {
		within(closeFor, d)
	}
}

// tellServer writes one line to the server.
func (s *session) tellServer(_ string, line []byte) error {
	_, err := s.server.Write(append(line, '\n'))
	return err
}

func within(d time.Duration, done <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// odd logs what a peer did wrong, as mcp.FaultCounter says.
func (s *session) odd(what string, attrs ...any) {
	if n, logged := s.faults.Add(); logged {
		s.Log.Log(context.Background(), slog.LevelWarn, what, append(attrs, "mcp_server", s.Server, "faults", n)...)
	}
}

// begin makes a request of the client one in flight, or says why not; crossing
// says that it is to be one. Where it
// returns no error, finish must be called.
func (s *session) begin(ctx context.Context, m mcp.Message, crossing bool) (context.Context, *flight, error) {
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
	if err := s.load.AddRequest(len(m.Raw)); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{key: key, id: m.ID, crossing: crossing, cancel: cancel, asked: len(m.Raw)}
	s.flights[key] = f
	s.asked += f.asked
	s.work.Add(1)
	return ctx, f, nil
}

func (s *session) finish(f *flight) {
	s.letGo(f)
	s.land(f)
	f.cancel(nil)
	s.work.Done()
}

// land says that a request is in flight no more.
func (s *session) land(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[f.key] != f {
		return
	}
	delete(s.flights, f.key)
	delete(s.tokens, f.theirs)
	s.asked -= f.asked
	s.load.RemoveRequest(f.asked)
}

// letGo says that a request does not keep its answers any more.
func (s *session) letGo(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.held == 0 {
		return
	}
	s.held -= f.held
	s.load.AddAnswer(-f.held)
	f.held = 0
	close(s.released)
	s.released = make(chan struct{})
}

// room waits until the answers that are kept, here and for the others that the
// load is shared with, leave room for one more, so that
// a client that does not read slows the server down and fills no memory.
func (s *session) room(ctx context.Context) error {
	for {
		s.mu.Lock()
		full, released := s.held > maxHeld, s.released
		s.mu.Unlock()
		others := s.load.Full()
		if !full && others == nil {
			return nil
		}
		if !full {
			released = nil
		} else {
			others = nil
		}
		select {
		case <-released:
		case <-others:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

package streamable

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// Bounds of what waits for readers, in bytes: of one exchange, of one client,
// of all. In an exchange one line of any size may wait alone. A reader that
// falls behind is cut off.
const (
	maxBuffered = 16 << 20
	maxClient   = 64 << 20
	maxFront    = 512 << 20
)

// meter counts bytes of which there may be only so many, here and in what this
// is a part of.
type meter struct {
	n, most int64
	mu      sync.Mutex
	whole   *meter // nil at the top
}

// take counts n more, if there is room for them.
func (m *meter) take(n int) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n+int64(n) > m.most || !m.whole.take(n) {
		return false
	}
	m.n += int64(n)
	return true
}

func (m *meter) give(n int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n -= int64(n)
	m.whole.give(n)
}

// event is one line for the client.
type event struct {
	line  []byte
	final bool // an answer
}

// exchange is the answer to one HTTP request, as far as it has been said. A
// core writes to it and never waits; one goroutine, the request's own, sends.
type exchange struct {
	wake  chan struct{}
	meter *meter

	mu     sync.Mutex
	events []event
	bytes  int  // of events, and of those being sent
	over   bool // nothing more comes
	cut    bool // its reader fell behind
	// waiting is how many of its requests have no answer yet.
	waiting int
}

func newExchange(m *meter) *exchange { return &exchange{wake: make(chan struct{}, 1), meter: m} }

// await says that one more answer will come.
func (x *exchange) await() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waiting++
}

// put adds a line. After the answer to its last request an exchange is over.
func (x *exchange) put(e event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	defer x.signal()
	if (x.bytes > 0 && x.bytes+len(e.line) > maxBuffered) || !x.meter.take(len(e.line)) {
		x.over, x.cut, x.events = true, true, nil
		return
	}
	x.events = append(x.events, e)
	x.bytes += len(e.line)
	if e.final {
		x.waiting--
		x.over = x.waiting == 0
	}
}

// abandon answers a request that no core will answer any more.
func (x *exchange) abandon(a *asked) {
	x.put(event{line: mcp.Failure(a.id, errorcode.Refused, errEnded.Error(),
		"whether the call took effect is not known"), final: true})
}

// finish says that nothing more comes.
func (x *exchange) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	x.signal()
}

func (x *exchange) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be sent now, and whether it is the end. What it
// returns stays counted until sent.
func (x *exchange) take() (events []event, over, cut bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	events, x.events = x.events, nil
	return events, x.over, x.cut
}

func (x *exchange) sent(e event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bytes -= len(e.line)
	x.meter.give(len(e.line))
}

// discard ends an exchange that nobody sends any more.
func (x *exchange) discard() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over, x.events = true, nil
	x.meter.give(x.bytes)
	x.bytes = 0
}

// sender writes one exchange to the client: as an event stream, or as one JSON
// value where the protocol gives an error a status of its own.
type sender struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	pace  pace
	life  context.Context // of the front
	guard func(func())    // of the front
	// status returns the HTTP status that an answer demands, 0 for none;
	// nil means none.
	status func(answer []byte) int
	// retry says that the stream begins by telling how soon a client may
	// come back, as the protocols with streams of their own have it.
	retry bool
	// head is called before the first byte of a stream, and told after each
	// event; nil means neither.
	head    func(first event, header http.Header)
	told    func(event)
	begun   bool
	refused bool // an answer took a status
}

func (g *guest) sender() *sender {
	return &sender{w: g.w, rc: http.NewResponseController(g.w), pace: g.h.pace, life: g.h.life, guard: g.h.guard}
}

// send writes what the exchange gets until it is over or gone closes. It says
// whether the exchange came to its end; else its reader has gone.
func (s *sender) send(x *exchange, gone <-chan struct{}) bool {
	beat := time.NewTicker(s.pace.beat)
	defer beat.Stop()
	// A deadline would outlive the request on its connection.
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }()
	defer s.hurry()()
	for {
		events, over, cut := x.take()
		for _, e := range events {
			if s.event(e) != nil {
				return false
			}
			x.sent(e)
			if s.told != nil {
				s.told(e)
			}
		}
		switch {
		case cut:
			return false
		case len(events) > 0 && s.flush() != nil:
			return false
		case over:
			return true
		}
		select {
		case <-x.wake:
		case <-beat.C:
			if s.alive() != nil {
				return false
			}
		case <-gone:
			return false
		}
	}
}

// event writes one line.
func (s *sender) event(e event) error {
	s.deadline()
	if !s.begun && e.final && s.status != nil {
		if status := s.status(e.line); status != 0 {
			s.begun, s.refused = true, true
			writeJSON(s.w, status, e.line)
			return nil
		}
	}
	s.begin(e)
	_, err := s.w.Write(bytes.Join([][]byte{[]byte("event: message\ndata: "), e.line, []byte("\n\n")}, nil))
	return err
}

// begin writes the header of a stream, once.
func (s *sender) begin(first event) {
	if s.begun {
		return
	}
	s.begun = true
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	if s.head != nil {
		s.head(first, header)
	}
	s.w.WriteHeader(http.StatusOK)
	if s.retry {
		// What cannot be written is noticed with the event.
		_, _ = s.w.Write([]byte("retry: 1000\n\n"))
	}
}

// alive writes a comment, which clients pass over: proxies see that the stream
// lives, and we see whether its reader does.
func (s *sender) alive() error {
	if s.refused {
		return nil
	}
	s.deadline()
	s.begin(event{})
	if _, err := s.w.Write([]byte(": \n\n")); err != nil {
		return err
	}
	return s.flush()
}

func (s *sender) deadline() {
	patience := s.pace.write
	if s.life.Err() != nil {
		patience = min(patience, endFor)
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(patience))
}

// hurry shortens a write that is under way when the front ends. What it
// returns must be called before the request is over.
func (s *sender) hurry() (stop func()) {
	done := make(chan struct{})
	stopped := context.AfterFunc(s.life, func() { s.guard(s.deadline); close(done) })
	return func() {
		if !stopped() {
			<-done
		}
	}
}

func (s *sender) flush() error {
	s.deadline()
	return s.rc.Flush()
}

// demanded is the HTTP status of an answer in 2026-07-28, 0 for one that goes
// into a stream.
func demanded(answer []byte) int {
	// Large results are not looked through: an error's place is behind the id.
	if !bytes.Contains(answer[:min(len(answer), mcp.MaxID+len(envelopeHead)+16)], []byte(`"error":`)) {
		return 0
	}
	failed := mcp.Get(answer, "error")
	switch string(mcp.Get(failed, "code")) {
	case "-32601":
		return http.StatusNotFound
	case "-32602", "-32600", "-32700", "-32020", "-32021", "-32022":
		return http.StatusBadRequest
	}
	return 0
}

package api

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// The sockets of a workspace's network are made inside it, and served by the
// owner. Whoever runs the workspace hands them over on a connection of its own,
// which brings the ticket that the run's terms gave him: one ticket for one run,
// good for one time and as long as the run lasts. Whom they speak for is decided
// by the run's crossing, and by nothing that comes with them.

// Network serves what programs of workspaces say to the world.
type Network interface {
	// Terms are what a workspace's network is made with. The error says why there
	// is none now.
	Terms() (sandbox.Network, error)
	// Serve serves the sockets of one run in the name of who until ctx ends, and
	// returns when nothing of it is served any more. It closes them. The error is
	// why it could not, or no longer.
	Serve(ctx context.Context, who Runner, sockets Sockets) error
}

// Runner is whom the sockets of a run speak for.
type Runner struct {
	// Token is a token of the run's agent, one that lasts each time.
	Token func() (holdfast.Secret, error)
	// Correlation is that of the run's crossing, a UUIDv4.
	Correlation string
	// Run names the run.
	Run string
	// Note takes what was replaced in one of its requests to a model, and restored in the answer.
	Note func(holdfast.Placeholders)
}

// Sockets are those of one workspace, each made in a network that has a loopback
// and nothing else.
type Sockets struct {
	// Proxy is where programs come that know of a proxy.
	Proxy net.Listener
	// Meant are where those come that believe to speak with whom they meant: a
	// connection's own address is the one that was meant.
	Meant []net.Listener
	// Names is where they ask for names.
	Names net.PacketConn
}

// Close closes them.
func (s Sockets) Close() error {
	var err error
	if s.Proxy != nil {
		err = s.Proxy.Close()
	}
	for _, l := range s.Meant {
		err = errors.Join(err, l.Close())
	}
	if s.Names != nil {
		err = errors.Join(err, s.Names.Close())
	}
	return err
}

// The networks that a caller may ask for; empty is the proxy's where the owner
// has one.
const (
	NetworkNone  = "none"
	NetworkProxy = "proxy"
)

// network says what network a run gets; nil is none, and why says what kept the
// owner from giving it the one that it has.
func (s *Server) network(asked string) (n *sandbox.Network, why string, err error) {
	switch asked {
	case NetworkNone:
		return nil, "", nil
	case "", NetworkProxy:
	default:
		return nil, "", &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("there is no network %.40q", asked), Hint: "ask for none or proxy"}
	}
	if s.Network == nil {
		err = &holdfast.Error{Kind: holdfast.KindUsage, Why: "the daemon has no way out to offer", Hint: "`egress:` in the configuration says which domains may be reached"}
	} else {
		var terms sandbox.Network
		if terms, err = s.Network.Terms(); err == nil {
			return &terms, "", nil
		}
	}
	if asked == NetworkProxy {
		return nil, "", err
	}
	if s.Network != nil {
		why = s.failure(err).Why
	}
	return nil, why, nil
}

// handovers are the runs whose sockets have not come yet, by ticket. Its zero
// value is none.
type handovers struct {
	mu   sync.Mutex
	open map[string]*handover // guarded by mu
}

// handover is one run that waits for its sockets, and then what serves them.
type handover struct {
	s      *Server
	who    Runner
	ticket string

	mu    sync.Mutex
	over  bool          // the run has ended; guarded by mu, as all below
	ended bool          // and so has what serves it
	files []*os.File    // what was handed over, of which others have copies
	stop  func()        // ends what serves
	done  chan struct{} // closed when nothing is served
}

// expect opens a handover for a run that is under way. The caller ends it.
func (s *Server) expect(who Runner) *handover {
	h := &handover{s: s, who: who, ticket: rand.Text()}
	s.handovers.mu.Lock()
	defer s.handovers.mu.Unlock()
	if s.handovers.open == nil {
		s.handovers.open = map[string]*handover{}
	}
	s.handovers.open[h.ticket] = h
	return h
}

// take takes a ticket, which is then used up.
func (o *handovers) take(ticket string) *handover {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.open[ticket]
	delete(o.open, ticket)
	return h
}

// serve begins to serve what was handed over. It owns files.
func (h *handover) serve(files []*os.File) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	sockets, err := sortSockets(files)
	if err == nil && h.over {
		err = errors.Join(&holdfast.Error{Kind: holdfast.KindCanceled, Why: "the run has ended"}, sockets.Close())
	}
	if err != nil {
		closeFiles(files)
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	h.files, h.stop, h.done = files, stop, make(chan struct{})
	go func() {
		defer close(h.done)
		if err := h.s.Network.Serve(ctx, h.who, sockets); err != nil && ctx.Err() == nil {
			h.s.Log.Error("a workspace's network is served no longer", "run", h.who.Run, "err", err)
		}
		_ = sockets.Close() // most of them are closed already
	}()
	return nil
}

// serveEnds is how long what serves a run may take to end.
const serveEnds = 5 * time.Second

// end ends the handover with its run: nothing is served any more, and the sockets
// are dead for everybody who has a copy.
func (h *handover) end() {
	h.s.handovers.take(h.ticket)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over = true; h.done == nil || h.ended {
		return
	}
	h.ended = true
	h.stop()
	for _, f := range h.files {
		shut(f)
	}
	closeFiles(h.files)
	select {
	case <-h.done:
	case <-time.After(serveEnds):
		h.s.Log.Error("what serves a workspace's network does not end", "run", h.who.Run)
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

const (
	upgradeSockets = "holdfast-sockets"
	ticketHeader   = "Holdfast-Ticket"
	// maxSockets bounds what is handed over at once: the proxy's, that of names,
	// and those that a sandbox.Network can have.
	maxSockets = 68
)

// takeSockets takes the sockets of a run over.
func (s *Server) takeSockets(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != upgradeSockets {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "sockets are handed over by `holdfast run`"})
		return
	}
	h := s.handovers.take(r.Header.Get(ticketHeader))
	if h == nil {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindPermission, Why: "no run that is under way waits for these sockets"})
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "sockets need a connection of their own: a daemon"})
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askWithin))
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+upgradeSockets+"\r\n\r\n"); err != nil {
		return
	}
	err = errors.New("it spoke before it was asked to")
	if buf.Reader.Buffered() == 0 {
		var files []*os.File
		if files, err = receiveFiles(conn); err == nil {
			err = h.serve(files)
		}
	}
	word := RunWord{}
	if err != nil {
		s.logInner(err)
		word.Stop = s.failure(err)
	}
	_ = newLines(conn, buf.Reader).write(word)
}

// HandOver gives the owner the sockets of a run's network, which are the caller's
// still. It is done before the program starts.
func (c *Client) HandOver(ctx context.Context, terms RunTerms, sockets []*os.File) error {
	if c.dial == nil {
		return errors.New("a network needs a daemon")
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	req := "POST /v1/run/sockets HTTP/1.1\r\nHost: holdfast\r\nConnection: Upgrade\r\nUpgrade: " + upgradeSockets + "\r\n" + ticketHeader + ": " + terms.Ticket + "\r\nContent-Length: 0\r\n\r\n"
	if _, err := io.WriteString(conn, req); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, &http.Request{Method: "POST"})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return refusedUpgrade(resp)
	}
	if err := sendFiles(conn, sockets); err != nil {
		return err
	}
	var word RunWord
	if err := newLines(conn, in).read(&word); err != nil {
		return lostOwner(err)
	}
	return word.Stop.Err()
}

// refusedUpgrade is why a connection was not taken over.
func refusedUpgrade(resp *http.Response) error {
	var a Answer
	_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&a)
	if a.Failure != nil {
		return a.Failure.Err()
	}
	return errors.New("the owner answered " + resp.Status + ": it is of another version, perhaps; end it and try again")
}

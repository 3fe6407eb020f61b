package egress

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/hangup"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/sentinel"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
)

// Explicit serves a proxy port on l for who: CONNECT and absolute-form
// requests over HTTP/1. It blocks until l or the proxy is closed; then it cuts
// the connections, waits for the entries of their crossings, and returns nil.
func (p *Proxy) Explicit(l net.Listener, who Caller) error { return p.serve(l, who, proxied) }

// Transparent serves connections on l whose clients believe that they reached
// the server itself: TLS by its name, or HTTP/1 by its Host; the first byte
// tells which. The server's port is the connection's local port, or what its
// OriginalPort method says, where it has one. It blocks as Explicit does.
func (p *Proxy) Transparent(l net.Listener, who Caller) error {
	return p.serve(l, who, transparent)
}

// via is how a client came to the proxy.
type via uint8

const (
	proxied     via = iota // it knows that it speaks to a proxy
	tunnelled              // inside a CONNECT
	transparent            // it believes that it speaks to the server
	gateway                // it takes Holdfast for the server
)

// seat is one listener with its connections.
type seat struct {
	p   *Proxy
	who Caller
	via via
	// feed is the connections that are ready for HTTP: net/http takes them
	// from there.
	feed chan net.Conn
	srv  *http.Server
	// room has a place for each connection, spare for each that is told that
	// there is none.
	room, spare chan struct{}
	addr        net.Addr
	own         *owner
	// away is how many were turned away and the kernel was not told of.
	away atomic.Int64
	// ending is closed when nothing new is begun.
	ending chan struct{}

	mu    sync.Mutex
	over  bool                // guarded by mu
	conns map[*entry]struct{} // guarded by mu
	busy  sync.WaitGroup      // connections before HTTP, and crossings
}

// errClosed is the error of a listener that begins when its proxy is closed.
var errClosed = errors.New("egress: the proxy is closed")

// crowdedAnswers is how many clients at a time are told that there is no room;
// more are cut without a word.
const crowdedAnswers = 16

func (p *Proxy) serve(l net.Listener, who Caller, v via) error {
	if who.Token == nil {
		return errors.Join(errors.New("egress: nobody speaks through this listener"), l.Close())
	}
	s := &seat{p: p, who: who, via: v, feed: make(chan net.Conn), addr: l.Addr(), ending: make(chan struct{}),
		room: make(chan struct{}, p.cfg.MaxConns), spare: make(chan struct{}, crowdedAnswers), conns: map[*entry]struct{}{}}
	var gone func()
	s.own, gone = p.owned(who)
	defer gone()
	s.srv = s.server()
	leave, err := p.opened(func() { l.Close() })
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer leave()
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.srv.Serve(s)
	}()
	err = s.accept(l)
	s.end()
	<-served
	s.busy.Wait()
	s.tellAway() // of those who came while it ended
	return err
}

// server speaks HTTP on what is fed to it. HTTP/2 comes over TLS, by ALPN.
func (s *seat) server() *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	limits := s.p.cfg.Limits
	return &http.Server{
		Handler: s, Protocols: &protocols, ConnContext: withChannel, DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: limits.Header, IdleTimeout: limits.Idle, MaxHeaderBytes: wire.MaxHead + 4<<10,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: 100, MaxDecoderHeaderTableSize: 4096},
		ErrorLog: slog.NewLogLogger(s.p.log.Handler(), slog.LevelDebug),
	}
}

// Resolve answers DNS over UDP on pc, until it or the proxy is closed: every name
// has the one address at which connections reach the proxy.
func (p *Proxy) Resolve(pc net.PacketConn) error {
	leave, err := p.opened(func() { pc.Close() })
	if err != nil {
		return errors.Join(err, pc.Close())
	}
	defer leave()
	return sentinel.ServePacket(pc, p.counters.CountName)
}

// ResolveTCP is Resolve over TCP, at most 32 connections at a time.
func (p *Proxy) ResolveTCP(l net.Listener) error {
	leave, err := p.opened(func() { l.Close() })
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer leave()
	return sentinel.ServeTCP(l, p.counters.CountName)
}

// opened keeps what ends a listener, and returns what forgets it.
func (p *Proxy) opened(end func()) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	id := p.next
	p.next++
	p.open[id] = end
	p.working.Add(1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, id)
		p.working.Done()
	}, nil
}

// Close ends every listener, cuts the connections, and waits for the entries of
// their crossings, or for ctx; then its error is ctx's.
func (p *Proxy) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	for _, end := range p.open {
		end()
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.working.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if first {
		p.out.stop()
	}
	return nil
}

// accept takes connections until l is closed.
func (s *seat) accept(l net.Listener) error {
	wait := time.Millisecond
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			var ne net.Error
			if !errors.As(err, &ne) || !ne.Timeout() && wait > time.Second {
				return errors.Join(err, l.Close())
			}
			time.Sleep(wait) // out of descriptors, mostly
			wait *= 2
			continue
		}
		wait = time.Millisecond
		select {
		case s.room <- struct{}{}:
			s.admit(c)
		default:
			s.crowded(c)
		}
	}
}

// admit begins with a connection that has a place.
func (s *seat) admit(c net.Conn) {
	e := &entry{Conn: c, s: s, port: localPort(c)}
	s.p.counters.Open.Add(1)
	s.mu.Lock()
	s.conns[e] = struct{}{}
	s.mu.Unlock()
	if !s.begin(func() {
		ch := &channel{s: s, via: s.via, port: e.port}
		if s.via == proxied {
			s.hand(ch.read(e))
			return
		}
		s.meet(e, ch)
	}) {
		e.Close()
	}
}

// begin runs f beside, unless the seat has ended. end waits for it.
func (s *seat) begin(f func()) bool {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return false
	}
	s.busy.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.busy.Done()
		f()
	}()
	return true
}

// crowded turns a connection away, with a word where it can be said.
func (s *seat) crowded(c net.Conn) {
	s.turnedAway()
	select {
	case s.spare <- struct{}{}:
	default:
		c.Close()
		return
	}
	if !s.begin(func() {
		defer func() { c.Close(); <-s.spare }()
		c.SetDeadline(time.Now().Add(time.Second))
		var b [1]byte
		if n, _ := c.Read(b[:]); n == 0 || b[0] == recordHandshake {
			return // there is no word for it before a handshake
		}
		io.WriteString(c, crowdedAnswer)
		hangup.EndWriting(c)
		io.CopyN(io.Discard, c, wire.MaxHead) // else what it still sends would take the answer away
	}) {
		c.Close()
		<-s.spare
	}
}

const crowdedAnswer = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
	"too many connections of this workspace are open\nhint: close some, or use connections again\n"

// end cuts every connection.
func (s *seat) end() {
	s.mu.Lock()
	s.over = true
	var all []*entry
	for e := range s.conns {
		all = append(all, e)
	}
	s.mu.Unlock()
	close(s.ending)
	for _, e := range all {
		e.Close()
	}
	s.srv.Close()
}

// hand gives a connection to net/http.
func (s *seat) hand(c net.Conn) {
	select {
	case s.feed <- c:
	case <-s.ending:
		c.Close()
	}
}

// Accept, Close and Addr make a seat the listener of its server.
func (s *seat) Accept() (net.Conn, error) {
	select {
	case c := <-s.feed:
		return c, nil
	case <-s.ending:
		return nil, net.ErrClosed
	}
}

// Close is called by net/http; end does the work.
func (s *seat) Close() error { return nil }

// Addr is the listener's.
func (s *seat) Addr() net.Addr { return s.addr }

// entry is a connection as it was accepted. It gives its place back once.
type entry struct {
	net.Conn
	s    *seat
	port uint16
	once sync.Once
}

// Close closes the connection.
func (e *entry) Close() error {
	err := e.Conn.Close()
	e.once.Do(func() {
		e.s.mu.Lock()
		delete(e.s.conns, e)
		e.s.mu.Unlock()
		e.s.p.counters.Open.Add(-1)
		<-e.s.room
	})
	return err
}

// localPort is the port that a connection was made to.
func localPort(c net.Conn) uint16 {
	if o, ok := c.(interface{ OriginalPort() uint16 }); ok {
		return o.OriginalPort()
	}
	if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
		return uint16(a.Port)
	}
	return 0
}

// tokenOf is a fresh token of a caller's.
func (s *seat) tokenOf(who Caller) holdfast.Secret {
	t, err := who.Token()
	if err != nil {
		s.p.log.Error("a workspace's token could not be made", "err", err)
		return holdfast.Secret{} // the kernel refuses it, and records that
	}
	return t
}

// CloseWrite ends what is sent, where the connection can.
func (e *entry) CloseWrite() error { return hangup.EndWriting(e.Conn) }

// SetLinger says what closing means, where the connection can.
func (e *entry) SetLinger(sec int) error { return hangup.SetLinger(e.Conn, sec) }

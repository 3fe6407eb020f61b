package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/destination"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/hangup"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// channel is what is known of a connection before its first request.
type channel struct {
	s   *seat
	via via
	// host is CONNECT's, or the name in the ClientHello; the zero Host where
	// none was said. port is CONNECT's, or the one connected to.
	host domain.Host
	port uint16
	tls  bool
	// misnamed is why every request is refused: the names that were said before
	// the first do not agree.
	misnamed *holdfast.Error
	// blocked is why nothing will be let through where that was known before
	// the first request. It is recorded where none comes.
	blocked *holdfast.Error
	// who and own are the guest's, of a gateway; nil elsewhere.
	who  *Caller
	own  *owner
	wire *wire.Conn // nil over HTTP/2
}

// info describes the server to which the connection leads.
func (ch *channel) info() destination.Server {
	return destination.Server{Host: ch.host, Port: ch.port, TLS: ch.tls, Proxied: ch.via == proxied, Misnamed: ch.misnamed}
}

// read returns c as HTTP/1 is read from it.
func (ch *channel) read(c net.Conn) *wire.Conn {
	ch.wire = wire.New(c, &ch.s.p.pieces, ch)
	return ch.wire
}

type channelKey struct{}

// withChannel is the server's ConnContext.
func withChannel(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *wire.Conn:
		return context.WithValue(ctx, channelKey{}, c.Owner())
	case *tls.Conn:
		if n, ok := c.NetConn().(*named); ok {
			return context.WithValue(ctx, channelKey{}, n.ch)
		}
	}
	return ctx
}

// named is a connection below TLS that knows its channel and shows its cert.
type named struct {
	net.Conn
	ch   *channel
	cert *tls.Certificate
}

// insideTLS is how every named connection is terminated.
func insideTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if n, ok := h.Conn.(*named); ok {
				return n.cert, nil
			}
			return nil, errors.New("no certificate for a connection that nobody named")
		}}
}

// recordHandshake is the first byte of a TLS connection (RFC 8446, 5.1).
const recordHandshake = 22

// extensionECH is encrypted_client_hello (draft-ietf-tls-esni).
const extensionECH = 0xfe0d

// meet looks at the first byte of a connection whose client believes that it
// speaks to a server, and hands it to HTTP, with or without TLS.
func (s *seat) meet(c net.Conn, ch *channel) {
	var first [1]byte
	err := hangup.WithDeadline(c, s.p.cfg.Limits.Header, func() error {
		_, err := io.ReadFull(c, first[:])
		return err
	})
	if err != nil {
		if ch.blocked != nil {
			s.p.refuseUnasked(ch, ch.blocked)
		}
		c.Close() // nothing was asked
		return
	}
	r := wire.NewReplay(c, first[:])
	if first[0] != recordHandshake {
		s.hand(ch.read(r))
		return
	}
	ch.tls = true
	hello, again, err := s.hello(r)
	if err != nil {
		s.p.refuseUnasked(ch, &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Err: err,
			Why: "the TLS ClientHello could not be read", Hint: "speak TLS 1.2 or 1.3"})
		c.Close()
		return
	}
	s.judgeHello(again, ch, hello)
}

// hello reads a ClientHello and returns a connection on which it stands
// unread. crypto/tls puts it together, at most 64 KB in any number of records.
func (s *seat) hello(c net.Conn) (*tls.ClientHelloInfo, net.Conn, error) {
	var info *tls.ClientHelloInfo
	rec := &recording{Conn: c}
	seen := errors.New("seen")
	t := tls.Server(rec, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		info = h
		return nil, seen
	}})
	err := hangup.WithDeadline(c, s.p.cfg.Limits.Header, t.Handshake)
	if info == nil {
		return nil, nil, err
	}
	return info, wire.NewReplay(c, rec.read.Bytes()), nil
}

// recording keeps what was read, and writes nothing: the handshake that reads a
// ClientHello is not the one that answers it.
type recording struct {
	net.Conn
	read bytes.Buffer
}

const maxHello = 80 << 10 // 64 KB, in records

func (r *recording) Read(p []byte) (int, error) {
	if r.read.Len() > maxHello {
		return 0, errors.New("the ClientHello is larger than 64 KB")
	}
	n, err := r.Conn.Read(p)
	r.read.Write(p[:n])
	return n, err
}

func (r *recording) Write(p []byte) (int, error) { return len(p), nil }

// judgeHello holds the name in a ClientHello against what was said before it,
// and terminates the TLS, or tunnels it where the domain is opaque.
func (s *seat) judgeHello(c net.Conn, ch *channel, hello *tls.ClientHelloInfo) {
	host, missing := helloName(hello)
	switch {
	case missing != nil && ch.via == tunnelled && ch.host.IsAddr() && hello.ServerName == "":
		host = ch.host // there are no addresses in a ClientHello (RFC 6066, 3)
	case missing != nil:
		s.p.refuseUnasked(ch, missing)
		c.Close()
		return
	case ch.via == tunnelled && host != ch.host:
		ch.misnamed = destination.Misdirected(fmt.Sprintf("CONNECT named %s, and the TLS inside it names %s", ch.host, host))
	}
	origin := domain.Origin{TLS: true, Host: host, Port: ch.port}
	d, _ := s.p.table().Find(origin)
	if d != nil && d.Inspect == domain.Opaque && ch.misnamed == nil {
		s.opaque(c, ch, d, origin, hello)
		return
	}
	if ch.misnamed == nil {
		ch.host = host
	}
	s.terminate(c, ch, host)
}

// helloName is the one name that a ClientHello asks for.
func helloName(hello *tls.ClientHelloInfo) (domain.Host, *holdfast.Error) {
	if hello.ServerName == "" {
		return domain.Host{}, destination.Misdirected("the TLS ClientHello names no server")
	}
	h, err := domain.ParseHost(hello.ServerName)
	if err != nil || h.IsAddr() {
		return domain.Host{}, destination.Misdirected("the TLS ClientHello names a server by what is no host name")
	}
	return h, nil
}

// terminate answers the handshake with a certificate for host and hands the
// connection to HTTP.
func (s *seat) terminate(c net.Conn, ch *channel, host domain.Host) {
	cert, err := s.p.cfg.Authority.Leaf(host)
	if err != nil {
		s.p.log.Error("a certificate could not be made", "host", host.String(), "err", err)
		c.Close()
		return
	}
	t := tls.Server(&named{c, ch, cert}, s.p.inside)
	if err := hangup.WithDeadline(c, s.p.cfg.Limits.Header, t.Handshake); err != nil {
		s.p.refuseUnasked(ch, s.p.unfinished(ch, err))
		c.Close()
		return
	}
	if t.ConnectionState().NegotiatedProtocol == "h2" {
		s.hand(t)
		return
	}
	s.hand(ch.read(t))
}

// unfinished is why a connection whose handshake was not ended is refused.
func (p *Proxy) unfinished(ch *channel, err error) *holdfast.Error {
	if ch.misnamed != nil {
		return ch.misnamed
	}
	if blocked := p.listed(domain.Origin{TLS: true, Host: ch.host, Port: ch.port}); blocked != nil {
		return blocked
	}
	return &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Err: err, Why: "the client did not end the TLS handshake, and asked nothing",
		Hint: "let it trust the certificate of Holdfast's own authority: `holdfast egress ca` prints it"}
}

// hasECH says whether the name in a ClientHello may not be the one it asks for.
func hasECH(hello *tls.ClientHelloInfo) bool { return slices.Contains(hello.Extensions, extensionECH) }

// ServeHTTP answers one request of the seat's connections.
func (s *seat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ch, ok := r.Context().Value(channelKey{}).(*channel)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	var h *wire.Head
	if ch.wire != nil {
		if h = ch.wire.Take(); h == nil {
			panic(http.ErrAbortHandler) // net/http saw a request that wire did not
		}
	}
	ch.admitted(w, r, func(r *http.Request) bool { return s.p.handle(w, r, ch, h) })
}

// SetLinger says what closing means, where the connection can.
func (n *named) SetLinger(sec int) error { return hangup.SetLinger(n.Conn, sec) }

package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/destination"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// connect answers a CONNECT on a proxy port. A name that no row lists is refused
// here, unless the client would read why inside the tunnel only; else a tunnel
// begins in which every request is judged for itself.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, ch *channel, h *wire.Head) {
	origin, err := connectTo(h)
	ask := domain.Ask{Origin: origin, Method: http.MethodConnect}
	var blocked *holdfast.Error
	if err == nil {
		if blocked = p.listed(origin); !ch.s.who.Trusts {
			err = blocked
		}
	}
	if err != nil {
		p.refuse(w, r, ch, ask, nil, err)
		return
	}
	c, rw, herr := http.NewResponseController(w).Hijack()
	if herr != nil {
		panic(http.ErrAbortHandler)
	}
	early := make([]byte, rw.Reader.Buffered())
	io.ReadFull(rw.Reader, early) // of what is buffered: it does not block
	inner := &channel{s: ch.s, via: tunnelled, host: origin.Host, port: origin.Port, blocked: blocked}
	if !ch.s.begin(func() {
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			c.Close()
			return
		}
		if len(early) > 0 {
			c = wire.NewReplay(c, early)
		} else if w, ok := c.(*wire.Conn); ok {
			c = w.Unwrapped()
		}
		ch.s.meet(c, inner)
	}) {
		c.Close()
	}
}

// connectTo reads what a CONNECT names, and that its Host names the same.
func connectTo(h *wire.Head) (domain.Origin, *holdfast.Error) {
	o := domain.Origin{TLS: true}
	host, port, given, err := domain.ParseAuthority(h.Target)
	if err != nil {
		return o, destination.Letter(err)
	}
	if !given {
		return o, wire.Malformed("a CONNECT names no port")
	}
	o.Host, o.Port = host, port
	if h.Hosts == 0 {
		return o, nil
	}
	said, saidPort, given, err := domain.ParseAuthority(h.Host)
	if err != nil {
		return o, destination.Letter(err)
	}
	if said != host || given && saidPort != port {
		return o, destination.Misdirected(fmt.Sprintf("CONNECT names %s port %d, and its Host says %s", host, port, said))
	}
	return o, nil
}

// listed says whether any row is for o, with TLS or without: which of the two
// it will be is not known yet.
func (p *Proxy) listed(o domain.Origin) *holdfast.Error {
	t := p.table()
	_, err := t.Find(o)
	if err == nil {
		return nil
	}
	o.TLS = false
	if _, plain := t.Find(o); plain == nil {
		return nil
	}
	return err
}

// table is the allowlist in force; nil allows nothing.
func (p *Proxy) table() *domain.Table { return p.cfg.Table() }

// opaque makes one crossing of a whole tunnel whose inside is not looked at
// (D25a). The name in its ClientHello must be the one that it is for.
func (s *seat) opaque(c net.Conn, ch *channel, d *domain.Domain, o domain.Origin, hello *tls.ClientHelloInfo) {
	defer c.Close()
	p := s.p
	ask := domain.Ask{Origin: o, Method: http.MethodConnect}
	x := ch.exchange(nil, nil, ask, d)
	if _, err := p.table().Decide(ask); err != nil {
		x.denials = deny(err)
	} else if hasECH(hello) {
		x.denials = deny(destination.Misdirected("the TLS ClientHello hides the name that it asks for (ECH), and this tunnel is not looked into"))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	_, err := p.cfg.Kernel.Cross(ctx, x.request(), func(ctx context.Context) (holdfast.Output, error) {
		stop := context.AfterFunc(ctx, func() { c.Close() }) // halt, pause and timeout cut it
		defer stop()
		var err error
		x.answer, err = p.tunnel(ctx, c, d, o)
		if errors.Is(err, holdfast.ErrNotStarted) {
			return holdfast.Output{}, err
		}
		return x.output(), err
	})
	p.counters.Ended(d.Name, string(holdfast.KindOf(err)))
}

// refuseUnasked records a connection that ended before it could ask anything.
func (p *Proxy) refuseUnasked(ch *channel, err *holdfast.Error) {
	origin := domain.Origin{TLS: true, Host: ch.host, Port: ch.port}
	d, _ := p.table().Find(origin)
	x := ch.exchange(nil, nil, domain.Ask{Origin: origin}, d)
	x.denials = deny(err)
	_, crossed := p.cfg.Kernel.Cross(context.Background(), x.request(), x.never)
	p.counters.Ended("", string(holdfast.KindOf(crossed)))
}

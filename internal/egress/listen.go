package egress

import (
	"context"
	"errors"
	"net"
)

var errNotYet = errors.New("egress: nothing is served yet")

// Explicit serves a proxy port on l for who: CONNECT and absolute-form
// requests. It blocks until l or the proxy is closed.
func (p *Proxy) Explicit(l net.Listener, _ Caller) error { return errors.Join(l.Close(), errNotYet) }

// Transparent serves connections on l whose clients believe that they reached
// the server itself: TLS by its name, or HTTP/1 by its Host. It blocks until l
// or the proxy is closed.
func (p *Proxy) Transparent(l net.Listener, _ Caller) error {
	return errors.Join(l.Close(), errNotYet)
}

// Resolve answers DNS on pc, and ResolveTCP on l, until it or the proxy is closed.
func (p *Proxy) Resolve(pc net.PacketConn) error { return errors.Join(pc.Close(), errNotYet) }

// ResolveTCP is Resolve over TCP.
func (p *Proxy) ResolveTCP(l net.Listener) error { return errors.Join(l.Close(), errNotYet) }

// Close ends every listener and waits for the entries of their crossings, or
// for ctx.
func (p *Proxy) Close(context.Context) error { p.out.stop(); return nil }

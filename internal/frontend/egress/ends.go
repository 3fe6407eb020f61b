package egress

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// This file is how connections end. What a connection stands in passes it on to the
// one below: that no more is sent, and what closing means.

// CloseWrite ends what is sent, where the connection can.
func (e *entry) CloseWrite() error { return endWriting(e.Conn) }

// CloseWrite ends what is sent, where the connection can.
func (w *wire) CloseWrite() error { return endWriting(w.Conn) }

// CloseWrite ends what is sent, where the connection can.
func (r *replay) CloseWrite() error { return endWriting(r.Conn) }

func endWriting(c net.Conn) error {
	if c, ok := c.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// closeWrite says to the other side that no more comes; where that cannot be said
// alone, the connection is over.
func closeWrite(c net.Conn) {
	if errors.Is(endWriting(c), errors.ErrUnsupported) {
		_ = c.SetDeadline(time.Unix(1, 0))
	}
}

// SetLinger says what closing means, where the connection can.
func (e *entry) SetLinger(sec int) error { return setLinger(e.Conn, sec) }

// SetLinger says what closing means, where the connection can.
func (w *wire) SetLinger(sec int) error { return setLinger(w.Conn, sec) }

// SetLinger says what closing means, where the connection can.
func (r *replay) SetLinger(sec int) error { return setLinger(r.Conn, sec) }

// SetLinger says what closing means, where the connection can.
func (n *named) SetLinger(sec int) error { return setLinger(n.Conn, sec) }

func setLinger(c net.Conn, sec int) error {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	if c, ok := c.(interface{ SetLinger(sec int) error }); ok {
		return c.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// cutByClosing says whether closing c, by whomever, tells the other side that the
// connection was cut. Else it is an end like any other, and what came looks whole.
func cutByClosing(c net.Conn, cut bool) {
	sec := -1 // as the system does it: what was written still goes
	if cut {
		sec = 0
	}
	_ = setLinger(c, sec)
}

// cutOff closes c so that the other side sees that it was cut: without a word of TLS
// that nothing more comes.
func cutOff(c net.Conn) {
	cutByClosing(c, true)
	if w, ok := c.(*wire); ok {
		c = w.Conn
	}
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	_ = c.Close()
}

// within runs f with a deadline on c's reading and writing.
func within(c net.Conn, d time.Duration, f func() error) error {
	if err := c.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, c.SetDeadline(time.Time{}))
}

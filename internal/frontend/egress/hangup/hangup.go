// Package hangup ends connections so that the other side sees how: in order, or cut.
package hangup

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// EndWriting closes the writing half of c, or returns errors.ErrUnsupported.
func EndWriting(c net.Conn) error {
	if c, ok := c.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// CloseWrite says to the other side that no more comes; where that cannot be said
// alone, the connection is over.
func CloseWrite(c net.Conn) {
	if errors.Is(EndWriting(c), errors.ErrUnsupported) {
		_ = c.SetDeadline(time.Unix(1, 0))
	}
}

// SetLinger sets what closing c means, or returns errors.ErrUnsupported.
func SetLinger(c net.Conn, sec int) error {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	if c, ok := c.(interface{ SetLinger(sec int) error }); ok {
		return c.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// CutByClosing says whether closing c, by whomever, tells the other side that the
// connection was cut. Else it is an end like any other, and what came looks whole.
func CutByClosing(c net.Conn, cut bool) {
	sec := -1 // as the system does it: what was written still goes
	if cut {
		sec = 0
	}
	_ = SetLinger(c, sec)
}

// CutOff closes c so that the other side sees that it was cut: without a word of TLS
// that nothing more comes.
func CutOff(c net.Conn) {
	CutByClosing(c, true)
	if w, ok := c.(interface{ Below() net.Conn }); ok {
		c = w.Below()
	}
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	_ = c.Close()
}

// WithDeadline runs f with a deadline on c's reading and writing.
func WithDeadline(c net.Conn, d time.Duration, f func() error) error {
	if err := c.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, c.SetDeadline(time.Time{}))
}

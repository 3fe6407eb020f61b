// Package sentinel is the DNS server of a workspace: every name has one address, which
// leads to the proxy.
package sentinel

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// sentinel is the address of every name inside a workspace: nothing is there
// (RFC 2544), and all that connects to it reaches the proxy. No question leaves
// the machine, so that a name carries nothing out.
var sentinel = [4]byte{198, 18, 0, 1}

const (
	sentinelTTL   = 60 // seconds
	maxQuestion   = 4096
	maxResolveTCP = 32
	resolveIdle   = 10 * time.Second
)

// ServePacket answers DNS over UDP on pc until that is closed. Every A is the
// sentinel, every other type exists and has no records: names have one IPv4
// address and nothing else. Messages that are not questions are dropped. count
// is called with each message, and whether it was a question.
func ServePacket(pc net.PacketConn, count func(question bool)) error {
	buf := make([]byte, maxQuestion)
	for {
		n, from, err := pc.ReadFrom(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				continue
			}
			time.Sleep(time.Millisecond) // such as a port that nobody listens on any more
			continue
		}
		if a := resolve(buf[:n], count); a != nil {
			pc.WriteTo(a, from) // it asks again if that is lost
		}
	}
}

// ServeTCP is ServePacket over TCP, at most 32 connections at a time.
func ServeTCP(l net.Listener, count func(question bool)) error {
	room := make(chan struct{}, maxResolveTCP)
	ending := make(chan struct{})
	var conns sync.WaitGroup
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				close(ending)
				conns.Wait()
				return nil
			}
			time.Sleep(time.Millisecond)
			continue
		}
		select {
		case room <- struct{}{}:
			conns.Add(2)
			answered := make(chan struct{})
			go func() {
				defer conns.Done()
				defer func() { close(answered); <-room }()
				resolveConn(c, count)
			}()
			go func() {
				defer conns.Done()
				select {
				case <-ending:
				case <-answered:
				}
				c.Close()
			}()
		default:
			c.Close()
		}
	}
}

// resolveConn answers questions on a connection, each after its length.
func resolveConn(c net.Conn, count func(question bool)) {
	for {
		c.SetDeadline(time.Now().Add(resolveIdle))
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(length[:])
		if n > maxQuestion {
			return
		}
		q := make([]byte, n)
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		a := resolve(q, count)
		if a == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

// resolve answers one message, nil where it is no question.
func resolve(msg []byte, count func(question bool)) []byte {
	a, ok := answerName(msg)
	if !ok {
		a = nil
	}
	count(ok)
	return a
}

func answerName(msg []byte) ([]byte, bool) {
	var parser dnsmessage.Parser
	h, err := parser.Start(msg)
	if err != nil || h.Response {
		return nil, false
	}
	q, err := parser.Question()
	if err != nil {
		return nil, false
	}
	if _, err := parser.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return nil, false // one question, as everybody sends
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	if h.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
	}
	b := dnsmessage.NewBuilder(nil, reply)
	b.EnableCompression()
	err = errors.Join(b.StartQuestions(), b.Question(q), b.StartAnswers())
	if h.OpCode == 0 && q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET {
		err = errors.Join(err, b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: sentinelTTL}, dnsmessage.AResource{A: sentinel}))
	}
	out, end := b.Finish()
	if err != nil || end != nil {
		return nil, false
	}
	return out, true
}

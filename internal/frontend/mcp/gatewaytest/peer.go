package gatewaytest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// Peer is the far end of a connection. Lines has what its other end wrote.
type Peer struct {
	Input io.WriteCloser
	Lines chan string
}

// Pair returns both ends of a connection.
func Pair() (*Stream, *Peer) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &Peer{Input: inW, Lines: make(chan string, 1024)}
	go func() {
		defer close(p.Lines)
		r := bufio.NewReader(outR)
		for {
			l, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.Lines <- strings.TrimSuffix(l, "\n")
		}
	}()
	return &Stream{Reader: inR, Writer: outW, OnClose: func() { inR.Close(); outW.Close() }}, p
}

// Stream is an end of a connection, and a gateway.Conn. OnClose is called once.
type Stream struct {
	io.Reader
	io.Writer
	OnClose func()
	once    sync.Once
	ExitErr error
}

// Close calls OnClose.
func (c *Stream) Close() error { c.once.Do(c.OnClose); return nil }

// Exit returns ExitErr, or the error of a server that ended by itself.
func (c *Stream) Exit(context.Context) error {
	if c.ExitErr == nil {
		return errors.New("exit status 0")
	}
	return c.ExitErr
}

// Send writes a line.
func (p *Peer) Send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.Input, line+"\n"); err != nil {
		t.Fatalf("send %.200s: %v", line, err)
	}
}

// Next returns the next line.
func (p *Peer) Next(t *testing.T) string {
	t.Helper()
	l, ok := p.Line()
	if !ok {
		t.Fatal("no line came within a minute")
	}
	return l
}

// Line returns the next line, and whether one came within a minute.
func (p *Peer) Line() (string, bool) {
	select {
	case l, ok := <-p.Lines:
		return l, ok
	case <-time.After(time.Minute):
		return "", false
	}
}

// Eventually fails the test with what unless f is true within a minute.
func Eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Error(what)
}

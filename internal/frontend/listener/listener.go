// Package listener bounds the connections of a listener, and words the error of an
// address that is taken.
package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Bounds of a listener's connections: never more than most, and never more than
// a quarter of the files that the process may open, since the store, the socket
// and the servers need theirs.
const (
	mostConns  = 2048
	leastConns = 32
	// WriteTimeout and ReadTimeout bound what the server itself writes and reads,
	// outside of what a handler allows.
	WriteTimeout = 30 * time.Second
	ReadTimeout  = 30 * time.Second
)

// Bounded bounds the connections of one server. Whoever has a request
// answered stays. Of the others, who send nothing, or half of a head, or a body
// that no handler wants, one is closed when one more comes (chooseToClose):
// a client that has something to ask says so at once, and is not among them.
type Bounded struct {
	net.Listener
	most int

	mu    sync.Mutex
	conns map[*comer]bool // guarded by mu
}

// comer is one connection.
type comer struct {
	net.Conn
	owner *Bounded
	once  sync.Once

	// serving, since and served belong to the listener's lock: how many handlers are at
	// work, and if none, since when; and whether one ever was.
	serving int
	since   time.Time
	served  bool
}

// SetLinger sets what closing means, where the connection can: half of an answer is
// cut (internal/frontend/egress).
func (c *comer) SetLinger(sec int) error {
	if c, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		return c.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// ForServer makes l a listener whose connections are bounded for s, which it
// completes. It must be called before s serves.
func ForServer(l net.Listener, s *http.Server) *Bounded {
	c := New(l, MaxConns())
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, comerKey{}, conn)
	}
	if h := s.Handler; h != nil {
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer c.serve(r)()
			h.ServeHTTP(w, r)
		})
	}
	return c
}

// New returns a listener of at most most connections, whose server calls ServeFrom.
func New(l net.Listener, most int) *Bounded {
	return &Bounded{Listener: l, most: most, conns: map[*comer]bool{}}
}

// MaxConns is how many connections one listener may have.
func MaxConns() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return leastConns
	}
	return int(max(leastConns, min(mostConns, files.Cur/4)))
}

type comerKey struct{}

// Accept waits for a connection, and makes room for it.
func (c *Bounded) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &comer{Conn: conn, owner: c, since: time.Now()}
		out, in := c.admit(v)
		if out != nil {
			_ = out.Close()
		}
		if in {
			return v, nil
		}
		_ = conn.Close()
	}
}

// admit makes room for v: it reports whether v may come in, and which connection must be closed
// for it, if any.
func (c *Bounded) admit(v *comer) (out *comer, in bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) >= c.most {
		if out = c.chooseToClose(); out == nil {
			return nil, false
		}
		delete(c.conns, out)
	}
	c.conns[v] = true
	return out, true
}

// chooseToClose returns the connection that has been idle longest, nil if none is idle. While half of the
// connections have never sent a request, only those are chosen from: a client that was served
// before may be sending its next request just now. c.mu is held.
func (c *Bounded) chooseToClose() *comer {
	var oldest, oldestSilent *comer
	silent := 0
	for v := range c.conns {
		if v.serving > 0 {
			continue
		}
		if oldest == nil || v.since.Before(oldest.since) {
			oldest = v
		}
		if v.served {
			continue
		}
		silent++
		if oldestSilent == nil || v.since.Before(oldestSilent.since) {
			oldestSilent = v
		}
	}
	if silent >= (c.most+1)/2 {
		return oldestSilent
	}
	return oldest
}

// serve says that a handler is at work on r; what it returns, that it is not.
func (c *Bounded) serve(r *http.Request) func() {
	v, ok := r.Context().Value(comerKey{}).(*comer)
	if !ok {
		return func() {}
	}
	return c.set(v)
}

// ServeFrom notes that a handler is at work for the client at the other end of
// a connection; what it returns, that it is not.
func (c *Bounded) ServeFrom(at net.Addr) func() {
	if at == nil {
		return func() {}
	}
	c.mu.Lock()
	var from *comer
	for v := range c.conns {
		if v.RemoteAddr().String() == at.String() {
			from = v
			break
		}
	}
	c.mu.Unlock()
	if from == nil {
		return func() {}
	}
	return c.set(from)
}

func (c *Bounded) set(v *comer) func() {
	add := func(n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		v.serving, v.since, v.served = v.serving+n, time.Now(), true
	}
	add(1)
	return func() { add(-1) }
}

// Close closes the connection and gives its place back.
func (v *comer) Close() error {
	v.once.Do(func() {
		v.owner.mu.Lock()
		defer v.owner.mu.Unlock()
		delete(v.owner.conns, v)
	})
	return v.Conn.Close()
}

// NewError returns the error of a listener for people.
func NewError(addr string, err error) error {
	why, hint := err.Error(), ""
	if errors.Is(err, syscall.EADDRINUSE) {
		why, hint = "something listens there already", "name another port, or port 0 for a free one"
	} else if sys := (*os.SyscallError)(nil); errors.As(err, &sys) {
		why = sys.Err.Error()
	}
	return &holdfast.Error{Kind: holdfast.KindConflict,
		Why: fmt.Sprintf("cannot listen at %s: %s", excerpt.Word(addr), why), Hint: hint, Err: err}
}

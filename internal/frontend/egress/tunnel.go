package egress

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/hangup"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/upstream"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// tunnel carries bytes between client and o, not inspected, and at most d's
// limits each way. The first thing that client reads is its TLS ClientHello,
// which was looked at: its name is o's host. An end that is closed on one side
// is closed on the other, and the other way goes on; one that is cut, on either
// side or by Holdfast, is cut on the other: what came until then does not look
// whole. The sum is of what came back. It does not close client, but ends what
// reads and writes it by a deadline where ctx ends.
//
// The error is send's where no connection was made; a PayloadTooLargeError past
// a limit; a TimeoutError where neither end sent anything for long; a ForwardError
// where ctx or the upstream ended it; nil where the upstream closed in order, or
// the client left.
func (p *Proxy) tunnel(ctx context.Context, client net.Conn, d *domain.Domain, o domain.Origin) (relayed, error) {
	up, err := p.out.upstreams.Dial(ctx, d, o)
	if err != nil {
		return relayed{}, err
	}
	defer up.Close()
	return (&carrier{client: client, up: up}).run(ctx, d, o)
}

// carrier is a tunnel's two ends.
type carrier struct {
	client, up net.Conn
	sent, came atomic.Int64
	over, idle atomic.Bool
	busy       func()
	// reset is that the upstream broke the connection off when it was written to:
	// what it sent before can still be read, and an end behind it is none.
	reset atomic.Bool
}

// run is tunnel, once there are two ends.
func (t *carrier) run(ctx context.Context, d *domain.Domain, o domain.Origin) (relayed, error) {
	hangup.CutByClosing(t.client, true) // whoever closes them, also the system for a process that was killed
	hangup.CutByClosing(t.up, true)
	defer context.AfterFunc(ctx, t.end)()
	limit := upstream.IdleOf(d, upstream.TunnelIdle)
	idle := time.AfterFunc(limit, func() {
		t.idle.Store(true)
		t.end()
	})
	defer idle.Stop()
	t.busy = func() { idle.Reset(limit) }

	sum := sha256.New()
	var there, back parting
	var both sync.WaitGroup
	both.Go(func() { there = t.carry(t.up, t.client, &t.sent, maxRequest(d), nil) })
	both.Go(func() { back = t.carry(t.client, t.up, &t.came, maxResponse(d), sum) })
	both.Wait()

	got := relayed{sent: t.sent.Load(), bytes: t.came.Load(), began: true}
	sum.Sum(got.sum[:0])
	switch {
	case errors.Is(there.read, coding.ErrTooLarge):
		return got, coding.NewSizeError("tunnel's way out", maxRequest(d))
	case errors.Is(back.read, coding.ErrTooLarge):
		return got, coding.NewSizeError("tunnel's way back", maxResponse(d))
	case ctx.Err() == nil && t.idle.Load():
		return got, upstream.FellSilent(d, limit, nil)
	case ctx.Err() != nil, t.over.Load(), errors.Is(there.read, net.ErrClosed), errors.Is(back.write, net.ErrClosed):
		return got, &holdfast.Error{Kind: holdfast.KindForward, Rule: "egress/ended", Why: "the tunnel was ended", Hint: "the run was stopped"}
	case there.read == nil && back.write == nil && back.read != nil:
		return got, &holdfast.Error{Kind: holdfast.KindForward, Rule: "egress/forward", Why: o.Host.String() + " broke the tunnel off", Err: back.read}
	}
	return got, nil
}

// end stops both ways.
func (t *carrier) end() {
	t.over.Store(true)
	t.stop()
}

// stop ends what is read and written.
func (t *carrier) stop() {
	past := time.Unix(1, 0)
	_ = t.client.SetDeadline(past)
	_ = t.up.SetDeadline(past)
}

// parting is why one way of a tunnel ended: what could not be read, or written.
// The zero value is an end in order, or stop's.
type parting struct{ read, write error }

// errReset stands in for the end of an upstream that had been cut.
var errReset = errors.New("the connection was reset")

// carry copies one way, up to most bytes, and closes that way at its end. What
// cannot be read any more ends the other way too. What cannot be written does not:
// an end that takes nothing more may have said its last before, which the other
// end is still to get, to its own end.
func (t *carrier) carry(to, from net.Conn, count *atomic.Int64, most int64, sum io.Writer) parting {
	in := coding.UpTo(from, most)
	buf := make([]byte, pieceSize)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			t.busy()
			w, werr := to.Write(buf[:n])
			count.Add(int64(w))
			if sum != nil {
				_, _ = sum.Write(buf[:w])
			}
			if werr != nil {
				if to == t.up && errors.Is(werr, syscall.ECONNRESET) {
					t.reset.Store(true)
				}
				return parting{write: unstopped(werr)}
			}
		}
		switch {
		case err == io.EOF && from == t.up && t.reset.Load():
			err = errReset
		case err == io.EOF:
			hangup.CutByClosing(to, false)
			hangup.CloseWrite(to)
			return parting{}
		}
		if err != nil {
			t.stop()
			return parting{read: unstopped(err)}
		}
	}
}

// unstopped is err, unless it comes of stop: then the reason stands elsewhere.
func unstopped(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

package egress

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/domain"
)

// tunnel carries bytes between client and o, not inspected, and at most d's
// limits each way. The first thing that client reads is its TLS ClientHello,
// which was looked at: its name is o's host. An end that is closed on one side
// is closed on the other, and the other way goes on. The sum is of what came
// back. It does not close client, but ends what reads and writes it by a
// deadline where ctx ends.
//
// The error is send's where no connection was made; a PayloadTooLargeError past
// a limit; a TimeoutError where neither end sent anything for long; nil where both ends were closed in order, or the client left.
func (p *Proxy) tunnel(ctx context.Context, client net.Conn, d *domain.Domain, o domain.Origin) (relayed, error) {
	list, err := p.addresses(ctx, d, o)
	if err != nil {
		return relayed{}, sendError(o, firstByte, nil, err)
	}
	up, err := dialer(list, o.Port, len(d.Addresses) > 0)(ctx, "tcp", "")
	if err != nil {
		return relayed{}, sendError(o, firstByte, context.Cause(ctx), &notStarted{err})
	}
	defer up.Close()
	t := &carrier{client: client, up: up}
	defer context.AfterFunc(ctx, t.end)()
	limit := idleOf(d, tunnelIdle)
	idle := time.AfterFunc(limit, func() {
		t.idle.Store(true)
		t.end()
	})
	defer idle.Stop()
	t.busy = func() { idle.Reset(limit) }

	sum := sha256.New()
	var there, back error
	var both sync.WaitGroup
	both.Go(func() { there = t.carry(up, client, &t.sent, maxRequest(d), nil) })
	both.Go(func() { back = t.carry(client, up, &t.came, maxResponse(d), sum) })
	both.Wait()

	got := relayed{sent: t.sent.Load(), bytes: t.came.Load(), began: true}
	sum.Sum(got.sum[:0])
	switch {
	case errors.Is(there, errTooLarge):
		return got, tooLarge("tunnel's way out", maxRequest(d))
	case errors.Is(back, errTooLarge):
		return got, tooLarge("tunnel's way back", maxResponse(d))
	case ctx.Err() == nil && t.idle.Load():
		return got, fellSilent(d, limit, nil)
	case ctx.Err() != nil, t.over.Load():
		return got, &holdfast.Error{Kind: holdfast.KindForward, Rule: "egress/ended", Why: "the tunnel was ended", Hint: "the run was stopped"}
	case back != nil:
		return got, &holdfast.Error{Kind: holdfast.KindForward, Rule: "egress/forward", Why: o.Host.String() + " broke the tunnel off", Err: back}
	}
	return got, nil
}

// carrier is a tunnel's two ends.
type carrier struct {
	client, up net.Conn
	sent, came atomic.Int64
	over, idle atomic.Bool
	busy       func()
}

// end stops both ways.
func (t *carrier) end() {
	t.over.Store(true)
	past := time.Unix(1, 0)
	_ = t.client.SetDeadline(past)
	_ = t.up.SetDeadline(past)
}

// carry copies one way, up to most bytes, and closes that way at its end. An
// error ends the other way too.
func (t *carrier) carry(to, from net.Conn, count *atomic.Int64, most int64, sum io.Writer) (err error) {
	defer func() {
		if err != nil {
			past := time.Unix(1, 0)
			_ = t.client.SetDeadline(past)
			_ = t.up.SetDeadline(past)
			return
		}
		closeWrite(to)
	}()
	in := &upTo{r: from, left: most}
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
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// closeWrite says to the other side that no more comes.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.SetDeadline(time.Unix(1, 0))
}

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// How long nothing may come where a row says nothing: of an answer that has
// begun, of events or a WebSocket, either way of a tunnel.
const (
	answerIdle = 5 * time.Minute
	EventsIdle = time.Hour
	TunnelIdle = 10 * time.Minute
)

// IdleOf is d's own limit, or the usual one.
func IdleOf(d *domain.Domain, usual time.Duration) time.Duration {
	if d.Idle > 0 {
		return d.Idle
	}
	return usual
}

// usualIdle is the limit of an answer of a kind.
func usualIdle(contentType string) time.Duration {
	if contentType == "" {
		return answerIdle
	}
	if kind, _ := coding.MediaKind(contentType); kind == "text/event-stream" || coding.IsLines(kind) {
		return EventsIdle
	}
	return answerIdle
}

// errSilent is the cause of a request that the idle limit ended.
var errSilent = errors.New("nothing more came in time")

// wait bounds how long an upstream is waited for: to the first byte, and then
// from each to the next. The time in which nobody reads does not count.
type wait struct {
	timer     *time.Timer
	d         *domain.Domain
	limit     time.Duration // from byte to byte; 0 for none
	answering atomic.Bool
	silent    atomic.Bool
}

// over is called where the time is.
func (w *wait) over(cancel context.CancelCauseFunc) {
	if !w.answering.Load() {
		cancel(errFirstByte)
		return
	}
	w.silent.Store(true)
	cancel(errSilent)
}

// answered goes on from the first byte to those of resp's body, which calls end
// when it is closed.
func (w *wait) answered(d *domain.Domain, resp *http.Response, end func()) {
	w.d, w.limit = d, IdleOf(d, usualIdle(resp.Header.Get("Content-Type")))
	w.answering.Store(true)
	resp.Body = ending(resp.Body, w, end)
}

// read is one read of r, which belongs to one goroutine at a time.
func (w *wait) read(r io.Reader, p []byte) (int, error) {
	if w.limit <= 0 {
		return r.Read(p)
	}
	w.timer.Reset(w.limit)
	n, err := r.Read(p)
	w.timer.Stop()
	if err != nil && err != io.EOF && w.silent.Load() {
		err = FellSilent(w.d, w.limit, err)
	}
	return n, err
}

// FellSilent is the letter of what began, and brings nothing more.
func FellSilent(d *domain.Domain, limit time.Duration, err error) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindTimeout, Rule: "egress/idle", Err: err,
		Why:  fmt.Sprintf("nothing more came from %s for %s", d.Name, limit),
		Hint: "it was given up in the middle, and may have done what was asked; the domain's `idle` sets another limit",
	}
}

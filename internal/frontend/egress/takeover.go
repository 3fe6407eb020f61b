package egress

import (
	"net/http"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
)

// This file is how an answer that lasts goes on without its handler: the act
// takes the client's HTTP/1.1 connection over, and the buffers and the goroutine
// that net/http has for it are free while nothing comes. When the answer has
// ended the connection goes back to net/http for the client's next request.

// takeOver takes the connection from the handler, which returns, where that can
// be: an answer of HTTP/2 is one of many on a connection, an answer to HTTP/1.0
// ends with it, and what was not read of a request stands before the next.
func (w *patientWriter) takeOver() {
	x := w.x
	ch, _ := x.r.Context().Value(channelKey{}).(*channel)
	if ch == nil || ch.wire == nil || !x.read || !x.r.ProtoAtLeast(1, 1) {
		return
	}
	l := wire.NewLasting(ch.wire, w.Header(), x.r.Close, x.p.cfg.Limits.Idle)
	l.Hand, l.Gone = ch.s.hand, func() { x.cancel(errGone) }
	_, rest, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		ch.wire.Close() // whose it is now cannot be told: what is written to it fails
	} else if n := rest.Reader.Buffered(); n > 0 {
		early, _ := rest.Reader.Peek(n) // of what is buffered
		ch.wire.Unread(early)
	}
	x.stop()
	x.sized = x.size()
	x.client, x.w, x.r, x.header = l, nil, nil, nil
	w.ResponseWriter, w.c = l, http.NewResponseController(l)
	if !x.s.begin(l.Watch) {
		ch.wire.Close()
		x.cancel(errGone)
	}
	close(x.left)
}

package wire

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Lasting is a client that an answer is written to for long.
type Lasting struct {
	wire *Conn
	// header is as the handler left it.
	header http.Header
	// last says that the client asks nothing more on its connection.
	last bool
	idle time.Duration
	// Hand gives the connection back to net/http.
	Hand func(net.Conn)
	// Gone is called where the client leaves before the answer has ended.
	Gone func()
	// over is set when nothing more of the answer is to come, and ended told
	// once whether all of it went.
	over  atomic.Bool
	ended chan bool
}

// NewLasting returns the client at the other end of w, with the answer's header so
// far. last says that it asks nothing more on its connection.
func NewLasting(w *Conn, header http.Header, last bool, idle time.Duration) *Lasting {
	return &Lasting{wire: w, header: header, last: last, idle: idle, ended: make(chan bool, 1)}
}

// Watch waits for the client's next request, or for its going away, and then
// for the end of the answer.
func (l *Lasting) Watch() {
	var first [1]byte
	_, err := io.ReadFull(l.wire, first[:])
	if err != nil && !l.over.Load() {
		l.Gone()
	}
	if whole := <-l.ended; err != nil || !whole || l.last {
		l.wire.Close()
		return
	}
	l.wire.Unread(first[:])
	l.wire.SetReadDeadline(time.Time{})
	l.Hand(l.wire)
}

// End is called when nothing more is written, and says whether that was for the first
// time: again it does nothing. An answer that is not whole must be seen not to be: its
// connection is cut.
func (l *Lasting) End(whole bool) bool {
	if l.over.Swap(true) {
		return false
	}
	if whole {
		l.SetWriteDeadline(time.Now().Add(l.idle))
		_, err := io.WriteString(l.wire, "0\r\n\r\n")
		l.SetWriteDeadline(time.Time{})
		whole = err == nil
	}
	if whole && !l.last {
		l.wire.SetReadDeadline(time.Now().Add(l.idle)) // watch goes on waiting, but not for ever
	} else {
		l.wire.Close()
	}
	l.ended <- whole
	return true
}

// Header is the answer's, until WriteHeader.
func (l *Lasting) Header() http.Header { return l.header }

// WriteHeader sends the head of an answer whose length is not known.
func (l *Lasting) WriteHeader(status int) {
	l.last = l.last || l.header.Get("Connection") == "close"
	b := headWriter(fmt.Appendf(nil, "HTTP/1.1 %03d %s\r\n", status, http.StatusText(status)))
	if _, said := l.header["Date"]; !said {
		b = fmt.Appendf(b, "Date: %s\r\n", time.Now().UTC().Format(http.TimeFormat))
	}
	l.header.WriteSubset(&b, map[string]bool{"Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true})
	if l.last {
		b = append(b, "Connection: close\r\n"...)
	}
	l.wire.Write(append(b, "Transfer-Encoding: chunked\r\n\r\n"...)) // what fails fails again
	l.header = nil
}

type headWriter []byte

func (w *headWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// Write sends p at once, as one chunk.
func (l *Lasting) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // a chunk of nothing would end the answer
	}
	b := fmt.Appendf(make([]byte, 0, len(p)+16), "%x\r\n", len(p))
	if _, err := l.wire.Write(append(append(b, p...), '\r', '\n')); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FlushError has nothing to do: Write holds nothing.
func (l *Lasting) FlushError() error { return nil }

// SetWriteDeadline is the connection's.
func (l *Lasting) SetWriteDeadline(t time.Time) error { return l.wire.SetWriteDeadline(t) }

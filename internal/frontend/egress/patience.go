package egress

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// patientBody gives a client's body a deadline that every byte moves on, but
// none far beyond its share of the whole: a body that drips is not awaited. It
// remembers why it ended.
type patientBody struct {
	io.ReadCloser
	c     *http.ResponseController
	d     time.Duration
	whole time.Time // when a body of no bytes must have ended
	err   error
	ended bool // all of it was read
}

// A body has manyWaits times the wait for one byte, and a second for each
// slowest bytes that came.
const (
	manyWaits = 4
	slowest   = 1 << 10
)

var errStalled = errors.New("no byte of the body came in time")

func (b *patientBody) Read(p []byte) (int, error) {
	until := time.Now().Add(b.d)
	if b.whole.Before(until) {
		until = b.whole
	}
	b.c.SetReadDeadline(until)
	n, err := b.ReadCloser.Read(p)
	b.whole = b.whole.Add(time.Duration(n) * time.Second / slowest)
	b.ended = err == io.EOF
	if err != nil && err != io.EOF {
		b.err = err
		var ne net.Error
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
			b.err = errStalled
		}
	}
	return n, err
}

// patientWriter gives a client d to take each piece of an answer.
type patientWriter struct {
	http.ResponseWriter
	c *http.ResponseController
	d time.Duration
	x *exchange // whose answer it is
}

func (w *patientWriter) Write(p []byte) (int, error) {
	w.c.SetWriteDeadline(time.Now().Add(w.d))
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// done lifts the last deadline: it is of this answer alone.
func (w *patientWriter) done() { w.c.SetWriteDeadline(time.Time{}) }

// Package wire reads the HTTP/1 connections of clients strictly, before net/http does,
// and writes answers that last longer than their handlers.
package wire

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/hangup"
)

// Conn is a client's HTTP/1 connection, read strictly before net/http reads it.
// net/http forgives much (a bare LF, a folded line, a length beside an
// encoding), and what two readers understand in two ways is how a request is
// smuggled past one of them. wire hands on one head at a time, whole and
// checked, and follows the framing of the body after it, so that it and
// net/http always agree where a request ends.
//
// A head that is not in order is never handed on. In its place goes a request
// of wire's own, whose handler finds the mistake with take, says so, and closes.
type Conn struct {
	net.Conn
	// of is what the connection belongs to.
	of     any
	pieces *Lender
	heads  queue

	// The rest belongs to the one goroutine that reads.
	in    []byte // read from Conn and not looked at yet
	piece *Piece // where in begins; nil where that is few, or was not enough
	few   [wireFew]byte
	seen  int    // of in, where no head ends
	out   []byte // looked at, to be handed on
	state wireState
	left  int64 // of a body or a chunk, in bytes
	broke error // what ended the reading
}

// wireState is what comes next.
type wireState uint8

const (
	wireHead  wireState = iota
	wireFixed           // left bytes of a body
	wireChunkSize
	wireChunk    // left bytes of a chunk
	wireChunkEnd // CR LF after a chunk
	wireTrailer  // CR LF after the last chunk: a trailer is refused
	wireRaw      // after CONNECT or an upgrade
)

const (
	MaxHead      = 64 << 10
	maxChunkLine = 256
	// wirePiece is how much is read at a time, wireFew how much of a head that
	// has not begun: a connection that waits for one holds no more. What is
	// behind it in one record of TLS is there without the system being asked.
	wirePiece = 4 << 10
	wireFew   = 64
	// misread is the head that stands in for one that is not in order.
	misread = "POST /misread HTTP/1.1\r\nHost: misread.invalid\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)

// New returns a connection that reads c and belongs to of. lender may be nil.
func New(c net.Conn, lender *Lender, of any) *Conn {
	return &Conn{Conn: c, pieces: lender, of: of}
}

// Owner returns what the connection belongs to.
func (w *Conn) Owner() any { return w.of }

// Take gives the head of the request whose handler begins: handlers begin in
// the order of the heads. It is nil where there is none.
func (w *Conn) Take() *Head { return w.heads.pop() }

// Read hands on what was looked at, at most one request at a time. Of a chunked
// body it hands on all that is there: whoever sends a byte in each chunk makes
// no more calls of it than others do.
func (w *Conn) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.broke != nil {
			return 0, w.broke
		}
		if len(p) == 0 {
			return 0, nil
		}
		if w.state == wireRaw && len(w.in) == 0 {
			w.giveBack() // a tunnel needs none
			w.in, w.out = nil, nil
			return w.Conn.Read(p)
		}
		if w.step() {
			continue
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
	n := w.give(p)
	for n < len(p) && w.broke == nil && w.chunked() && w.step() {
		n += w.give(p[n:])
	}
	return n, nil
}

// give copies what was looked at, as far as p has room.
func (w *Conn) give(p []byte) int {
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n
}

// chunked says whether a chunked body goes on.
func (w *Conn) chunked() bool { return w.state >= wireChunkSize && w.state <= wireTrailer }

// fill reads more. What net/http interrupts with a deadline can be read on. All
// that was handed on was taken, so that its bytes may be overwritten.
func (w *Conn) fill() error {
	w.makeRoom()
	n, err := w.Conn.Read(w.in[len(w.in):cap(w.in)])
	w.in = w.in[:len(w.in)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	if errors.Is(err, io.EOF) && (len(w.in) > 0 || w.state != wireHead && w.state != wireRaw) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Unwrapped is the connection itself, where nothing that was read of it is left.
// Nobody may be reading.
func (w *Conn) Unwrapped() net.Conn {
	if w.state != wireRaw || len(w.in)+len(w.out) > 0 || w.broke != nil {
		return w
	}
	w.giveBack()
	w.in = nil
	return w.Conn
}

// Piece is where a connection is read while there is something to read.
type Piece [wirePiece]byte

// makeRoom makes in a slice that can be read into.
func (w *Conn) makeRoom() {
	switch {
	case len(w.in) == 0 && w.state == wireHead:
		w.giveBack()
		w.in = w.few[:0]
	case len(w.in) == 0 || cap(w.in) <= wireFew:
		if w.piece == nil {
			w.piece = w.pieces.Borrow()
		}
		w.in = append(w.piece[:0], w.in...)
	case cap(w.in)-len(w.in) < wirePiece/4:
		w.in = slices.Grow(w.in, wirePiece)
		w.giveBack()
	}
}

// giveBack is called when nothing stands in the piece that was not handed on.
func (w *Conn) giveBack() {
	w.pieces.GiveBack(w.piece)
	w.piece = nil
}

// Lender lends pieces. It is safe for concurrent use; nil makes new ones.
type Lender struct{ pool sync.Pool }

// Borrow returns a piece of which nothing is in use.
func (l *Lender) Borrow() *Piece {
	if l != nil {
		if b, ok := l.pool.Get().(*Piece); ok {
			return b
		}
	}
	return new(Piece)
}

// GiveBack takes a piece back, or nil.
func (l *Lender) GiveBack(b *Piece) {
	if l != nil && b != nil {
		l.pool.Put(b)
	}
}

// step moves on by one state where in holds enough, and says whether it did.
func (w *Conn) step() bool {
	switch w.state {
	case wireHead:
		return w.stepHead()
	case wireFixed, wireChunk:
		return w.stepBody()
	case wireChunkSize:
		return w.stepLine(w.chunkSize)
	case wireChunkEnd:
		return w.stepLine(func(line []byte) string {
			if len(line) > 0 {
				return "a chunk is longer than it says"
			}
			w.state = wireChunkSize
			return ""
		})
	case wireTrailer:
		return w.stepLine(func(line []byte) string {
			if len(line) > 0 {
				return "there is a trailer after the body"
			}
			w.state = wireHead
			return ""
		})
	}
	w.out, w.in = w.in, nil
	return len(w.out) > 0
}

func (w *Conn) stepHead() bool {
	if len(w.in) == 0 {
		return false
	}
	n, err := headEnd(w.in, w.seen)
	if n == 0 && err == nil {
		w.seen = max(0, len(w.in)-2)
		return false
	}
	w.seen = 0
	h := &Head{}
	if err == nil {
		err = h.read(w.in[:n])
	}
	if err != nil {
		w.refuse(&Head{Mistake: err})
		return true
	}
	w.out, w.in = h.handed(), w.in[n:]
	w.heads.push(h)
	switch {
	case h.connect || h.Upgrade:
		w.state = wireRaw
	case h.chunked:
		w.state = wireChunkSize
	case h.length > 0:
		w.state, w.left = wireFixed, h.length
	}
	return true
}

// refuse hands a head of our own on, and nothing after it.
func (w *Conn) refuse(h *Head) {
	w.heads.push(h)
	w.out, w.in, w.broke = []byte(misread), nil, io.EOF
}

// stepBody hands on what there is of left.
func (w *Conn) stepBody() bool {
	n := min(int64(len(w.in)), w.left)
	if n == 0 {
		return false
	}
	w.out, w.in = w.in[:n:n], w.in[n:]
	if w.left -= n; w.left == 0 {
		if w.state == wireChunk {
			w.state = wireChunkEnd
		} else {
			w.state = wireHead
		}
	}
	return true
}

// stepLine hands one line of the chunked encoding on, if all of it is there
// and then finds nothing wrong with it.
func (w *Conn) stepLine(then func(line []byte) string) bool {
	for i, b := range w.in[:min(len(w.in), maxChunkLine)] {
		if b != '\n' {
			continue
		}
		if i == 0 || w.in[i-1] != '\r' {
			return w.badChunk("a line of the chunked body ends with a bare LF")
		}
		if why := then(w.in[:i-1]); why != "" {
			return w.badChunk(why)
		}
		w.out, w.in = w.in[:i+1:i+1], w.in[i+1:]
		return true
	}
	if len(w.in) >= maxChunkLine {
		return w.badChunk("a line of the chunked body is too long")
	}
	return false
}

// badChunk ends the reading: the handler finds the mistake as the error of its
// body.
func (w *Conn) badChunk(why string) bool {
	w.in, w.broke = nil, Malformed(why)
	return true
}

// chunkSize reads a size: 1 to 8 hex digits, and nothing else. No client needs
// an extension, and none is passed on.
func (w *Conn) chunkSize(line []byte) string {
	if len(line) == 0 || len(line) > 8 {
		return "the size of a chunk is not 1 to 8 hex digits"
	}
	var n int64
	for _, c := range line {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | int64(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | int64(c-'A'+10)
		default:
			return "the size of a chunk is not 1 to 8 hex digits"
		}
	}
	w.state, w.left = wireChunk, n
	if n == 0 {
		w.state = wireTrailer
	}
	return ""
}

// Malformed is the letter to a client whose request cannot be read in one way
// only.
func Malformed(why string) *holdfast.Error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: "the request is not well formed: " + why,
		Hint: "send it as RFC 9112 writes it: lines that end with CR LF, one Host, one length"}
}

// queue is the heads that were handed on and whose handlers have not begun:
// net/http may read the next before it has answered the last.
type queue struct {
	mu    sync.Mutex
	heads []*Head // guarded by mu
}

func (q *queue) push(h *Head) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heads = append(q.heads, h)
}

func (q *queue) pop() *Head {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.heads) == 0 {
		return nil
	}
	h := q.heads[0]
	q.heads = q.heads[1:]
	return h
}

// Replay is a connection of which something was read already.
type Replay struct {
	net.Conn
	mu    sync.Mutex
	first []byte // guarded by mu
}

// NewReplay returns c, of which first was read.
func NewReplay(c net.Conn, first []byte) *Replay { return &Replay{Conn: c, first: first} }

// Read returns first what was read already.
func (r *Replay) Read(p []byte) (int, error) {
	r.mu.Lock()
	if len(r.first) > 0 {
		n := copy(p, r.first)
		if r.first = r.first[n:]; len(r.first) == 0 {
			r.first = nil // a connection may live long
		}
		r.mu.Unlock()
		return n, nil
	}
	r.mu.Unlock()
	return r.Conn.Read(p)
}

// CloseWrite ends what is sent, where the connection can.
func (w *Conn) CloseWrite() error { return hangup.EndWriting(w.Conn) }

// SetLinger says what closing means, where the connection can.
func (w *Conn) SetLinger(sec int) error { return hangup.SetLinger(w.Conn, sec) }

// CloseWrite ends what is sent, where the connection can.
func (r *Replay) CloseWrite() error { return hangup.EndWriting(r.Conn) }

// SetLinger says what closing means, where the connection can.
func (r *Replay) SetLinger(sec int) error { return hangup.SetLinger(r.Conn, sec) }

// Below returns the connection that w reads.
func (w *Conn) Below() net.Conn { return w.Conn }

// Unread puts b, which was read, before what is read next.
func (w *Conn) Unread(b []byte) { w.out = slices.Concat(b, w.out) }

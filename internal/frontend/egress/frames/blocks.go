// Package frames takes a stream of events or lines apart, and finds in each the pieces
// of texts that continue in the next.
package frames

import (
	"bytes"
	"io"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
)

// Blocks takes a stream apart: a block is one event with the blank line behind it,
// or one line. A lone CR ends a line too (HTML section 9.2.6). It is for one
// goroutine at a time, and holds little while nothing comes.
type Blocks struct {
	In    io.Reader
	Frame Frame
	// Pieces lends what is read into while much comes; nil makes new ones.
	Pieces *wire.Lender
	// Wait is called before more is read, which may last; nil does nothing.
	Wait func() error

	few   [256]byte
	piece *wire.Piece
	got   []byte // in few or piece, and not taken yet
	much  bool   // the last read filled all that it could
	err   error  // of the last read, once got is empty

	block []byte // the one in hand
	line  int    // where its last line begins
	whole bool   // it was given; the next one begins
}

// Next waits for a block, which is valid until the one after it. Its error is that of
// the stream, coding.ErrTooLarge, or wait's; beside io.EOF stands what came without its end.
func (b *Blocks) Next() ([]byte, error) {
	for {
		block, err := b.take()
		if block != nil || err != nil {
			return block, err
		}
		if err := b.fill(); err != nil {
			return b.block, err
		}
	}
}

// Come returns the next block where all of it is here already, else nil.
func (b *Blocks) Come() []byte {
	block, _ := b.take() // next says it again
	return block
}

// take takes from what was read up to the end of a block, nil where that is not
// there.
func (b *Blocks) take() ([]byte, error) {
	if b.whole {
		if b.block, b.line, b.whole = b.block[:0], 0, false; cap(b.block) > MaxKept {
			b.block = nil
		}
	}
	for len(b.got) > 0 && !b.whole && len(b.block) <= maxEvent {
		n, ends := b.lineEnd()
		b.block = append(b.block, b.got[:n]...)
		if b.got = b.got[n:]; ends {
			b.whole = b.endLine()
		}
	}
	switch {
	case len(b.block) > maxEvent:
		b.whole = false
		return nil, coding.ErrTooLarge
	case b.whole:
		return b.block, nil
	}
	return nil, nil
}

// lineEnd is how much of got belongs to the line in hand, its end included.
func (b *Blocks) lineEnd() (n int, ends bool) {
	n = bytes.IndexByte(b.got, '\n')
	part := b.got
	if n >= 0 {
		part = b.got[:n]
	}
	if b.Frame == Events {
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			n = cr
		}
	}
	if n < 0 {
		return len(b.got), false
	}
	return n + 1, true
}

// endLine is behind the end of a line, and says whether it ends the block.
func (b *Blocks) endLine() bool {
	if b.Frame == Lines {
		return true
	}
	end := len(b.block) - 1
	blank := end == b.line
	switch {
	case b.block[end] == '\r' && len(b.got) > 0 && b.got[0] == '\n':
		b.block, b.got = append(b.block, '\n'), b.got[1:]
	case b.block[end] == '\n' && blank && end > 0 && b.block[end-1] == '\r':
		blank = false // the LF of a CR LF that came in two pieces
	}
	b.line = len(b.block)
	return blank
}

// fill reads more.
func (b *Blocks) fill() error {
	if b.err != nil {
		return b.err
	}
	if b.Wait != nil {
		if err := b.Wait(); err != nil {
			return err
		}
	}
	for range 100 {
		room := b.room()
		n, err := b.In.Read(room)
		b.got, b.err, b.much = room[:n], err, n == len(room)
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// room is what the next bytes are read into.
func (b *Blocks) room() []byte {
	if !b.much || b.Pieces == nil {
		b.Done()
		return b.few[:]
	}
	if b.piece == nil {
		b.piece = b.Pieces.Borrow()
	}
	return b.piece[:]
}

// Done gives back what was lent. What was read and not taken is lost.
func (b *Blocks) Done() {
	b.Pieces.GiveBack(b.piece)
	b.piece, b.got = nil, nil
}

// Frame is how events are told apart.
type Frame uint8

const (
	Events Frame = iota // server-sent events: a blank line ends one
	Lines               // one JSON document a line
)

// MaxKept is the longest buffer that is kept from event to event, in bytes.
const MaxKept = 1 << 10

// maxEvent bounds one event, in bytes.
const maxEvent = 1 << 20

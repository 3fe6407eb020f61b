package egress

import (
	"bytes"
	"io"
)

// blocks takes a stream apart: a block is one event with the blank line behind it,
// or one line. A lone CR ends a line too (HTML section 9.2.6). It is for one
// goroutine at a time, and holds little while nothing comes.
type blocks struct {
	in    io.Reader
	frame frame
	// pieces lends what is read into while much comes; nil makes new ones.
	pieces *pieceLender
	// wait is called before more is read, which may last; nil does nothing.
	wait func() error

	few   [256]byte
	piece *piece
	got   []byte // in few or piece, and not taken yet
	much  bool   // the last read filled all that it could
	err   error  // of the last read, once got is empty

	block []byte // the one in hand
	line  int    // where its last line begins
	whole bool   // it was given; the next one begins
}

// next waits for a block, which is valid until the one after it. Its error is that of
// the stream, errTooLarge, or wait's; beside io.EOF stands what came without its end.
func (b *blocks) next() ([]byte, error) {
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

// come returns the next block where all of it is here already, else nil.
func (b *blocks) come() []byte {
	block, _ := b.take() // next says it again
	return block
}

// take takes from what was read up to the end of a block, nil where that is not
// there.
func (b *blocks) take() ([]byte, error) {
	if b.whole {
		if b.block, b.line, b.whole = b.block[:0], 0, false; cap(b.block) > maxKept {
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
		return nil, errTooLarge
	case b.whole:
		return b.block, nil
	}
	return nil, nil
}

// lineEnd is how much of got belongs to the line in hand, its end included.
func (b *blocks) lineEnd() (n int, ends bool) {
	n = bytes.IndexByte(b.got, '\n')
	part := b.got
	if n >= 0 {
		part = b.got[:n]
	}
	if b.frame == frameEvents {
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
func (b *blocks) endLine() bool {
	if b.frame == frameLines {
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
func (b *blocks) fill() error {
	if b.err != nil {
		return b.err
	}
	if b.wait != nil {
		if err := b.wait(); err != nil {
			return err
		}
	}
	for range 100 {
		room := b.room()
		n, err := b.in.Read(room)
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
func (b *blocks) room() []byte {
	if !b.much || b.pieces == nil {
		b.done()
		return b.few[:]
	}
	if b.piece == nil {
		b.piece = b.pieces.borrow()
	}
	return b.piece[:]
}

// done gives back what was lent. What was read and not taken is lost.
func (b *blocks) done() {
	b.pieces.giveBack(b.piece)
	b.piece, b.got = nil, nil
}

// frame is how events are told apart.
type frame uint8

const (
	frameEvents frame = iota // server-sent events: a blank line ends one
	frameLines               // one JSON document a line
)

// maxKept is the longest buffer that is kept from event to event, in bytes.
const maxKept = 1 << 10

// maxEvent bounds one event, in bytes.
const maxEvent = 1 << 20

package vm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// What Holdfast and a guest say to each other goes over the guest's second
// serial port, in frames: 4 bytes that begin every frame, its kind, the length
// of what it says (4 bytes, little endian), a checksum of that, and what it
// says. The port is slow (some 40 KB a second), so code, files and output stand
// in memory that both see, and a frame only has their length.
type frame struct {
	kind byte
	body []byte
}

// The kinds of frames, in the order of a run.
const (
	frameReady    = 'R' // the guest waits; body: a greeting
	frameOrder    = 'O' // Holdfast's; body: an order
	frameAccepted = 'A' // the guest has taken its order
	frameDone     = 'D' // body: an outcome
	frameFailed   = 'F' // body: why it cannot go on, in words
)

const (
	frameMagic = "HfV1"
	frameHead  = len(frameMagic) + 1 + 4 + 4
	maxFrame   = 64 << 10
)

// writeFrame writes one frame with one call of Write.
func writeFrame(w io.Writer, f frame) error {
	if len(f.body) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is longer than %d", len(f.body), maxFrame)
	}
	b := append(make([]byte, 0, frameHead+len(f.body)), frameMagic...)
	b = append(b, f.kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(f.body))
	_, err := w.Write(append(b, f.body...))
	return err
}

// readFrame reads one frame. Whatever is none is an error: nothing is skipped
// to find one.
func readFrame(r io.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n, sum := binary.LittleEndian.Uint32(head[5:]), binary.LittleEndian.Uint32(head[9:])
	if string(head[:4]) != frameMagic || n > maxFrame {
		return frame{}, fmt.Errorf("%q begins no frame", head[:])
	}
	f := frame{kind: head[4], body: make([]byte, n)}
	if _, err := io.ReadFull(r, f.body); err != nil {
		return frame{}, err
	}
	if crc32.ChecksumIEEE(f.body) != sum {
		return frame{}, fmt.Errorf("a frame %q of %d bytes came damaged", f.kind, n)
	}
	return f, nil
}

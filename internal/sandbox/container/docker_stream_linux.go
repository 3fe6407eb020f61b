package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// errBroken is output that ended in the middle of a frame.
var errBroken = errors.New("the engine's stream of output broke off")

// demux takes apart what a container wrote: frames of a header of eight bytes (the
// stream, three zeros, the length) and so many bytes (Docker's API, "attach to a
// container"). It ends with the stream; an error says that this was no end.
func demux(r io.Reader, stdout, stderr func([]byte)) error {
	var head [8]byte
	buf := make([]byte, 32<<10)
	for {
		switch _, err := io.ReadFull(r, head[:]); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		var keep func([]byte)
		switch binary.BigEndian.Uint32(head[:4]) {
		case 1 << 24:
			keep = stdout
		case 2 << 24:
			keep = stderr
		default:
			return fmt.Errorf("the engine's stream of output has a frame % x", head)
		}
		for left := int64(binary.BigEndian.Uint32(head[4:])); left > 0; {
			n, err := r.Read(buf[:min(left, int64(len(buf)))])
			keep(buf[:n])
			left -= int64(n)
			if err != nil && left > 0 {
				return fmt.Errorf("%w: %w", errBroken, err)
			}
		}
	}
}

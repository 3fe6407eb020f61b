// Package coding reads what is said of a body, its media type and encodings, and
// decodes it within bounds.
package coding

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxCodings is how many encodings may lie over each other.
	maxCodings = 3
	// freeDecoded may come out of any encoding; of what is more, maxRatio bytes
	// may for each byte that went in.
	freeDecoded = 1 << 20
	maxRatio    = 200
	// maxWindow bounds what a zstd decoder keeps, in bytes (RFC 9659), and
	// minWindow is what every decoder may, whatever it says.
	maxWindow = 8 << 20
	minWindow = 64 << 10
)

var (
	ErrTooLarge      = errors.New("too large")
	ErrNoMemory      = errors.New("no memory")
	ErrUnknownCoding = errors.New("an encoding that is not known")
	ErrManyCodings   = fmt.Errorf("more than %d encodings over each other", maxCodings)
	ErrBomb          = fmt.Errorf("it expands to more than %d times its size", maxRatio)
)

// Parse reads Content-Encoding fields: what was done to the body, in order
// (RFC 9110 section 8.4). Identity is nothing.
func Parse(fields []string) ([]string, error) {
	var list []string
	for _, line := range fields {
		for name := range strings.SplitSeq(line, ",") {
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "", "identity":
			case "gzip", "x-gzip", "deflate", "br", "zstd":
				list = append(list, name)
			default:
				return nil, ErrUnknownCoding
			}
		}
	}
	if len(list) > maxCodings {
		return nil, ErrManyCodings
	}
	return list, nil
}

// Decode reads what r holds behind its encodings, the last of which was put on
// last. What comes out of each layer is bounded by what went in, so that no
// depth of nesting multiplies, and what the layers keep is taken from room until
// the reader is closed, which it must be. An error is ErrNoMemory where there is
// no room.
func Decode(r io.Reader, list []string, space Room) (io.ReadCloser, error) {
	d := &decoder{Reader: r, room: space}
	for i := len(list) - 1; i >= 0; i-- {
		in := &counted{r: d.Reader}
		out, err := d.layer(list[i], bufio.NewReader(in))
		if err != nil {
			d.Close()
			return nil, err
		}
		d.Reader = &bounded{r: out, in: in}
	}
	return d, nil
}

// Room is where the memory that decoders keep is taken from.
type Room interface {
	// Grow takes more until n bytes are taken, and reports whether there was room.
	Grow(n int64) bool
	// Done gives all of it back.
	Done()
}

// decoder is a pile of decoders.
type decoder struct {
	io.Reader
	room Room
	kept int64 // by all layers, in bytes
	ends []func()
}

// Close frees what the decoders hold; it does not close what they read.
func (d *decoder) Close() error {
	for _, end := range d.ends {
		end()
	}
	d.ends = nil
	d.room.Done()
	return nil
}

// keep takes room for what one more layer keeps.
func (d *decoder) keep(n int64) error {
	if d.kept += n; !d.room.Grow(d.kept) {
		return ErrNoMemory
	}
	return nil
}

func (d *decoder) layer(coding string, r *bufio.Reader) (io.Reader, error) {
	window := windowOf(coding, r)
	if err := d.keep(window); err != nil {
		return nil, err
	}
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		// Servers send both zlib, as the name means, and bare deflate.
		if head, _ := r.Peek(2); len(head) == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
			return zlib.NewReader(r)
		}
		return flate.NewReader(r), nil
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
		if err != nil {
			return nil, err
		}
		d.ends = append(d.ends, z.Close)
		return z, nil
	}
	return nil, ErrUnknownCoding
}

// windowOf is how much of what it decoded a layer keeps, in bytes: as its first
// bytes say (RFC 7932 section 9.1, RFC 8878 section 3.1.1). Frames of zstd that
// follow the first must be content with what it asks for.
func windowOf(coding string, r *bufio.Reader) int64 {
	switch coding {
	case "br":
		head, _ := r.Peek(1)
		if len(head) == 0 {
			return minWindow
		}
		return max(minWindow, int64(1)<<brotliBits(head[0]))
	case "zstd":
		head, _ := r.Peek(zstd.HeaderMaxSize)
		var h zstd.Header
		if err := h.Decode(head); err != nil || h.Skippable {
			return maxWindow
		}
		window := h.WindowSize
		if h.SingleSegment {
			window = h.FrameContentSize
		}
		return int64(min(max(window, minWindow), maxWindow))
	}
	return minWindow
}

// brotliBits is the size of a stream's window, as a power of two.
func brotliBits(first byte) int {
	switch n, m := first>>1&7, first>>4&7; {
	case first&1 == 0:
		return 16
	case n != 0:
		return 17 + int(n)
	case m == 0:
		return 17
	case m == 1:
		return 16 // a large window, which the decoder refuses
	default:
		return 8 + int(m)
	}
}

// counted counts what was read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// bounded refuses what expands too far.
type bounded struct {
	r  io.Reader
	in *counted
	n  int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	if b.n > freeDecoded && b.n > maxRatio*b.in.n {
		return 0, ErrBomb
	}
	return n, err
}

package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads messages from a stream of lines. It holds at most one line of
// MaxLine bytes; what is longer is skipped without being kept. One goroutine
// may use it at a time.
type Reader struct{ r *bufio.Reader }

// NewReader reads from r, which it does not close.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 64<<10)} }

// Next returns the next message; blank lines are passed over. A *Fault means
// that one line was refused and Next may be called again. Every other error is
// the stream's own and final: io.EOF at its end, where a last line without a
// newline still counts. The message is the caller's to keep.
func (r *Reader) Next() (Message, error) {
	for {
		line, err := r.next()
		var f *Fault
		if errors.As(err, &f) {
			return Message{}, err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return Parse(line)
		}
		if err != nil {
			return Message{}, err
		}
	}
}

// next returns one line in memory of its own.
func (r *Reader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine+2 {
			return nil, r.skip(line, part, err)
		}
		if room := cap(line) - len(line); room < len(part) && len(line) > 0 {
			// Doubling copies a long line once; append would do it five times.
			line = slices.Grow(line, min(len(line), MaxLine+2-len(line)))
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// ends is how much of either end of a line that is too long is looked at for
// its id.
const ends = 4 << 10

// skip reads to the end of a line that is too long and returns its fault.
func (r *Reader) skip(line, part []byte, err error) error {
	head := bytes.Clone(line[:min(len(line), ends)])
	tail := lastOf(nil, part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.r.ReadSlice('\n')
		tail = lastOf(tail, part)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	f := tooLong()
	if f.ID = salvage(head); f.ID == nil {
		f.ID = salvageEnd(tail)
	}
	return f
}

// lastOf returns the last bytes, as many as are looked at, of tail and part
// together. It may write to tail.
func lastOf(tail, part []byte) []byte {
	if keep := ends - len(part); keep <= 0 {
		tail, part = tail[:0], part[-keep:]
	} else if len(tail) > keep {
		tail = tail[:copy(tail, tail[len(tail)-keep:])]
	}
	return append(tail, part...)
}

// salvage finds the id of a message that will be refused, by reading members
// up to the first that cannot be read. Whoever waits for an answer then gets
// one instead of a silence; nothing else is believed of the line.
func salvage(raw []byte) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(raw[:min(len(raw), ends)]))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil
		}
		isID := name.String() == "id"
		v, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if isID && IDKey(v) != "" {
			return bytes.Clone(v)
		}
	}
	return nil
}

// salvageEnd does the same for the clients that write the id last.
func salvageEnd(tail []byte) []byte {
	tail = bytes.TrimSpace(tail)
	i := bytes.LastIndex(tail, []byte(`"id"`))
	if i < 0 {
		return nil
	}
	return salvage(append([]byte("{"), tail[i:]...))
}

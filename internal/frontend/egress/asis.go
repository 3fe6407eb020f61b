package egress

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// asSent gives a body of which nothing is redacted. One of a model's is decoded, so
// that it is metered, and loses the usage that was asked for without its client; what
// cannot be decoded passes only where there is nothing to take out.
func (a *answer) asSent() error {
	encoding := a.resp.Header["Content-Encoding"]
	if a.model == nil || a.model.meter == nil {
		return a.unread(a.resp.Body, encoding)
	}
	kind, _ := coding.MediaKind(a.got.contentType)
	strips := a.model.did.Usage && kind == "text/event-stream"
	list, err := coding.Parse(encoding)
	if err != nil {
		if strips {
			return upstreamLied(a.resp, "an encoding that is not known, though it was asked for none", err)
		}
		return a.unread(a.resp.Body, encoding) // nobody reads what it says of its use
	}
	in, err := coding.Decode(a.resp.Body, list, a.p.out.memory.NewShare(heldBy(a.ctx)))
	if err != nil {
		return a.readError(err)
	}
	defer in.Close()
	if strips || len(list) > 0 {
		a.resp.ContentLength = -1 // it is another
	}
	if strips {
		return a.unread(&withoutUsage{r: &frames.Blocks{In: in}, meter: a.model.meter}, nil)
	}
	return a.unread(a.model.read(in), nil)
}

// withoutUsage reads a stream of events byte for byte as it comes, but for the usage that
// its client did not ask for, and meters it.
type withoutUsage struct {
	r     *frames.Blocks
	meter *dialect.Meter
	block []byte // what of the event in hand was not given
	err   error
}

// Read implements io.Reader, an event at a time.
func (s *withoutUsage) Read(p []byte) (int, error) {
	for len(s.block) == 0 && s.err == nil {
		s.block, s.err = s.r.Next()
		if data, has := dataOf(s.block, s.meter); has && s.meter.Event(data) == dialect.Unasked {
			s.block = nil
		}
	}
	n := copy(p, s.block)
	if s.block = s.block[n:]; n > 0 {
		return n, nil
	}
	return 0, s.err
}

// dataOf is the data of an event; the meter is told its other fields.
func dataOf(block []byte, meter *dialect.Meter) (data []byte, has bool) {
	for line := range bytes.FieldsFuncSeq(block, func(r rune) bool { return r == '\r' || r == '\n' }) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			meter.Field(string(name))
			continue
		}
		if has {
			data = append(data, '\n')
		}
		data, has = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
	}
	return data, has
}

package egress

import (
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
		return a.unread(&frames.Filter{In: frames.Blocks{In: in}, Drops: a.model.isUnasked}, nil)
	}
	return a.unread(a.model.read(in), nil)
}

// isUnasked has the meter read an event, and reports whether it is the usage that the client did not ask for.
func (m *model) isUnasked(event []byte) bool {
	data, has := frames.ReadData(event, func(field string) { m.meter.Field(field) })
	return has && m.meter.Event(data) == dialect.Unasked
}

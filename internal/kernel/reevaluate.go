package kernel

import (
	"errors"

	"github.com/holdfast-dev/holdfast"
	"go.opentelemetry.io/otel/attribute"
)

// errOtherPolicy says that another policy came while a request was judged, and
// before it began. It leaves nothing but the judgement, which is worth nothing.
var errOtherPolicy = errors.New("the policy changed while the request was judged")

// maxAnew is how often one request is judged at most. A reload, and what changes an
// agent's tree, is a record that is durable, and so far slower than a judgement.
const maxAnew = 8

// untilSettled judges a request until no other policy comes between judging it
// and its begin, so that a reload drops no request (D49): each is answered by one
// policy, whole. It is the same with the agent's tree. Where they come without end it
// is refused.
func (c *crossing) untilSettled(judge func() error) error {
	for n := 1; ; n++ {
		err := judge()
		if !errors.Is(err, errOtherPolicy) && !errors.Is(err, errOtherTree) && !errors.Is(err, errOtherRows) {
			return err
		}
		if n == maxAnew {
			op := deny(holdfast.K6, holdfast.KindConflict, err.Error()+", again and again", "ask again")
			c.j.opinions = replaceOpinion(c.j.opinions, op)
			return c.refuse(op)
		}
		c.j.ticket.Drop() // what it asked the past is asked anew
		c.span.SetAttributes(attribute.Bool("holdfast.judged_anew", true))
		c.span.End()
	}
}

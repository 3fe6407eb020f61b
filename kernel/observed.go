package kernel

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// observed are the boundaries that a door saw rather than configuration: the
// tools of listed MCP servers (D37).
type observed struct {
	mu   sync.RWMutex
	seen map[string]holdfast.Contract // guarded by mu; as observed
	made map[string]*ready            // guarded by mu; as compiled
}

// ready is an observed contract compiled under one policy.
type ready struct {
	under *policy
	c     *contract
}

// maxName bounds the name of a boundary that only a pattern lists, in bytes.
const maxName = 512

// maxObserved bounds how many boundaries doors may bring.
const maxObserved = 10_000

// Observe tells the kernel of boundaries that a door saw, such as the tools of
// an MCP server, and returns them as they are in force: what configuration
// says of a boundary wins over what was seen. A schema that does not compile
// is no error here; crossing that boundary is refused.
func (k *Kernel) Observe(_ context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	pol := k.policy.Load()
	out := make([]holdfast.Contract, 0, len(cs))
	for _, c := range cs {
		made := k.seen.put(pol, c)
		if made == nil {
			return nil, &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K1,
				Why: "more boundaries were observed than are kept", Hint: "restart holdfast, or put fewer servers behind it"}
		}
		out = append(out, made.Contract)
	}
	return out, nil
}

func (o *observed) put(pol *policy, c holdfast.Contract) *contract {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen, o.made = map[string]holdfast.Contract{}, map[string]*ready{}
	}
	old, known := o.seen[c.Boundary]
	if !known && len(o.seen) >= maxObserved {
		return nil
	}
	if r := o.made[c.Boundary]; known && r != nil && r.under == pol && old.Pin == c.Pin && old.Risk == c.Risk {
		return r.c
	}
	o.seen[c.Boundary] = c
	made := compile(pol.overlay(c), pol.Rules)
	o.made[c.Boundary] = &ready{pol, made}
	return made
}

// find returns the observed contract under pol, compiling it anew after a
// policy change.
func (o *observed) find(pol *policy, boundary string) *contract {
	o.mu.RLock()
	r := o.made[boundary]
	c, known := o.seen[boundary]
	o.mu.RUnlock()
	if !known {
		return nil
	}
	if r != nil && r.under == pol {
		return r.c
	}
	return o.put(pol, c)
}

// lookup finds the contract in force for a boundary, or nil.
func (k *Kernel) lookup(pol *policy, boundary string) *contract {
	if c := k.seen.find(pol, boundary); c != nil {
		return c
	}
	c := pol.find(boundary)
	if c == nil || c.Boundary == boundary {
		return c
	}
	// A pattern's contract, under the boundary's own name, which is the
	// agent's text and is written down as it is: what may not be written is
	// no name.
	if len(boundary) > maxName || printable(boundary) != boundary || k.redact.Text([]byte(boundary)).Found() {
		return nil
	}
	own := *c
	own.Boundary = boundary
	return &own
}

// Contract returns the contract in force for a boundary.
func (k *Kernel) Contract(boundary string) (holdfast.Contract, bool) {
	c := k.lookup(k.policy.Load(), boundary)
	if c == nil {
		return holdfast.Contract{}, false
	}
	return c.Contract, true
}

package router

import (
	"bytes"
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
)

// kernel allows everything that is not forbidden, and records requests.
type kernel struct {
	gatewaytest.Open

	mu        sync.Mutex
	requests  []holdfast.Request
	forbidden string // a boundary
}

func (k *kernel) Observe(ctx context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	out, err := k.Open.Observe(ctx, cs)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range out {
		if out[i].Boundary == k.forbidden {
			out[i].Risk = holdfast.Prohibited
		}
	}
	return out, err
}

func (k *kernel) Cross(
	ctx context.Context, r holdfast.Request, act func(context.Context) (holdfast.Output, error),
) (*holdfast.Outcome, error) {
	k.mu.Lock()
	r.Payload = bytes.Clone(r.Payload)
	k.requests = append(k.requests, r)
	forbidden := k.forbidden == r.Boundary
	k.mu.Unlock()
	if forbidden {
		op := holdfast.Opinion{Gate: holdfast.K7, Verdict: holdfast.Deny, Kind: holdfast.KindProhibited,
			Why: "this tool is forbidden"}
		return &holdfast.Outcome{Boundary: r.Boundary, Verdict: holdfast.Deny, Opinions: []holdfast.Opinion{op}}, op.Err()
	}
	return k.Open.Cross(ctx, r, act)
}

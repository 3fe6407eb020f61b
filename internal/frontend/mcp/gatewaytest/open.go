// Package gatewaytest has a kernel and peers for tests of the MCP gateway. The kernel's
// gates all allow, and it keeps no ledger.
package gatewaytest

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
)

// Open lets everything through. It is safe for concurrent use.
type Open struct {
	// Under is how many acts are under way, Acted how many were begun.
	Under, Acted atomic.Int64
	// Ended gets how each act ended, in its order; nil gets nothing.
	Ended chan error
}

// Cross calls act.
func (k *Open) Cross(ctx context.Context, r holdfast.Request, act func(context.Context) (holdfast.Output, error)) (*holdfast.Outcome, error) {
	k.Under.Add(1)
	defer k.Under.Add(-1)
	k.Acted.Add(1)
	o := &holdfast.Outcome{Crossing: "c", Boundary: r.Boundary, Verdict: holdfast.Allow}
	out, err := act(ctx)
	if err == nil {
		o.Output = &out
	}
	if k.Ended != nil {
		k.Ended <- err
	}
	return o, err
}

// Observe takes every tool for harmless.
func (k *Open) Observe(_ context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	for i := range cs {
		cs[i].Risk = holdfast.Low
	}
	return cs, nil
}

// Listed says that nothing is.
func (*Open) Listed(string) (holdfast.Contract, bool) { return holdfast.Contract{}, false }

// Withholds says that nothing is withheld.
func (*Open) Withholds(string) bool { return false }

// Await waits until ctx ends: nobody decides.
func (*Open) Await(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// Token is a source of tokens.
func Token(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("t"), nil }

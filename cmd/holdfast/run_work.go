package main

import (
	"context"
	"maps"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// work runs the workspace in this process, which has the terminal. From then on
// an interrupt is the program's.
func (a *app) work(ctx context.Context, c *api.Client, ask api.RunAsk, terms api.RunTerms) (*posture.Result, error) {
	if err := a.ctx.Err(); err != nil {
		return nil, &holdfast.Error{Kind: holdfast.KindCanceled, Why: "it was interrupted before it began", Err: err}
	}
	space, err := a.network(ask, terms)
	if err != nil {
		return nil, err
	}
	space.Need = terms.Need
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w := process.OpenWorkspaces()
	res, err := w.RunConnected(ctx, space, a.streams(), func(ctx context.Context, sockets []*os.File) error { return c.HandOver(ctx, terms, sockets) })
	if end := w.Close(); err == nil && end != nil {
		a.say("%v", end)
	}
	return res, err
}

// network is the workspace of ask with the network that the daemon's terms give
// it. What --env says of a variable stands.
func (a *app) network(ask api.RunAsk, terms api.RunTerms) (sandbox.Workspace, error) {
	space := ask.Space
	if terms.Closed != "" {
		a.say("no network: %s", terms.Closed)
	}
	if terms.Network == nil {
		if ask.Network == api.NetworkProxy {
			return space, fail("end it, and try again: `holdfast up`", "the daemon is of a version that has no network to offer")
		}
		return space, nil
	}
	space.Network = terms.Network
	space.Environment = sandbox.NetworkVariables()
	maps.Copy(space.Environment, terms.Network.ModelVariables(ask.Space.Environment))
	maps.Copy(space.Environment, ask.Space.Environment)
	return sandbox.CheckWorkspace(space, func(string) bool { return false })
}

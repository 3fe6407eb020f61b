package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
)

// mostViolations bounds how many submissions one answer lists.
const mostViolations = 1000

// Goal submits a goal, sub-tasks or a graph: a crossing of goal/admit.
func (c *Client) Goal(ctx context.Context, a Ask) (*Answer, error) {
	return ask[Answer](ctx, c, "POST", "/v1/goal", a)
}

// Goals says whether a tenant's goals are paused, and what waits.
func (c *Client) Goals(ctx context.Context, tenant string) (*goal.Pause, error) {
	return ask[goal.Pause](ctx, c, "GET", "/v1/goals?"+url.Values{"tenant": {tenant}}.Encode(), nil)
}

// GoalViolations lists the submissions since a time that violated anything.
func (c *Client) GoalViolations(ctx context.Context, tenant string, since time.Time) ([]goal.Recorded, error) {
	var out []goal.Recorded
	err := c.timed(ctx, "GET", "/v1/goals/violations?"+url.Values{"tenant": {tenant}, "since": {since.UTC().Format(time.RFC3339Nano)}}.Encode(), nil, &out)
	return out, err
}

// AckGoal and ResumeGoals carry out what a person signed.
func (c *Client) AckGoal(ctx context.Context, p PersonsWord) (*goal.Pause, error) {
	return ask[goal.Pause](ctx, c, "POST", "/v1/goals/ack", p)
}

// ResumeGoals lifts the pause of goals.
func (c *Client) ResumeGoals(ctx context.Context, p PersonsWord) error {
	return c.timed(ctx, "POST", "/v1/goals/resume", p, &none{})
}

// Unblock lets a tenant go on whose budget of the day is spent.
func (c *Client) Unblock(ctx context.Context, p PersonsWord) (*exceed.Block, error) {
	return ask[exceed.Block](ctx, c, "POST", "/v1/budget/unblock", p)
}

func (s *Server) goals(r *http.Request) (goal.Pause, error) {
	return s.Kernel.Goals(r.Context(), tenant(asked(r, "tenant")))
}

func (s *Server) goalViolations(r *http.Request) ([]goal.Recorded, error) {
	since, err := time.Parse(time.RFC3339Nano, asked(r, "since"))
	if err != nil {
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "since is no time", Hint: "such as 2026-11-22T10:00:00Z"}
	}
	return s.Kernel.ViolationsSince(r.Context(), tenant(asked(r, "tenant")), since, mostViolations)
}

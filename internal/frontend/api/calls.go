package api

import (
	"context"
	"net/url"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// ask calls, within callTime, and reads the answer as an Out.
func ask[Out any](ctx context.Context, c *Client, method, path string, in any) (*Out, error) {
	var out Out
	err := c.timed(ctx, method, path, in, &out)
	return &out, err
}

// Status asks how the owner is.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	reply := statusReply{Status: &Status{}}
	err := c.timed(ctx, "GET", "/v1/status", nil, &reply)
	reply.Status.Conditions = reply.Conditions
	return reply.Status, err
}

// Cross makes a crossing; Check and Explain say what one would come to. The
// error is about the call; a refusal is in the answer.
func (c *Client) Cross(ctx context.Context, a Ask) (*Answer, error) {
	return ask[Answer](ctx, c, "POST", "/v1/cross", a)
}

// Exec runs code, for as long as that may take, which the tier decides. The error
// is about the call; a refusal is in the answer.
func (c *Client) Exec(ctx context.Context, e Execution) (*Executed, error) {
	var out executedReply
	err := c.patient(ctx, callTime/3, "POST", "/v1/exec", e, &out)
	return out.toExecuted(), err
}

// ExplainExec asks all eight gates of the run that Exec would make, recording
// nothing and running nothing.
func (c *Client) ExplainExec(ctx context.Context, e Execution) (*Answer, error) {
	return ask[Answer](ctx, c, "POST", "/v1/exec/explain", e)
}

// Stop ends a run by its request id. Whoever waits for it is answered with what
// there is.
func (c *Client) Stop(ctx context.Context, id string) (*Stopping, error) {
	return ask[Stopping](ctx, c, "POST", "/v1/exec/stop", StopAsk{RequestID: id})
}

// Check asks the gates until one denies, recording nothing.
func (c *Client) Check(ctx context.Context, a Ask) (*Answer, error) {
	return ask[Answer](ctx, c, "POST", "/v1/check", a)
}

// Explain asks all eight gates, recording nothing.
func (c *Client) Explain(ctx context.Context, a Ask) (*Answer, error) {
	return ask[Answer](ctx, c, "POST", "/v1/explain", a)
}

// Reviews lists reviews; an empty state lists all.
func (c *Client) Reviews(ctx context.Context, tenant string, state review.State) ([]review.Review, error) {
	var out []review.Review
	q := url.Values{"tenant": {tenant}, "state": {string(state)}}
	err := c.timed(ctx, "GET", "/v1/reviews?"+q.Encode(), nil, &out)
	return out, err
}

// Review returns one review.
func (c *Client) Review(ctx context.Context, id string) (*review.Review, error) {
	return ask[review.Review](ctx, c, "GET", "/v1/reviews/"+url.PathEscape(id), nil)
}

// Decide carries out a person's answer to a review.
func (c *Client) Decide(ctx context.Context, p PersonsWord) (*review.Review, error) {
	return ask[review.Review](ctx, c, "POST", "/v1/decide", p)
}

// Halt stops everything.
func (c *Client) Halt(ctx context.Context, w Word) (*Cutting, error) {
	return ask[Cutting](ctx, c, "POST", "/v1/halt", w)
}

// Poke tells the owner that the latch was written.
func (c *Client) Poke(ctx context.Context) (*Cutting, error) {
	return ask[Cutting](ctx, c, "POST", "/v1/poke", struct{}{})
}

// Resume lifts the latch.
func (c *Client) Resume(ctx context.Context, p PersonsWord) error {
	return c.timed(ctx, "POST", "/v1/resume", p, &none{})
}

// Agents lists agents.
func (c *Client) Agents(ctx context.Context, tenant string) ([]holdfast.Agent, error) {
	var out []holdfast.Agent
	err := c.timed(ctx, "GET", "/v1/agents?"+url.Values{"tenant": {tenant}}.Encode(), nil, &out)
	return out, err
}

// Pause stops one agent.
func (c *Client) Pause(ctx context.Context, w Word) (*Cutting, error) {
	return ask[Cutting](ctx, c, "POST", "/v1/pause", w)
}

// Unpause lets one agent go on, and says which reviews that has answered.
func (c *Client) Unpause(ctx context.Context, p PersonsWord) (kernel.Unpaused, error) {
	var out kernel.Unpaused
	err := c.timed(ctx, "POST", "/v1/unpause", p, &out)
	return out, err
}

// Trust sets an agent's level.
func (c *Client) Trust(ctx context.Context, p PersonsWord) error {
	return c.timed(ctx, "POST", "/v1/trust", p, &none{})
}

// Erase erases parts of records.
func (c *Client) Erase(ctx context.Context, p PersonsWord) (erasure.Erased, error) {
	var out erasure.Erased
	err := c.timed(ctx, "POST", "/v1/erase", p, &out)
	return out, err
}

// Revoke makes a token id worthless.
func (c *Client) Revoke(ctx context.Context, w Word) error {
	return c.timed(ctx, "POST", "/v1/revoke", w, &none{})
}

// Backup copies the store to a file; it takes as long as it takes.
func (c *Client) Backup(ctx context.Context, file string) error {
	return c.call(ctx, "POST", "/v1/backup", Backup{file}, &Backup{})
}

// Checkpoint signs every tree that has grown, and says how many.
func (c *Client) Checkpoint(ctx context.Context) (int, error) {
	var out map[string]int
	err := c.timed(ctx, "POST", "/v1/checkpoint", struct{}{}, &out)
	return out["signed"], err
}

// Open asks for a one-time link to the pages: to a review, or to the queue where
// it is empty.
func (c *Client) Open(ctx context.Context, review string) (string, error) {
	var out Opened
	err := c.timed(ctx, "POST", "/v1/open", Opened{Review: review}, &out)
	return out.URL, err
}

// Admit makes another person an operator, and records it.
func (c *Client) Admit(ctx context.Context, p PersonsWord) error {
	return c.timed(ctx, "POST", "/v1/admit", p, &operator.Public{})
}

// Life says what became of a review, step by step.
func (c *Client) Life(ctx context.Context, id string) ([]review.Step, error) {
	var out []review.Step
	err := c.timed(ctx, "GET", "/v1/reviews/"+url.PathEscape(id)+"/life", nil, &out)
	return out, err
}

// Remembered lists a tenant's remembered rules, newest first.
func (c *Client) Remembered(ctx context.Context, tenant string) ([]review.Remembered, error) {
	var out []review.Remembered
	err := c.timed(ctx, "GET", "/v1/remembered?"+url.Values{"tenant": {tenant}}.Encode(), nil, &out)
	return out, err
}

// Remember makes a narrow rule of an approved review.
func (c *Client) Remember(ctx context.Context, p PersonsWord) (*review.Remembered, error) {
	return ask[review.Remembered](ctx, c, "POST", "/v1/remember", p)
}

// Forget ends a remembered rule.
func (c *Client) Forget(ctx context.Context, p PersonsWord) (*review.Remembered, error) {
	return ask[review.Remembered](ctx, c, "POST", "/v1/forget", p)
}

// Changed tells how a tool differs from what it was at first sight.
func (c *Client) Changed(ctx context.Context, boundary string) (*review.Change, error) {
	return ask[review.Change](ctx, c, "GET", "/v1/changed?"+url.Values{"boundary": {boundary}}.Encode(), nil)
}

// Accept takes a changed tool for what it is now.
func (c *Client) Accept(ctx context.Context, p PersonsWord) (*review.Change, error) {
	return ask[review.Change](ctx, c, "POST", "/v1/accept", p)
}

// Token asks for a token of an agent of this machine.
func (c *Client) Token(ctx context.Context, a TokenAsk) (*Token, error) {
	return ask[Token](ctx, c, "POST", "/v1/token", a)
}

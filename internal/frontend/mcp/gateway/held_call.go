package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

const (
	// approvalKey is the key of our own question in a result.
	approvalKey = "approval"
	// maxRounds bounds how often one request is made a crossing: a policy
	// that changes while it waits opens one review after the other.
	maxRounds = 8
	// progressEvery is how often a client that wants to hear of progress
	// hears that its request waits.
	progressEvery = 5 * time.Second
)

// patient makes a crossing, waits where a person must decide, until end, and
// makes it again once that was done. It returns the last outcome. The wait
// keeps nothing but the request: the review stands when it ends.
func (s *session) patient(ctx context.Context, f *flight, c *call, end time.Time, cross func(context.Context) (*holdfast.Outcome, error)) (*holdfast.Outcome, error) {
	waited := ""
	for range maxRounds - 1 {
		o, err := cross(ctx)
		if o == nil || o.Verdict != holdfast.Hold || o.Review == "" || o.Review == waited || !s.keepsWaiting(c, o) {
			return o, err
		}
		if s.awaitDecision(ctx, f, c, o, end) != nil {
			return o, err
		}
		waited = o.Review
	}
	return cross(ctx)
}

// keepsWaiting says whether a held request is kept waiting. A client that can be
// pointed to the page by the answer is pointed there first, and waits when it
// comes back from there.
func (s *session) keepsWaiting(c *call, o *holdfast.Outcome) bool {
	if s.Wait <= 0 {
		return false
	}
	if s.returns(c, o.Review) == "" {
		return true
	}
	return s.pointed(c, o.Review) && c.accepted
}

// pointed says whether the client was told of this review before.
func (s *session) pointed(c *call, review string) bool {
	return c.state != nil && c.state.Review == review
}

// returns is the mode, url or form, in which the answer to a call can point
// its client to a review; "" where it cannot.
func (s *session) returns(c *call, review string) string {
	if !c.stateless || !asks(c.Method) {
		return ""
	}
	return s.mode(s.abilities(c), review)
}

// mode is how a client is pointed to a review: url, form, or "".
func (s *session) mode(can abilities, review string) string {
	switch {
	case can.url && s.Page(review) != "":
		return "url"
	case can.form:
		return "form"
	}
	return ""
}

// awaitDecision waits until a review waits for a person no more, or until end. The
// error says that it still does. A client with a session is asked meanwhile to
// open the page.
func (s *session) awaitDecision(ctx context.Context, f *flight, c *call, o *holdfast.Outcome, end time.Time) error {
	ctx, cancel := context.WithDeadlineCause(ctx, end, errors.New("nobody has decided yet"))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan struct{})
	defer func() { stop(nil); <-done }()
	s.spawn(func() {
		defer close(done)
		s.meanwhile(ctx, f, c, o, stop)
	})
	return s.Kernel.Await(ctx, o.Review)
}

// errDeclined ends a wait that the client does not want.
var errDeclined = errors.New("the client does not wait for the decision")

// meanwhile tells the client of the wait until ctx ends.
func (s *session) meanwhile(ctx context.Context, f *flight, c *call, o *holdfast.Outcome, stop context.CancelCauseFunc) {
	asked := make(chan struct{})
	s.spawn(func() {
		defer close(asked)
		if mode := s.mode(s.abilities(c), o.Review); !c.stateless && mode != "" {
			s.point(ctx, f, c, o, mode, stop)
		}
	})
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		s.tellWaiting(f, o.Review)
		select {
		case <-tick.C:
		case <-ctx.Done():
			<-asked
			return
		}
	}
}

// point asks a client with a session to open the page, or to confirm that it
// was decided. Its yes means no more than that it waits.
func (s *session) point(ctx context.Context, f *flight, c *call, o *holdfast.Outcome, mode string, stop context.CancelCauseFunc) {
	m, err := s.askClient(ctx, f.key, askElicit, s.elicitation(c, o, mode))
	if mode == "url" {
		var p mcp.Builder
		p.Add("elicitationId", mcp.Quote(o.Review))
		s.toClient.offer(f.key, mcp.Message{Method: "notifications/elicitation/complete", Params: p.Bytes()}.Line())
	}
	if err != nil || m.Error != nil {
		return
	}
	if action, _ := mcp.Text(mcp.Get(m.Result, "action")); action != "accept" {
		stop(errDeclined)
	}
}

// elicitation is the params of our own question: where a person decides. It
// carries no authority, and nothing of the request but its name.
func (s *session) elicitation(c *call, o *holdfast.Outcome, mode string) []byte {
	page := s.Page(o.Review)
	why := o.Deciding().Why
	if why == "" {
		why = "a person must decide"
	}
	message := fmt.Sprintf("Holdfast holds %s for a person: %s. Nothing has been done.\nReview %s", o.Boundary, why, o.Review)
	var p mcp.Builder
	if mode == "url" {
		p.Add("mode", mcp.Quote("url"))
		p.Add("message", mcp.Quote(message+". Decide on the page; opening it decides nothing. Or: "+s.ReviewHint(o.Review)))
		p.Add("url", mcp.Quote(page))
		p.Add("elicitationId", mcp.Quote(o.Review))
		return p.Bytes()
	}
	if page != "" {
		page = " at " + page + ", or"
	}
	if c.stateless {
		p.Add("mode", mcp.Quote("form"))
	}
	p.Add("message", mcp.Quote(message+". Decide first,"+page+" with: "+s.ReviewHint(o.Review)+"\nThen confirm here. What you answer here decides nothing."))
	p.Add("requestedSchema", []byte(`{"type":"object","properties":{}}`))
	return p.Bytes()
}

// tellWaiting says to a client that wants to hear of progress that its request
// waits. The numbers are so small that the server's own follow them.
func (s *session) tellWaiting(f *flight, review string) {
	s.mu.Lock()
	token := f.token
	f.waited++
	n := f.waited
	s.mu.Unlock()
	if token == nil {
		return
	}
	var p mcp.Builder
	p.Add(mcp.MetaProgress, token)
	p.Add("progress", strconv.AppendFloat(nil, float64(n)*waitStep, 'g', -1, 64))
	p.Add("message", mcp.Quote("waiting for a person to decide review "+review))
	s.toClient.offer(f.key, mcp.Message{Method: mcp.MethodProgress, Params: p.Bytes()}.Line())
}

// waitStep is by how much the progress of a request that waits grows.
const waitStep = 1e-6

// onHold is the answer to a request that was held (D11): the client is pointed to
// the page where it can be and was not yet, and else gets the handle.
func (s *session) onHold(c *call, o *holdfast.Outcome) []byte {
	mode := s.returns(c, o.Review)
	if mode == "" || s.pointed(c, o.Review) {
		return s.pending(c, o)
	}
	st := state{Boundary: c.boundary, Request: c.asked, Until: time.Now().Add(heldFor).Unix(), Review: o.Review}
	if c.state != nil {
		st.Asked, st.Theirs, st.Answers = c.state.Asked, c.state.Theirs, string(c.answered())
	}
	sealed, err := s.seal(st)
	if err != nil {
		s.odd("a hold could not be pointed to", "why", err.Error())
		return s.pending(c, o)
	}
	var one, asks, out mcp.Builder
	one.Add("method", mcp.Quote(askElicit))
	one.Add("params", s.elicitation(c, o, mode))
	asks.Add(approvalKey, one.Bytes())
	out.Add("resultType", mcp.Quote("input_required"))
	out.Add("inputRequests", asks.Bytes())
	out.Add("requestState", mcp.Quote(sealed))
	out.Add("_meta", mcp.Encode(s.aboutHold(o)))
	return mcp.Respond(c.ID, out.Bytes())
}

// aboutHold is the meta of a hold.
func (s *session) aboutHold(o *holdfast.Outcome) meta {
	m := about(o, o.Deciding())
	m.Review, m.Page = o.Review, s.Page(o.Review)
	if !o.Expires.IsZero() {
		t := o.Expires.UTC().Truncate(time.Second)
		m.Expires = &t
	}
	return m
}

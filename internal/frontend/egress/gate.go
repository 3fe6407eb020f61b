package egress

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// This file is how an answer in events goes on while rules judge what it calls: its
// text passes, and from the first event of a tool's call on everything waits until
// all calls that have begun are whole and judged. Then it goes on, or ends with the
// provider's own kind of error.

// Bounds of what waits for a judgement.
const (
	maxGated      = 64 << 10 // events
	maxGatedBytes = 16 << 20
)

// gated says whether rules judge the answer to x call by call. Where answers are not
// redacted their events are not told apart, and they are judged whole.
func (x *exchange) gated() bool {
	return x.model != nil && x.model.req != nil && x.model.req.Stream &&
		x.domain.Models.Answers == domain.JudgedCalls && x.domain.Response != domain.Off
}

// watch lets the rules judge what the model calls while its answer comes.
func (x *exchange) watch(ctx context.Context) {
	x.model.judge = func(status int) error {
		r := result{Exchange: x.told(), Model: x.modelAnswer(x.maskText)}
		r.Status = status
		body, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return kernel.JudgeSoFar(ctx, holdfast.Output{Body: body})
	}
}

// errJudged is why an answer ended that the rules refused: the crossing's own K8
// says so again, and records it.
var errJudged = errors.New("what the model calls was refused")

// judged asks the rules of what has come so far.
func (m *model) judged(status int) error {
	if m == nil || m.judge == nil {
		return nil
	}
	return m.judge(status)
}

// relayJudged gives an answer to the client that is no stream of events, once all of
// it was judged.
func (a *answer) relayJudged(ctx context.Context) error {
	to, held := a.w, newHeld(min(a.most, maxHeld))
	for name, values := range to.Header() {
		held.header[name] = values
	}
	a.w = held
	err := a.relay(ctx)
	a.w, a.got.began = to, false
	if err == nil {
		a.model.meter.Close()
		if err = a.model.judged(a.got.status); err != nil {
			a.model.refused = asRefusal(err)
			return errJudged
		}
		a.got.began = true
		held.give(to)
	}
	return err
}

// asRefusal is an error of K8's as people are told it.
func asRefusal(err error) *holdfast.Error {
	if e, ok := errors.AsType[*holdfast.Error](err); ok {
		return e
	}
	return &holdfast.Error{Kind: holdfast.KindEval, Gate: holdfast.K8, Why: "the answer could not be judged", Err: err}
}

// meter reads an event for the meter, and says whether it is the client's. What
// begins a call, and what cannot be read, holds the answer.
func (e *events) meter(data []byte) (forClient bool) {
	m := e.a.model
	if m == nil || m.meter == nil {
		return true
	}
	switch m.meter.Event(data) {
	case dialect.Unasked:
		return false
	case dialect.Call, dialect.Unread:
		e.gate = e.gate || m.judge != nil
	}
	return true
}

// named reads the name of a line that is no data. What streams do not have holds the
// answer.
func (e *events) named(name []byte) {
	if m := e.a.model; m != nil && m.meter != nil && !m.meter.Field(string(name)) {
		e.gate = e.gate || m.judge != nil
	}
}

// pass says whether what waits for the rules may go on: the calls that began are
// whole, or nothing more comes, and the rules do not object.
func (e *events) pass(all bool) (bool, error) {
	if !e.gate {
		return true, nil
	}
	m := e.a.model
	a := m.meter.Answer()
	if !all {
		for _, c := range a.Calls {
			if !c.Complete {
				return false, nil
			}
		}
		if a.Unread || len(a.Calls) == 0 {
			return false, nil // nobody knows what is called until all of it is here
		}
	}
	err := m.judged(e.a.got.status)
	if err == nil {
		e.gate = false
		return true, nil
	}
	m.refused = asRefusal(err)
	f := dialect.Refusal{Status: http.StatusForbidden, Code: string(m.refused.Kind), Why: "holdfast: " + m.refused.Why}
	e.queue, e.held = nil, 0
	e.out = append(e.out, f.Event(m.req.Dialect)...)
	return false, errJudged
}

// bounds are how much may wait.
func (e *events) bounds() (events, size int) {
	if e.gate || e.a.mode == domain.Restore { // a private key may come in a thousand pieces
		return maxGated, maxGatedBytes
	}
	return maxQueue, maxQueued
}

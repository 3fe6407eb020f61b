package kernel

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// classify finds the pattern that speaks of the request (spec 001, layer 2).
func (j *judgement) classify() {
	if len(j.pol.Risks) == 0 || j.contract == nil {
		return
	}
	a, read := j.acting()
	j.class = review.Classify(j.pol.Risks, a)
	j.unread = !read || len(a.Action) > review.MaxAction
}

// acting is what patterns read of the request, and whether they can read all of
// it: an action that is no text is read by none.
func (j *judgement) acting() (a review.Acting, read bool) {
	a = review.Acting{Boundary: j.req.Boundary, Operation: j.contract.Operation}
	if j.whoErr == nil {
		a.Agent, a.Kind = j.who.Agent, j.who.Kind
	}
	read = true
	if j.doc != nil {
		if m, ok := j.doc.Value().(map[string]any); ok && m["action"] != nil {
			a.Action, read = m["action"].(string)
		}
	}
	return a, read
}

// risk returns the risk by which the request is evaluated.
func (j *judgement) risk() holdfast.Risk {
	return j.contract.RiskFor(j.class, j.req.ReadsOnly, j.unread)
}

// prohibition says what prohibits a request.
func (j *judgement) prohibition() (why, rule string) {
	if j.class != nil && j.class.Risk == holdfast.Prohibited &&
		j.contract.RiskOf(j.req.ReadsOnly) != holdfast.Prohibited {
		return "a pattern of risks prohibits it", j.class.Source
	}
	return "the contract prohibits this boundary", j.contract.Source
}

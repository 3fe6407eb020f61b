package kernel

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/internal/policy/pricing"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/trace"
)

// judgement is everything that is known of one request while it is evaluated: who asks for
// what, and for each gate its facts and what it found. Facts are read before the gates are
// evaluated (D3); an error among them is why a fact is missing. It belongs to one goroutine.
type judgement struct {
	k   *Kernel
	pol *policy
	req *holdfast.Request
	// now is the clock, by which tokens, reviews and limits are evaluated; at is the
	// record's own time, which never goes back even if the clock does.
	now, at time.Time
	// looks says that nothing is to come of it; by whom it is, and whether its caller acts
	// itself.
	looks  bool
	own    *Reserved // of a feature's own crossing
	leased bool

	opinions []holdfast.Opinion
	feats    *participation // nil if no feature joins crossings
	tasks    *tasks         // of the crossing; nil if it is only looked at

	participation // that of feats

	schemaFacts
	callerFacts
	roomFacts
	flowFacts
	replayFacts
	humanFacts
	ruleFacts
}

// schemaFacts are those of K1: the request as made (D5).
type schemaFacts struct {
	doc      *payload.Doc
	docErr   error
	beside   *payload.Doc       // nil if there is only a payload
	bound    string             // the exact hash over both, if there are both
	contract *contract.Contract // nil: no contract lists the boundary
	class    *review.Pattern    // of risk; nil if none matches
	unread   bool               // its words are more than patterns read
}

// callerFacts are those of K2, and of what precedes the gates.
type callerFacts struct {
	who      holdfast.Identity
	whoErr   error
	factErr  error // of the agent or the revocation
	agent    holdfast.Agent
	newAgent bool
	branch   branch // of the agent's tree, at the request's place
	revoked  bool
	granted  token.Set
	chain    *EndedChain // that a budget ended, or nil
}

// roomFacts are those of K3.
type roomFacts struct {
	roomErr  error // of the counters and rates
	counters []budget.Counter
	room     *budget.Refusal // what the peek found
	draws    []budget.Draw
	rates    []budget.Rate
	planErr  *budget.Refusal
	price    pricing.Price
	priceErr *holdfast.Opinion // the refusal of a request without a price
	// overBudget says that a budget of its own was spent, and a person asked.
	overBudget bool
}

// flowFacts are those of K4.
type flowFacts struct {
	id          string
	correlation string
	traceparent string
	above       trace.SpanContext // the parent of the crossing's span
	corrErr     error
}

// replayFacts are those of K5.
type replayFacts struct {
	keptErr error // of the settled results
	replay  *Replay
	scope   string // "" without a replay
}

// humanFacts are those of K7.
type humanFacts struct {
	human  approval.Case // reviews and remembered approvals
	score  *float64
	limit  *float64 // the threshold
	reason string   // the code of why the gate that is evaluated asks, or ""
}

// ruleFacts are those of K8. What rules name is fetched before K8 is evaluated, and again
// for the output.
type ruleFacts struct {
	fetched, fetchedOut  map[string]constitution.Fetched
	keptFetched, keptOut []ledger.Fetched // of them, in the record
	spoke                []constitution.Finding
	ruled                bool                 // the rules were evaluated
	sights               []constitution.Sight // what past functions see of the request
	asks                 constitution.History // nil until K8 is evaluated
	ticket               *history.Ticket      // nil for a request that is only looked at
}

// verdict is the worst of the opinions; with a gate missing it is Deny.
func (j *judgement) verdict() holdfast.Verdict {
	if len(j.opinions) < gateCount {
		return holdfast.Deny
	}
	vs := make([]holdfast.Verdict, 0, len(j.opinions))
	for _, op := range j.opinions {
		vs = append(vs, op.Verdict)
	}
	return holdfast.Worst(vs...)
}

// isUnruled reports whether the request is Holdfast's own, which nothing but permission,
// ledger and halt may keep from being made.
func (j *judgement) isUnruled() bool { return j.own != nil && j.own.Unruled != "" }

// asked says whether a gate was asked, and its verdict.
func (j *judgement) asked(g holdfast.Gate) (holdfast.Verdict, bool) {
	for _, op := range j.opinions {
		if op.Gate == g {
			return op.Verdict, true
		}
	}
	return holdfast.Deny, false
}

// tenant is the request's tenant, or the reserved one where no token could be
// verified (D5).
func (j *judgement) tenant() string {
	if j.whoErr != nil || j.who.Tenant == "" {
		return holdfast.Unverified
	}
	return j.who.Tenant
}

func (j *judgement) key() string {
	if j.doc == nil {
		return ""
	}
	return j.doc.Key()
}

func (j *judgement) exact() string {
	switch {
	case j.doc == nil:
		return ""
	case j.beside != nil:
		return j.bound
	}
	return j.doc.Exact()
}

// consumes is what the contract and the request ask together. An overflow
// saturates, so that it is refused rather than wrapped.
func (j *judgement) consumes() map[holdfast.Resource]int64 {
	if len(j.req.Consumes) == 0 && j.price.Micro == 0 {
		return j.contract.Consumes
	}
	sum := make(map[holdfast.Resource]int64, len(j.contract.Consumes)+len(j.req.Consumes))
	for r, n := range j.contract.Consumes {
		sum[r] = n
	}
	for r, n := range j.req.Consumes {
		if n < 0 {
			sum[r] = n
			continue
		}
		sum[r] = budget.AddCapped(sum[r], n)
	}
	if n := sum[holdfast.MoneyMicro]; j.price.Micro > 0 && n >= 0 {
		sum[holdfast.MoneyMicro] = budget.AddCapped(n, j.price.Micro)
	}
	return sum
}

// reviewIDs is the review that was found for the request, if any.
func (j *judgement) reviewIDs() []string {
	if j.human.Review == nil {
		return nil
	}
	return []string{j.human.Review.ID}
}

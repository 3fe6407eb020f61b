package kernel

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/trace"
)

// judgement is everything that is known of one request while it is judged:
// first the facts, which were fetched before any gate is asked (D3), then what
// the gates found. It belongs to one goroutine.
type judgement struct {
	k *Kernel
	// feats is nil if no feature joins crossings.
	feats *participation
	pol   *policy
	req   *holdfast.Request
	// looks says that nothing is to come of it.
	looks bool
	// now is the clock, by which tokens, reviews and limits are judged; at
	// is the record's own time, which never goes back even if the clock does.
	now, at time.Time

	// The request, as made (D5).
	id          string
	correlation string
	traceparent string
	above       trace.SpanContext // of what the crossing's span stands below
	corrErr     error
	doc         *payload.Doc
	docErr      error
	beside      *payload.Doc // nil where nothing stands beside the payload
	bound       string       // the exact hash over both, where something does
	who         holdfast.Identity
	whoErr      error
	contract    *contract            // nil: no contract lists the boundary
	class       *review.Pattern      // of risk; nil where none matches
	unread      bool                 // its words are more than patterns read
	submission  *goalrule.Submission // of goal/admit, nil elsewhere
	goalErr     error

	// Facts from the store, with the error that kept them away.
	factErr  error // of the agent or the revocation
	bookErr  error // of the reviews
	keptErr  error // of the settled results
	roomErr  error // of the counters and rates
	agent    holdfast.Agent
	newAgent bool
	branch   branch // of the agent's tree, where the request stands
	revoked  bool
	review   *review.Review
	rules    []*keptRule // that a person remembered for this caller here
	replay   *Replay
	scope    string // of replay; empty when none is asked
	counters []budget.Counter
	room     *budget.Refusal // what the peek found
	goals    GoalsPause      // of goal/admit
	chain    *endedChain     // that a budget ended; nil where none did
	// The judge's scores, or why there are none; consult fetches them before K7
	// is asked; unasked says that none may be asked now, as by Check. judging
	// says that this is a judge's own crossing, responding that it is Holdfast's
	// own answer, keeping that it is Holdfast's keeping of versions, leased that its
	// caller acts itself.
	scores     *review.Scores
	judgeErr   error
	unasked    bool
	consult    func(context.Context)
	judging    bool
	responding bool
	keeping    bool
	leased     bool
	// What rules name, fetched before K8 is asked, and before it is asked again
	// of what came out.
	fetched, fetchedOut  map[string]constitution.Fetched
	keptFetched, keptOut []ledger.Fetched // of them, in the record

	// What the gates found.
	opinions []holdfast.Opinion
	granted  token.Set
	spoke    []constitution.Finding
	verdicts []goalrule.Verdict  // on a submission
	paused   []CriticalViolation // those for which goals were paused
	stops    stopping            // what its entry's transaction stops
	// overBudget says that a budget of its own was spent, and a person asked.
	overBudget bool
	draws      []budget.Draw
	rates      []budget.Rate
	planErr    *budget.Refusal
	sights     []constitution.Sight // what past functions see of the request
	asks       constitution.History // nil until K8 is asked
	ticket     *history.Ticket      // nil where it is only looked at
	price      price
	priceErr   *holdfast.Opinion // K3's refusal of what cannot be priced
	score      *float64
	limit      *float64        // K7's threshold
	approved   bool            // an approval is to be used by the begin
	byRule     *keptRule       // a remembered rule is to be used by the begin
	ended      string          // of a remembered rule that would have covered it
	why        string          // the hold's reason
	cause      string          // its code, "" if it has none
	askedBy    []holdfast.Gate // the gates that put it to a person
	heldAs     string          // the name of the hold
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
	if len(j.req.Consumes) == 0 && j.price.micro == 0 {
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
	if n := sum[holdfast.MoneyMicro]; j.price.micro > 0 && n >= 0 {
		sum[holdfast.MoneyMicro] = budget.AddCapped(n, j.price.micro)
	}
	return sum
}

// reviewIDs is the review that was found for the request, if any.
func (j *judgement) reviewIDs() []string {
	if j.review == nil {
		return nil
	}
	return []string{j.review.ID}
}

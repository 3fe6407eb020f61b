package approval

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Request is a request as approvals see it.
type Request struct {
	review.Binding
	Principal string
	Session   string
	Doc       *payload.Doc // nil if it is malformed
	// Joined says that Exact covers more than Doc: what is next to the payload.
	Joined   bool
	Contract *contract.Contract
	// Now is the clock; At the record's own time, which never goes back.
	Now, At time.Time
}

// Case is one request, the answers that there are to it, and what its gates made of them. It
// belongs to one goroutine.
type Case struct {
	Request
	book *Book

	// Err is why the answers could not be read.
	Err error
	// Review is the newest one about exactly this request, or nil.
	Review *review.Review
	rules  []*Rule // remembered for this caller at this boundary

	// Approved says that the begin uses the approval of Review up, Rule that it uses a
	// remembered one.
	Approved bool
	Rule     *Rule
	// Gates are those that asked for a person, Why and Cause their reason and its code, and
	// Held the name of the hold.
	Gates      []holdfast.Gate
	Why, Cause string
	Held       string
	ended      string // why a remembered approval that would have covered it does not
}

// NewCase returns the Case of a request to which no answer was read yet.
func (b *Book) NewCase(r Request) Case { return Case{book: b, Request: r} }

// Read reads the answers that there are to the request.
func (c *Case) Read(tx Reader) {
	r, err := ownReview(tx, c.Binding, c.Principal)
	if err == nil {
		c.Review = &r
	} else if !errors.Is(err, table.ErrNotFound) {
		c.Err = err
	}
	scope := callerScope(c.Tenant, c.Agent, c.Principal, c.Boundary)
	if c.rules, err = readRules(tx, scope); err != nil {
		c.Err = err
	}
}

// ownReview returns the newest review of that binding that this principal asked: an
// answer to one person's question is not another's to use, though their agents
// bear one name.
func ownReview(tx Reader, b review.Binding, principal string) (review.Review, error) {
	r, err := tx.ReviewFor(b)
	if err != nil || r.Principal == principal {
		return r, err
	}
	rs, err := tx.Reviews(b.Tenant, review.None, listLimit)
	if err != nil {
		return review.Review{}, err
	}
	for _, r := range rs {
		if r.Agent == b.Agent && r.Boundary == b.Boundary && r.Exact == b.Exact && r.Principal == principal {
			return r, nil
		}
	}
	return review.Review{}, table.ErrNotFound
}

// findAnswer returns what the review says to the request.
func (c *Case) findAnswer() review.State {
	if c.Review == nil {
		return review.None
	}
	return c.Review.Answer(c.Now, c.Policy)
}

// IsAnswered reports whether a person has answered exactly this request.
func (c *Case) IsAnswered() bool {
	a := c.findAnswer()
	return c.Err == nil && (a == review.Approved || a == review.Rejected)
}

// Resolve returns the opinion of a gate that asks for a person: a hold, or the answer that one
// has given to exactly this request, or, for K7, once and for others like it.
func (c *Case) Resolve(g holdfast.Gate, rule, why, cause string) holdfast.Opinion {
	if c.Err != nil {
		return holdfast.Opinion{Gate: g, Kind: holdfast.KindApprovalChannel, Rule: review.NameChannel,
			Why: "the reviews cannot be read", Hint: "see `holdfast doctor`"}
	}
	if c.Doc == nil {
		return holdfast.Opinion{Gate: g, Kind: holdfast.KindApprovalChannel,
			Why: "what is not well formed cannot be put to a person"}
	}
	r, answer := c.Review, c.findAnswer()
	switch answer {
	case review.Approved:
		c.Approved = true
		return newAllow(g, "review "+r.ID, "approved by "+r.Reviewer)
	case review.Rejected:
		return r.RefuseRejected(g)
	}
	if kept := c.ruleFor(g); kept != nil {
		c.Rule = kept
		return newAllow(g, kept.Name(), "as "+kept.Reviewer()+" remembered until "+review.FormatTime(kept.said.Until))
	}
	if answer == review.Expired {
		return r.RefuseLate(g)
	}
	hold := holdfast.Opinion{Gate: g, Verdict: holdfast.Hold, State: "BLOCKED", Rule: rule,
		Hint: "a person decides with `holdfast review`"}
	c.Held = review.NameOpened
	switch {
	case answer == review.Pending:
		hold.Hint = fmt.Sprintf("a person decides with `holdfast review approve %s` until %s", r.ID,
			review.FormatTime(r.Expires))
	case answer == review.Voided:
		var what string
		c.Held, what = r.Moved(pinOf(c.Contract, r))
		why += "; " + what + " changed after review " + r.ID + " was opened"
		cause = ""
	case r != nil && r.State == review.Used && c.Now.Before(r.Decided.Add(review.Lifetime)):
		c.Held = review.NameUsed
		why += "; the approval of review " + r.ID + " was used already"
		cause = ""
	}
	if c.ended != "" {
		why += "; " + c.ended
		cause = ""
	}
	hold.Why, c.Why, c.Cause, c.Gates = why, why, cause, append(c.Gates, g)
	return hold
}

func newAllow(g holdfast.Gate, rule, why string) holdfast.Opinion {
	return holdfast.Opinion{Gate: g, Verdict: holdfast.Allow, State: "HUMAN_APPROVED", Rule: rule, Why: why}
}

// ruleFor returns the remembered rule that lets the request pass, if the gate may
// be answered by one: what a rule of the constitution sends for review is reviewed
// each time.
func (c *Case) ruleFor(g holdfast.Gate) *Rule {
	if g != holdfast.K7 {
		return nil
	}
	return c.findRule()
}

// pinOf returns the pin of the contract now; without a contract, that of the review.
func pinOf(c *contract.Contract, r *review.Review) string {
	if c == nil {
		return r.Pin
	}
	return c.Pin
}

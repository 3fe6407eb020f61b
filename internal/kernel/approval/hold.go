package approval

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Question returns the review of the request, of which a person sees that. The caller
// adds what else people see of the request, and its entry.
func (c *Case) Question(seen *record.Preview) (review.Review, error) {
	r, err := c.book.newReview(seen)
	if err != nil {
		return r, err
	}
	r.Binding, r.Principal, r.Session, r.Why, r.Cause = c.Binding, c.Principal, c.Session, c.Why, c.Cause
	r.Contract, r.Pin, r.Gates, r.Shape = c.Contract.Hash, c.Contract.Pin, c.Gates, c.findShape(seen)
	// Created orders the questions of one request, whatever the clock does.
	r.Created, r.Expires = c.At, c.Now.Add(review.Lifetime)
	return r, nil
}

// newReview returns a question of which a person sees that.
func (b *Book) newReview(seen *record.Preview) (review.Review, error) {
	// The ID is short enough to type and need not be secret: deciding needs the
	// operator key, never the ID alone (D38).
	id, err := b.randomHex(5)
	if err != nil {
		return review.Review{}, err
	}
	nonce, err := b.randomHex(16)
	return review.Review{ID: "rv_" + id, Nonce: nonce, State: review.Pending, Preview: seen.Text,
		PreviewHash: seen.Hash(), Cut: seen.Cut, Masked: seen.Masked}, err
}

func (b *Book) randomHex(n int) (string, error) {
	out := make([]byte, n)
	if _, err := io.ReadFull(b.src.Random, out); err != nil {
		return "", &holdfast.Error{Kind: holdfast.KindInternal, Why: "no randomness", Err: err}
	}
	return hex.EncodeToString(out), nil
}

// findShape returns what is known of the arguments' members in addition to the preview, for a
// rule that a person may make of it. Of a request with more than arguments
// nothing but its exact hash is remembered.
func (c *Case) findShape(seen *record.Preview) []review.Arg {
	if seen.Cut || c.Joined {
		return nil
	}
	shown, err := payload.Parse([]byte(seen.Text))
	if err != nil {
		return nil
	}
	return review.ShapeOf(c.Doc.Value(), shown.Value())
}

// NewQuestion returns a question that Holdfast itself asks a person, about no request: about
// names its subject, and shown is what the person sees. The caller fills in who asks it, of
// whom and why. domain begins what the exact hash is over, so that it is never that of a payload.
func (b *Book) NewQuestion(about, domain string, shown any) (review.Review, error) {
	text, err := json.Marshal(shown)
	if err != nil {
		return review.Review{}, err
	}
	seen, err := b.src.Records.Preview(text)
	if err != nil {
		return review.Review{}, err
	}
	r, err := b.newReview(&seen)
	r.About, r.Exact, r.Risk, r.Created = about, hashText([]byte(domain+seen.Text)), holdfast.High, b.src.Instant()
	return r, err
}

// Proposed returns the event of a question of NewQuestion.
func Proposed(r *review.Review) record.Event {
	return record.Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_proposed", Who: r.Principal,
		Subject: r.ID, Part: []byte(r.Preview),
		Data: map[string]any{"about": r.About, "agent": r.Agent, "boundary": r.Boundary, "exact_hash": r.Exact,
			"preview_hash": r.PreviewHash, "policy": r.Policy, "why": r.Why}}
}

// Attach sets *r to the question about the same request that waits already (D11), and
// reports whether there is one. Otherwise it checks that one more may wait.
func (c *Case) Attach(tx Tx, r *review.Review) (bool, error) {
	old, err := ownReview(tx, r.Binding, r.Principal)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return false, err
	}
	if err == nil {
		switch old.Answer(c.Now, c.Policy) {
		case review.Pending:
			*r, c.Held = old, review.NameWaiting
			if old.State == review.Deferred {
				c.Held = review.NameDeferred
			}
			return true, nil
		case review.Voided:
			name, what := old.Moved(pinOf(c.Contract, &old))
			if err := voidReview(tx, old, name, what+" changed after this was asked"); err != nil {
				return false, err
			}
		case review.Approved, review.Rejected:
			return false, newRefusal(holdfast.KindConflict, review.NameDecided,
				"review "+old.ID+" was decided a moment ago", "ask again")
		}
	}
	return false, checkCapacity(tx, r)
}

// Open writes a new question.
func (c *Case) Open(tx Tx, r *review.Review) error {
	other, err := c.findOther(tx)
	if err != nil {
		return err
	}
	if other != "" {
		c.Held = review.NameArguments
		r.Why += "; the approval of review " + other + " is for other arguments"
	}
	if err := tx.PutReview(*r, review.None); err != nil {
		return err
	}
	data := map[string]any{"agent": r.Agent, "boundary": r.Boundary, "exact_hash": r.Exact,
		"preview_hash": r.PreviewHash, "policy": r.Policy, "why": r.Why, "expires_at": review.FormatTime(r.Expires)}
	if r.Asker != "" {
		data["asker"] = r.Asker
	}
	if c.Joined {
		data["beside"] = true // the preview is of more than the payload
	}
	return tx.Event(record.Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_proposed", Who: r.Principal,
		Subject: r.ID, Part: []byte(r.Preview), Data: data})
}

// findOther returns the ID of an approval of the same caller at the same boundary that is
// for other arguments, so that an agent which changed them learns why it is
// held again. It returns nothing else of it.
func (c *Case) findOther(tx Reader) (string, error) {
	const look = 100
	rs, err := tx.Reviews(c.Tenant, review.Approved, look)
	if err != nil {
		return "", err
	}
	for i := range rs {
		r := &rs[i]
		if r.Agent == c.Agent && r.Principal == c.Principal && r.Boundary == c.Boundary && r.Exact != c.Exact &&
			r.Answer(c.Now, c.Policy) == review.Approved {
			return r.ID, nil
		}
	}
	return "", nil
}

// MaxWaiting is the number of questions of one tenant that may wait for people, and
// agentWaiting that of one agent. No person can evaluate more.
const (
	MaxWaiting   = 1000
	agentWaiting = 100
)

// checkCapacity refuses one more question where too many wait already.
func checkCapacity(tx Reader, r *review.Review) error {
	waiting, own := 0, 0
	for _, state := range []review.State{review.Pending, review.Deferred} {
		rs, err := tx.Reviews(r.Tenant, state, MaxWaiting)
		if err != nil {
			return err
		}
		waiting += len(rs)
		for i := range rs {
			if rs[i].Agent == r.Agent {
				own++
			}
		}
	}
	if own < agentWaiting && waiting < MaxWaiting {
		return nil
	}
	return newRefusal(holdfast.KindApprovalChannel, "",
		fmt.Sprintf("%d questions of this agent and %d of its tenant wait for a person already", own, waiting),
		"answer them first: `holdfast review ls`")
}

// Waiting returns the reviews about any of those subjects of an agent that wait for
// an answer.
func Waiting(tx Reader, tenant, agent string, about ...string) ([]review.Review, error) {
	var out []review.Review
	for _, state := range []review.State{review.Pending, review.Deferred} {
		rs, err := tx.Reviews(tenant, state, MaxWaiting)
		if err != nil {
			return nil, err
		}
		for _, r := range rs {
			if slices.Contains(about, r.About) && r.Agent == agent {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// voidReview closes a question, or an approval, for which there is no answer any longer:
// of an earlier policy, or of what a remembered rule has let pass.
func voidReview(tx Tx, r review.Review, name, why string) error {
	was := r.State
	r.State = review.Voided
	if err := tx.PutReview(r, was); err != nil {
		return err
	}
	if err := tx.Event(record.Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_voided", Who: "holdfast",
		Subject: r.ID, Data: map[string]any{"why": why, "state": string(was)}}); err != nil {
		return err
	}
	return tx.CloseHeld(&r, was, ledger.Denied, &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7,
		Rule: name, Why: why})
}

package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// checkGenuine checks, where an approval is used, what was checked when it was
// given: that a person with an operator key signed exactly this (D11), and
// that the ledger has of the review what its row does. A row that was
// changed in the store is no approval.
func (b *Book) checkGenuine(tx Reader, r *review.Review) error {
	forged := &holdfast.Error{Kind: holdfast.KindApprovalChannel, Gate: holdfast.K7, Rule: review.NameForged,
		Why:  "the approval of review " + r.ID + " carries no signature of an operator",
		Hint: "somebody changed the store: look at it with `holdfast ledger verify`"}
	var signed operator.Signed
	if json.Unmarshal(r.Word, &signed) != nil || len(signed.Statement) > operator.MaxStatement {
		return forged
	}
	said, err := operator.Parse(signed.Statement)
	if err != nil {
		return forged
	}
	for _, key := range b.src.Operator() {
		// Its age was checked when it was given.
		s, err := operator.Verify(key, signed, said.At)
		if err == nil && s.Act == operator.Approve && s.Subject == r.ID && s.Nonce == r.Nonce && s.Exact == r.Exact &&
			s.PreviewHash == r.PreviewHash && s.Policy == r.Policy && s.Runtime == b.src.Runtime &&
			s.Reviewer == r.Reviewer {
			if known, err := isRecorded(tx, r); err != nil || known {
				return err
			}
			return forged
		}
	}
	return forged
}

// What the ledger calls that a rule was made, and that it was ended.
const (
	policyRemembered = "policy_remembered"
	policyForgotten  = "policy_forgotten"
)

// forEachEvent calls fn for the ledger's events about something that belongs to a
// crossing. More of them than are read is an error.
func forEachEvent(tx Reader, tenant, crossing, subject string, fn func(*ledger.Event) error) error {
	const most = 1000 // a person may put a review off again and again
	events, err := tx.Events(tenant, crossing, most)
	if err != nil {
		return err
	}
	if len(events) == most {
		return fmt.Errorf("crossing %s has %d events or more", crossing, most)
	}
	for _, s := range events {
		e, err := ledger.ParseEvent(s.Record)
		if err != nil {
			return err
		}
		if e.Subject != subject {
			continue
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// isRecorded reports whether the ledger knows the review as its row has it: asked by
// that agent for that person at that boundary, approved no longer ago than it
// lasts, and never used.
func isRecorded(tx Reader, r *review.Review) (bool, error) {
	asked, used, until := false, false, time.Time{}
	err := forEachEvent(tx, r.Tenant, r.Crossing, r.ID, func(e *ledger.Event) error {
		switch e.Name {
		case "review_executed":
			used = true
		case "review_decided":
			until = e.Timestamp.Add(review.Lifetime + time.Second) // the row's time is a moment older
		case "review_proposed":
			var of struct {
				Agent    string `json:"agent"`
				Boundary string `json:"boundary"`
				Exact    string `json:"exact_hash"`
			}
			if err := json.Unmarshal(e.Data, &of); err != nil {
				return err
			}
			asked = e.Who == r.Principal && of.Agent == r.Agent && of.Boundary == r.Boundary && of.Exact == r.Exact
		}
		return nil
	})
	return asked && !used && !r.Expires.After(until), err
}

// explainRecordedEnd returns why a rule is invalid by the ledger, "" if it was
// made and not ended: its row may have been restored.
func explainRecordedEnd(tx Reader, kept *Rule) (string, error) {
	r, err := tx.Review(kept.rule.Review)
	if errors.Is(err, table.ErrNotFound) {
		return "the review that it was made of is gone", nil
	}
	if err != nil {
		return "", err
	}
	made, ended := false, ""
	err = forEachEvent(tx, kept.rule.Tenant, r.Crossing, kept.id, func(e *ledger.Event) error {
		switch e.Name {
		case policyRemembered:
			made = true
		case policyForgotten:
			ended = "forgotten by " + e.Who
		}
		return nil
	})
	if ended == "" && !made {
		ended = "the ledger does not know that it was made"
	}
	return ended, err
}

package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Remember makes a narrow rule of a review that was approved within the last
// 24 hours, on a person's word (D11): the statement's Subject is the review,
// its Value the rule's canonical text (review.RuleOf makes one), its Until when
// the rule ends, at most 90 days ahead; it is bound to the review as an answer
// is. Errors are those of Decide, and a ValueError for a rule that is invalid or
// does not cover what was approved.
func (b *Book) Remember(signed operator.Signed) (review.Remembered, error) {
	kept := &Rule{Word: signed, id: ruleID(signed)}
	s, err := b.runSigned(signed, operator.Remember, func(tx Tx, w *Word) error {
		var err error
		if kept.rule, err = review.ParseRule(w.Value); err != nil {
			return err
		}
		kept.said = w.Statement
		r, err := findReview(tx, w.Subject)
		if err != nil {
			return err
		}
		if err := b.checkRule(&r, w, &kept.rule); err != nil {
			return err
		}
		if err := b.keepRule(tx, kept); err != nil {
			return err
		}
		data := w.Data()
		data["rule"], data["until"], data["review"] = kept.rule.Words(), review.FormatTime(w.Until), r.ID
		return tx.Event(record.Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: policyRemembered,
			Who: w.Reviewer, Subject: kept.id, Data: data})
	})
	if err != nil {
		return review.Remembered{}, err
	}
	b.announceRule("warning", policyRemembered, kept,
		s.Reviewer+" made the rule "+kept.id+": it is not asked about until "+review.FormatTime(s.Until))
	return b.describeRule(kept, ruleUse{}), nil
}

// announceRule wakes the callers of Watch and notifies people of a rule.
func (b *Book) announceRule(level, event string, kept *Rule, why string) {
	b.Wake()
	b.src.Notify(level, event, review.Review{Binding: review.Binding{Tenant: kept.rule.Tenant, Agent: kept.rule.Agent,
		Boundary: kept.rule.Boundary}}, why)
}

// checkRule compares a rule with the approval that it is made of.
func (b *Book) checkRule(r *review.Review, w *Word, rule *review.Rule) error {
	now := b.src.Now()
	c, _ := b.src.Contract(r.Boundary)
	if err := r.CheckSeen(&w.Statement); err != nil {
		return err
	}
	if w.IsAsker(r) {
		return review.RefuseSelf(w.Reviewer)
	}
	switch {
	case r.State != review.Approved && r.State != review.Used || !now.Before(r.Decided.Add(review.Lifetime)):
		return noRule("review/not_approved", "review "+r.ID+" was not approved within "+review.Lifetime.String(),
			"approve it first, and remember it then")
	case slices.Contains(r.Gates, holdfast.K8):
		return noRule("review/asked_by_a_rule",
			"a rule of the constitution asks for a person each time, and nothing is remembered past it",
			"change the rule")
	case c == nil || c.Hash == "" || c.Hash != r.Contract:
		return noRule("review/tool_changed", "the tool or its contract changed since review "+r.ID+" was asked",
			"the agent must ask anew")
	case cannotRemember(c) != "":
		return noRule("review/never_remembered", cannotRemember(c)+", so that nothing is remembered of it",
			"each crossing is put to a person")
	case !w.Until.After(now) || w.Until.Sub(w.At) > review.RuleLifetime:
		return noRule("review/too_long", "a rule ends within 90 days", "such as --remember 30d")
	case rule.Review != r.ID || rule.Tenant != r.Tenant || rule.Agent != r.Agent || rule.Principal != r.Principal ||
		rule.Boundary != r.Boundary || rule.Contract != r.Contract:
		return noRule("review/no_rule", "the rule is about something other than review "+r.ID, "")
	}
	return b.checkCovers(r, rule)
}

// checkCovers checks that the rule covers what was approved, that it says nothing of
// values which no one saw, and that it holds nothing that must not be written down.
func (b *Book) checkCovers(r *review.Review, rule *review.Rule) error {
	no := func(why string) error {
		return noRule("review/no_rule", "the rule "+why, "make it of what the review shows")
	}
	if r.Cut {
		return no("is of a review that is shown in part")
	}
	if rule.Exact != "" {
		if rule.Exact != r.Exact {
			return no("is of other arguments than were approved")
		}
		return nil
	}
	shown, err := r.Shown()
	if err != nil || len(r.Shape) != len(rule.Members) {
		return no("has other members than the arguments that were approved")
	}
	said := map[string]string{}
	for i, a := range r.Shape {
		m := rule.Members[i]
		if m.Is != review.Any {
			said[m.Name] = m.Value
		}
		switch {
		case m.Name != a.Name:
			return no("has other members than the arguments that were approved")
		case m.Is == review.Any && m.Value != a.Type:
			return no(fmt.Sprintf("gives the member %q another type", excerpt.Of(a.Name, 64)))
		case m.Is != review.Any && a.Hidden:
			return no(fmt.Sprintf("binds the member %q to a value that nobody saw", excerpt.Of(a.Name, 64)))
		case a.Hidden:
			delete(shown, a.Name)
		}
	}
	if !rule.CoversShown(shown) {
		return no("does not cover what was approved")
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	if found, err := b.src.Redact.JSON(text); err != nil || found.Found() {
		return no("holds a secret or personal data, and would be kept as it is")
	}
	return nil
}

// Forget ends a remembered rule on a person's word: the statement's Subject is
// its id. Errors: NotFoundError, and ConflictError where it was forgotten
// already.
func (b *Book) Forget(signed operator.Signed) (review.Remembered, error) {
	var kept *Rule
	var use ruleUse
	_, err := b.runSigned(signed, operator.Forget, func(tx Tx, w *Word) error {
		var err error
		kept, err = ruleByID(tx, w.Subject)
		if errors.Is(err, table.ErrNotFound) {
			return &holdfast.Error{Kind: holdfast.KindNotFound, Rule: "review/no_such_rule",
				Why:  fmt.Sprintf("there is no remembered rule %q", excerpt.Of(w.Subject, 64)),
				Hint: "`holdfast review remembered` lists them"}
		}
		if err != nil {
			return err
		}
		if err := w.CheckTenant(kept.rule.Tenant); err != nil {
			return err
		}
		if !kept.Forgotten.IsZero() {
			return noRule("review/forgotten", "the rule "+kept.id+" was forgotten already by "+kept.ForgottenBy, "")
		}
		kept.Forgotten, kept.ForgottenBy = b.src.Instant(), w.Reviewer
		if use, _, err = ruleUses.Find(tx, kept.id); err != nil {
			return err
		}
		if err := rememberedRules.Replace(tx, kept.id, *kept, kept.version); err != nil {
			return err
		}
		data := w.Data()
		data["uses"] = use.Uses
		r, err := tx.Review(kept.rule.Review)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return err
		}
		return tx.Event(record.Event{Tenant: kept.rule.Tenant, Crossing: r.Crossing, Name: policyForgotten,
			Who: w.Reviewer, Subject: kept.id, Data: data})
	})
	if err != nil {
		return review.Remembered{}, err
	}
	b.announceRule("info", policyForgotten, kept, kept.ForgottenBy+" ended the rule "+kept.id)
	return b.describeRule(kept, use), nil
}

// Remembered lists a tenant's rules, newest first, those that ended too.
func (b *Book) Remembered(ctx context.Context, tenant string) ([]review.Remembered, error) {
	out := []review.Remembered{}
	err := b.src.View(ctx, func(tx Reader) error {
		all, _, err := tenantsRules.Find(tx, cmp.Or(tenant, holdfast.Local))
		if err != nil {
			return err
		}
		for _, id := range slices.Backward(all.IDs) {
			kept, err := ruleByID(tx, id)
			if errors.Is(err, table.ErrNotFound) {
				out = append(out, review.Remembered{ID: id, Ended: "it is not what was written"})
				continue
			}
			if err != nil {
				return err
			}
			use, _, err := ruleUses.Find(tx, id)
			if err != nil {
				return err
			}
			out = append(out, b.describeRule(kept, use))
		}
		return nil
	})
	return out, err
}

// describeRule returns what people are shown of a rule.
func (b *Book) describeRule(kept *Rule, use ruleUse) review.Remembered {
	c, _ := b.src.Contract(kept.rule.Boundary)
	ended := b.explainEnd(kept, c, b.src.Now())
	if c == nil && kept.Forgotten.IsZero() && b.src.Now().Before(kept.said.Until) && b.isSigned(kept) {
		ended = "" // a tool whose server does not run: it is unknown yet
	}
	return review.Remembered{ID: kept.id, Rule: kept.rule, Words: kept.rule.Words(),
		Reviewer: kept.said.Reviewer, Reason: kept.said.Reason, Made: kept.said.At, Expires: kept.said.Until,
		Uses: use.Uses, LastUse: use.Last, Ended: ended}
}

// noRule returns the refusal of a rule that a person wants to make.
func noRule(rule, why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: rule, Why: why, Hint: hint}
}

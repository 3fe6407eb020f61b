package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// How many rules one caller may have at one boundary, and one tenant in all.
const (
	callerRules = 32
	tenantRules = 1000
)

// keptRule is a remembered rule as the store has it. The rule itself is read
// from the person's signed word, each time: what somebody else writes into the
// store is no rule (D11).
type keptRule struct {
	Word        operator.Signed `json:"word"`
	Forgotten   time.Time       `json:"forgotten_at,omitzero"`
	ForgottenBy string          `json:"forgotten_by,omitempty"`

	id      string
	version int64 // of its row
	said    operator.Statement
	rule    review.Rule
	key     operator.Public // that signed it just now
}

// name is what the ledger calls the rule, in a crossing that it let pass.
func (r *keptRule) name() string { return "remembered/" + r.id }

// ruleUse counts what a rule let pass.
type ruleUse struct {
	Uses int64     `json:"uses"`
	Last time.Time `json:"last"`
}

func ruleID(w operator.Signed) string { return "rr_" + sha(w.Statement)[:10] }
func sha(b []byte) string             { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

// callerScope names one caller at one boundary.
func callerScope(tenant, agent, principal, boundary string) string {
	b, _ := json.Marshal([]string{tenant, agent, principal, boundary})
	return sha(b)
}

// ruleByID reads a rule. What is not a person's word under its own id is
// ErrNotFound.
func ruleByID(tx Tx, id string) (*keptRule, error) {
	row, version, err := rememberedRules.Get(tx, id)
	kept := &row
	kept.id, kept.version = id, version
	if damaged := (*table.DamagedError)(nil); errors.As(err, &damaged) || err == nil && ruleID(kept.Word) != id {
		return nil, fmt.Errorf("rule %s is not what was written: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if kept.said, err = operator.Parse(kept.Word.Statement); err == nil {
		kept.rule, err = review.ParseRule(kept.said.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("rule %s is not what was written: %w", id, ErrNotFound)
	}
	return kept, nil
}

// readRules are the rules of one caller at one boundary. One that cannot be
// read is none.
func readRules(tx Tx, scope string) ([]*keptRule, error) {
	list, _, err := callersRules.Find(tx, scope)
	if err != nil {
		return nil, err
	}
	var out []*keptRule
	for _, id := range list.IDs[:min(len(list.IDs), callerRules)] {
		kept, err := ruleByID(tx, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, kept)
	}
	return out, nil
}

// signedRule checks that a person with an operator key signed this rule, here.
func (k *Kernel) signedRule(kept *keptRule) bool {
	if kept.said.Act != operator.Remember || kept.said.Runtime != k.runtime {
		return false
	}
	for _, key := range k.operator() {
		// Its age was judged when it was made.
		if _, err := operator.Verify(key, kept.Word, kept.said.At); err == nil {
			return true
		}
	}
	return false
}

// over says why a rule holds no more, whatever is asked; "" while it holds. c
// is the boundary's contract now.
func (k *Kernel) over(kept *keptRule, c *contract.Contract, now time.Time) string {
	switch {
	case !kept.Forgotten.IsZero():
		return "forgotten by " + kept.ForgottenBy
	case !now.Before(kept.said.Until) || kept.said.Until.Sub(kept.said.At) > review.RuleLifetime:
		return "expired"
	case !k.signedRule(kept):
		return "no operator's signature"
	case c == nil || c.Hash == "" || c.Hash != kept.rule.Contract:
		return "the tool or its contract changed"
	}
	return cannotRemember(c)
}

// cannotRemember says why nothing may be remembered of a boundary (D11).
func cannotRemember(c *contract.Contract) string {
	switch {
	case c.Risk == holdfast.Prohibited:
		return "the boundary is prohibited"
	case c.Irreversible:
		return "what the boundary does cannot be undone"
	case c.Drifted:
		return "the tool is not what it was at first sight"
	}
	return ""
}

// remembered finds the rule by which the request may act without being asked.
// It also notes a rule that ended, for the person's and the agent's sake.
func (j *judgement) remembered() *keptRule {
	for _, kept := range j.rules {
		r := &kept.rule
		if j.beside != nil && r.Exact == "" {
			continue // a shape says nothing of what stands beside the arguments
		}
		if r.Tenant != j.who.Tenant || r.Agent != j.who.Agent || r.Principal != j.who.Principal || r.Boundary != j.req.Boundary ||
			!r.Covers(j.doc.Value(), j.exact()) {
			continue
		}
		if why := j.k.over(kept, j.contract, j.now); why != "" {
			j.ended = "the remembered rule " + kept.id + " no longer holds: " + why
			continue
		}
		return kept
	}
	return nil
}

// useRule looks once more whether the rule holds, and counts its use, in the
// transaction that begins the crossing.
func (k *Kernel) useRule(tx *scope, j *judgement) error {
	id := j.byRule.id
	kept, err := ruleByID(tx, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	why := "it is gone"
	if err == nil {
		why = k.over(kept, j.contract, k.now())
	}
	if why == "" {
		if why, err = notInForce(tx, kept); err != nil {
			return err
		}
	}
	if why != "" {
		j.byRule = nil
		return &errRefused{named("review/rule_ended", deny(holdfast.K7, holdfast.KindConflict,
			"the remembered rule "+id+" ended a moment ago: "+why, "ask again, so that a person is asked"))}
	}
	use, version, err := ruleUses.Find(tx, id)
	if err != nil {
		return err
	}
	use.Uses, use.Last = use.Uses+1, j.at
	if err := ruleUses.Put(tx, id, use, version); err != nil || j.review == nil {
		return err
	}
	// A question about this very request waits for nobody any more.
	r, err := tx.Review(j.review.ID)
	if err != nil || !r.Waiting(k.now()) {
		return err
	}
	return k.void(tx, r, "review/by_rule", "the remembered rule "+id+" answers it")
}

// named gives a denial the name by which people and scripts know it.
func named(rule string, op holdfast.Opinion) holdfast.Opinion {
	op.Rule = rule
	return op
}

// refusal of a rule that a person wants to make.
func noRule(rule, why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: rule, Why: why, Hint: hint}
}

// Remember makes a narrow rule of a review that was approved within the last
// 24 hours, on a person's word (D11): the statement's Subject is the review,
// its Value the rule's canonical text (review.RuleOf makes one), its Until when
// the rule ends, at most 90 days ahead; it is bound to the review as an answer
// is. Errors are those of Decide, and a ValueError for a rule that is none or
// does not cover what was approved.
func (k *Kernel) Remember(signed operator.Signed) (review.Remembered, error) {
	kept := &keptRule{Word: signed, id: ruleID(signed)}
	s, err := k.runSigned(signed, operator.Remember, func(tx *scope, s operator.Statement, key operator.Public) error {
		var err error
		if kept.rule, err = review.ParseRule(s.Value); err != nil {
			return err
		}
		kept.said, kept.key = s, key
		r, err := tx.Review(s.Subject)
		if errors.Is(err, ErrNotFound) {
			return review.NoReview(s.Subject)
		}
		if err != nil {
			return err
		}
		if err := k.mayRemember(&r, kept); err != nil {
			return err
		}
		if err := k.keepRule(tx, kept); err != nil {
			return err
		}
		data := said(s, signed)
		data["rule"], data["until"], data["review"] = kept.rule.Words(), stamp(s.Until), r.ID
		return k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: policyRemembered, Who: s.Reviewer, Subject: kept.id, Data: data})
	})
	if err != nil {
		return review.Remembered{}, err
	}
	k.stir()
	k.notify(Notice{Level: "warning", Event: "policy_remembered", Tenant: kept.rule.Tenant, Agent: kept.rule.Agent, Boundary: kept.rule.Boundary,
		Why: s.Reviewer + " made the rule " + kept.id + ": it is not asked about until " + stamp(s.Until)})
	return k.describe(kept, ruleUse{}), nil
}

// mayRemember judges a rule against the approval that it is made of.
func (k *Kernel) mayRemember(r *review.Review, kept *keptRule) error {
	s, rule := &kept.said, &kept.rule
	now := k.now()
	c := k.lookup(k.policy.Load(), r.Boundary)
	if err := r.CheckSeen(s); err != nil {
		return err
	}
	if review.SaidBySelf(s, kept.key, r) {
		return review.RefuseSelf(s.Reviewer)
	}
	switch {
	case r.State != review.Approved && r.State != review.Used || !now.Before(r.Decided.Add(review.Lifetime)):
		return noRule("review/not_approved", "review "+r.ID+" was not approved within "+review.Lifetime.String(), "approve it first, and remember it then")
	case slices.Contains(r.Gates, holdfast.K8):
		return noRule("review/asked_by_a_rule", "a rule of the constitution asks for a person each time, and nothing is remembered past it", "change the rule")
	case c == nil || c.Hash == "" || c.Hash != r.Contract:
		return noRule("review/tool_changed", "the tool or its contract changed since review "+r.ID+" was asked", "the agent must ask anew")
	case cannotRemember(c) != "":
		return noRule("review/never_remembered", cannotRemember(c)+", so that nothing is remembered of it", "each crossing is put to a person")
	case !s.Until.After(now) || s.Until.Sub(s.At) > review.RuleLifetime:
		return noRule("review/too_long", "a rule ends within 90 days", "such as --remember 30d")
	case rule.Review != r.ID || rule.Tenant != r.Tenant || rule.Agent != r.Agent || rule.Principal != r.Principal ||
		rule.Boundary != r.Boundary || rule.Contract != r.Contract:
		return noRule("review/no_rule", "the rule is about something other than review "+r.ID, "")
	}
	return k.within(r, rule)
}

// within checks that the rule covers what was approved, that it says nothing of
// values which nobody saw, and that nothing in it must not be written down.
func (k *Kernel) within(r *review.Review, rule *review.Rule) error {
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
	if found, err := k.redact.JSON(text); err != nil || found.Found() {
		return no("holds a secret or personal data, and would be kept as it is")
	}
	return nil
}

// keepRule puts a rule where its caller and its tenant find it. The room of
// rules that ended is used again.
func (k *Kernel) keepRule(tx Tx, kept *keptRule) error {
	r := &kept.rule
	scope := callerScope(r.Tenant, r.Agent, r.Principal, r.Boundary)
	if err := k.listRule(tx, callersRules, scope, callerRules, kept.id); err != nil {
		return err
	}
	if err := k.listRule(tx, tenantsRules, r.Tenant, tenantRules, kept.id); err != nil {
		return err
	}
	return rememberedRules.Insert(tx, kept.id, *kept)
}

// listRule adds a rule to a list of at most that many.
func (k *Kernel) listRule(tx Tx, lists *table.Table[string, ruleIDs], name string, most int, id string) error {
	list, version, err := lists.Find(tx, name)
	if err != nil {
		return err
	}
	if len(list.IDs) >= most {
		if list.IDs, err = k.stillKept(tx, list.IDs); err != nil {
			return err
		}
	}
	if len(list.IDs) >= most {
		return noRule("review/too_many_rules", fmt.Sprintf("%d rules are remembered there already",
			len(list.IDs)), "forget some: `holdfast review remembered` lists them")
	}
	list.IDs = append(list.IDs, id)
	return lists.Put(tx, name, list, version)
}

// stillKept drops the ids of rules whose time is over.
func (k *Kernel) stillKept(tx Tx, all []string) ([]string, error) {
	var out []string
	for _, id := range all {
		kept, err := ruleByID(tx, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if err == nil && kept.Forgotten.IsZero() && k.now().Before(kept.said.Until) {
			out = append(out, id)
		}
	}
	return out, nil
}

// Forget ends a remembered rule on a person's word: the statement's Subject is
// its id. Errors: NotFoundError, and ConflictError where it was forgotten
// already.
func (k *Kernel) Forget(signed operator.Signed) (review.Remembered, error) {
	var kept *keptRule
	var use ruleUse
	_, err := k.runSigned(signed, operator.Forget, func(tx *scope, s operator.Statement, _ operator.Public) error {
		var err error
		kept, err = ruleByID(tx, s.Subject)
		if errors.Is(err, ErrNotFound) {
			return &holdfast.Error{Kind: holdfast.KindNotFound, Rule: "review/no_such_rule", Why: fmt.Sprintf("there is no remembered rule %q", excerpt.Of(s.Subject, 64)), Hint: "`holdfast review remembered` lists them"}
		}
		if err != nil {
			return err
		}
		if err := sameTenant(s, kept.rule.Tenant); err != nil {
			return err
		}
		if !kept.Forgotten.IsZero() {
			return noRule("review/forgotten", "the rule "+kept.id+" was forgotten already by "+kept.ForgottenBy, "")
		}
		kept.Forgotten, kept.ForgottenBy = k.instant(), s.Reviewer
		if use, _, err = ruleUses.Find(tx, kept.id); err != nil {
			return err
		}
		if err := rememberedRules.Replace(tx, kept.id, *kept, kept.version); err != nil {
			return err
		}
		data := said(s, signed)
		data["uses"] = use.Uses
		r, err := tx.Review(kept.rule.Review)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		return k.event(tx, Event{Tenant: kept.rule.Tenant, Crossing: r.Crossing, Name: policyForgotten, Who: s.Reviewer, Subject: kept.id, Data: data})
	})
	if err != nil {
		return review.Remembered{}, err
	}
	k.stir()
	k.notify(Notice{Level: "info", Event: "policy_forgotten", Tenant: kept.rule.Tenant, Agent: kept.rule.Agent, Boundary: kept.rule.Boundary,
		Why: kept.ForgottenBy + " ended the rule " + kept.id})
	return k.describe(kept, use), nil
}

// Remembered lists a tenant's rules, newest first, those that ended too.
func (k *Kernel) Remembered(ctx context.Context, tenant string) ([]review.Remembered, error) {
	out := []review.Remembered{}
	err := k.store.View(ctx, func(tx Tx) error {
		all, _, err := tenantsRules.Find(tx, reasonOr(tenant, holdfast.Local))
		if err != nil {
			return err
		}
		for _, id := range slices.Backward(all.IDs) {
			kept, err := ruleByID(tx, id)
			if errors.Is(err, ErrNotFound) {
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
			out = append(out, k.describe(kept, use))
		}
		return nil
	})
	return out, err
}

func (k *Kernel) describe(kept *keptRule, use ruleUse) review.Remembered {
	c := k.lookup(k.policy.Load(), kept.rule.Boundary)
	ended := k.over(kept, c, k.now())
	if c == nil && kept.Forgotten.IsZero() && k.now().Before(kept.said.Until) && k.signedRule(kept) {
		ended = "" // a tool whose server does not run: nobody can tell yet
	}
	return review.Remembered{ID: kept.id, Rule: kept.rule, Words: kept.rule.Words(), Reviewer: kept.said.Reviewer, Reason: kept.said.Reason,
		Made: kept.said.At, Expires: kept.said.Until, Uses: use.Uses, LastUse: use.Last, Ended: ended}
}

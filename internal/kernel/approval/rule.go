package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
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

// Rule is a remembered rule as the store has it. The rule itself is read
// from the person's signed word, each time: what anything else writes into the
// store is no rule (D11).
type Rule struct {
	Word        operator.Signed `json:"word"`
	Forgotten   time.Time       `json:"forgotten_at,omitzero"`
	ForgottenBy string          `json:"forgotten_by,omitempty"`

	id      string
	version int64 // of its row
	said    operator.Statement
	rule    review.Rule
}

// Name returns the name of the rule in the records of a crossing that it let pass.
func (r *Rule) Name() string { return "remembered/" + r.id }

// Reviewer returns the person who made the rule.
func (r *Rule) Reviewer() string { return r.said.Reviewer }

func ruleID(w operator.Signed) string { return "rr_" + hashText(w.Statement)[:10] }

// callerScope names one caller at one boundary.
func callerScope(tenant, agent, principal, boundary string) string {
	text, _ := json.Marshal([]string{tenant, agent, principal, boundary})
	return hashText(text)
}

// ruleByID reads a rule. A row that is not a person's word under its own ID is
// table.ErrNotFound.
func ruleByID(tx Reader, id string) (*Rule, error) {
	row, version, err := rememberedRules.Get(tx, id)
	kept := &row
	kept.id, kept.version = id, version
	if damaged := (*table.DamagedError)(nil); errors.As(err, &damaged) || err == nil && ruleID(kept.Word) != id {
		return nil, fmt.Errorf("rule %s is not what was written: %w", id, table.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if kept.said, err = operator.Parse(kept.Word.Statement); err == nil {
		kept.rule, err = review.ParseRule(kept.said.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("rule %s is not what was written: %w", id, table.ErrNotFound)
	}
	return kept, nil
}

// readRules returns the rules of one caller at one boundary. One that cannot be
// read is left out.
func readRules(tx Reader, scope string) ([]*Rule, error) {
	list, _, err := callersRules.Find(tx, scope)
	if err != nil {
		return nil, err
	}
	var out []*Rule
	for _, id := range list.IDs[:min(len(list.IDs), callerRules)] {
		kept, err := ruleByID(tx, id)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, kept)
	}
	return out, nil
}

// isSigned reports whether a person with an operator key signed this rule, here.
func (b *Book) isSigned(kept *Rule) bool {
	if kept.said.Act != operator.Remember || kept.said.Runtime != b.src.Runtime {
		return false
	}
	for _, key := range b.src.Operator() {
		// Its age was checked when it was made.
		if _, err := operator.Verify(key, kept.Word, kept.said.At); err == nil {
			return true
		}
	}
	return false
}

// explainEnd returns why a rule no longer applies to any request, "" if it does. c
// is the boundary's contract now.
func (b *Book) explainEnd(kept *Rule, c *contract.Contract, now time.Time) string {
	switch {
	case !kept.Forgotten.IsZero():
		return "forgotten by " + kept.ForgottenBy
	case !now.Before(kept.said.Until) || kept.said.Until.Sub(kept.said.At) > review.RuleLifetime:
		return "expired"
	case !b.isSigned(kept):
		return "no operator's signature"
	case c == nil || c.Hash == "" || c.Hash != kept.rule.Contract:
		return "the tool or its contract changed"
	}
	return cannotRemember(c)
}

// cannotRemember returns why nothing may be remembered of a boundary (D11).
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

// findRule returns the rule by which the request may act without being reviewed, or nil.
// It also notes a rule that ended, for the person's and the agent's sake.
func (c *Case) findRule() *Rule {
	for _, kept := range c.rules {
		r := &kept.rule
		if c.Joined && r.Exact == "" {
			continue // a shape says nothing of what is next to the arguments
		}
		if r.Tenant != c.Tenant || r.Agent != c.Agent || r.Principal != c.Principal || r.Boundary != c.Boundary ||
			!r.Covers(c.Doc.Value(), c.Exact) {
			continue
		}
		if why := c.book.explainEnd(kept, c.Contract, c.Now); why != "" {
			c.ended = "the remembered rule " + kept.id + " no longer holds: " + why
			continue
		}
		return kept
	}
	return nil
}

// keepRule puts a rule where its caller and its tenant find it. The room of
// rules that ended is used again.
func (b *Book) keepRule(tx Tx, kept *Rule) error {
	r := &kept.rule
	scope := callerScope(r.Tenant, r.Agent, r.Principal, r.Boundary)
	if err := b.listRule(tx, callersRules, scope, callerRules, kept.id); err != nil {
		return err
	}
	if err := b.listRule(tx, tenantsRules, r.Tenant, tenantRules, kept.id); err != nil {
		return err
	}
	return rememberedRules.Insert(tx, kept.id, *kept)
}

// listRule adds a rule to a list of at most that many.
func (b *Book) listRule(tx Tx, lists *table.Table[string, ruleIDs], name string, most int, id string) error {
	list, version, err := lists.Find(tx, name)
	if err != nil {
		return err
	}
	if len(list.IDs) >= most {
		if list.IDs, err = b.stillKept(tx, list.IDs); err != nil {
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
func (b *Book) stillKept(tx Reader, all []string) ([]string, error) {
	var out []string
	for _, id := range all {
		kept, err := ruleByID(tx, id)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return nil, err
		}
		if err == nil && kept.Forgotten.IsZero() && b.src.Now().Before(kept.said.Until) {
			out = append(out, id)
		}
	}
	return out, nil
}

package mapping

import (
	"context"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Elsewhere are engines that find the values of one session of an agent, mapped at any row, in what the agent sends
// to other places: in raw, percent-encoded, base64, hexadecimal and escaped form. They write the masks of egress, and
// report personal data under the rule of its kind.
type Elsewhere struct{ Secrets, Personal []*redact.Engine }

// personalRules are the rules under which personal data is found elsewhere, by kind.
var personalRules = map[string]string{"email": "email", "card": "card", "phone": "pii.phone",
	"name": "detector.name", "personal": "pii.field"}

// FindElsewhere returns the engines of one session of an agent; o.Row is not used.
func (s *Sessions) FindElsewhere(ctx context.Context, o Owner) (Elsewhere, error) {
	g := s.findGroup(o)
	if err := g.loadValues(ctx); err != nil {
		return Elsewhere{}, err
	}
	entries, sought := g.listSought("")
	g.mu.Lock()
	defer g.mu.Unlock()
	if sought == g.elsewhereOf {
		return g.elsewhere, nil
	}
	byKind := map[string][]*entry{}
	for _, e := range entries {
		byKind[KindOf(e.rule)] = append(byKind[KindOf(e.rule)], e)
	}
	var all Elsewhere
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		made, err := newFinders(byKind[kind], redact.Options{LiteralRule: personalRules[kind]}, nil)
		if err != nil {
			return Elsewhere{}, err
		}
		list := listEngines(made)
		if kind == "secret" {
			all.Secrets = list
		} else {
			all.Personal = append(all.Personal, list...)
		}
	}
	g.elsewhere, g.elsewhereOf = all, sought
	return all, nil
}

// listSought returns the values that are looked for everywhere, of all rows except one, and a number that rises
// with each change of them.
func (g *group) listSought(except string) (list []*entry, changes int) {
	for _, s := range g.listRows() {
		if s.owner.Row == except {
			continue
		}
		s.mu.Lock()
		changes += s.sought
		for _, e := range s.order {
			if e.isSought() {
				copied := *e
				list = append(list, &copied)
			}
		}
		s.mu.Unlock()
	}
	return list, changes
}

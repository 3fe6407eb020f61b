package mapping

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Elsewhere are engines that find the values of one session of an agent, mapped at any row, in what the agent sends
// to other places: in raw, percent-encoded, base64, hexadecimal and escaped form.
type Elsewhere struct{ Secrets, Personal []*redact.Engine }

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
	var secrets, personal []*entry
	for _, e := range entries {
		if KindOf(e.rule) == "secret" {
			secrets = append(secrets, e)
		} else {
			personal = append(personal, e)
		}
	}
	var made Elsewhere
	var err error
	if made.Secrets, err = newFinders(secrets); err == nil {
		made.Personal, err = newFinders(personal)
	}
	if err != nil {
		return Elsewhere{}, err
	}
	g.elsewhere, g.elsewhereOf = made, sought
	return made, nil
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

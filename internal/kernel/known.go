package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// This file is who is known of an agent's tree: whom there is room for, whom it is
// made by forgetting, and what is recorded of either.

// Bounds of who is remembered.
const (
	// maxSubAgents is how many one agent may have that were first seen within
	// subAgentsFor; as many are remembered. Those that are paused are never forgotten.
	maxSubAgents = 512
	subAgentsFor = 24 * time.Hour
)

const (
	eventSubAgent   = "subagent_first_seen"
	eventTreeIsFull = "subagents_not_taken"
)

// firstSeen is a sub-agent that is remembered.
type firstSeen struct {
	at time.Time
	id string
}

// countKnown returns the number of sub-agents that a row remembers. They are lines, so that
// an agent that sends one new name after the other costs only the counting of lines.
func (r *treeRow) countKnown() int { return strings.Count(r.Within, "\n") }

// parseKnown returns the sub-agents of a row, the oldest first.
func (r *treeRow) parseKnown() (all []firstSeen, err error) {
	for line := range strings.Lines(r.Within) {
		s, err := parseFirstSeen(line)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func parseFirstSeen(line string) (firstSeen, error) {
	first, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return firstSeen{}, fmt.Errorf("what is known of the agents within an agent is damaged: %w", err)
	}
	return firstSeen{time.UnixMicro(n).UTC(), id}, nil
}

func (r *treeRow) setKnown(all []firstSeen) {
	var b []byte
	for _, s := range all {
		b = fmt.Appendf(b, "%d %s\n", s.at.UnixMicro(), s.id)
	}
	r.Within = string(b)
}

// roomFor says whether there is room for one more, and who is to be forgotten for it,
// nil where nobody is.
func roomFor(tx Tx, a *holdfast.Agent) (forget *holdfast.Agent, room bool, err error) {
	known, _, err := subAgents.Find(tx, treeKey{a.Tenant, a.Owner})
	if err != nil || known.countKnown() < maxSubAgents {
		return nil, err == nil, err
	}
	for line := range strings.Lines(known.Within) {
		old, err := parseFirstSeen(line)
		if err != nil {
			return nil, false, err
		}
		if a.First.Sub(old.at) < subAgentsFor {
			break
		}
		o, err := tx.Agent(a.Tenant, holdfast.SubName(a.Owner, old.id))
		switch {
		case errors.Is(err, ErrNotFound) || err == nil && o.Owner != a.Owner:
			return &holdfast.Agent{Tenant: a.Tenant, Name: holdfast.SubName(a.Owner, old.id), Owner: a.Owner}, true, nil
		case err != nil:
			return nil, false, err
		case o.State == holdfast.AgentRunning:
			return &o, true, nil
		}
	}
	return nil, false, nil
}

// meetSub keeps an agent within another at first sight, with an event.
func (k *Kernel) meetSub(tx Tx, a *holdfast.Agent, crossing string) error {
	of := treeKey{a.Tenant, a.Owner}
	known, version, err := subAgents.Find(tx, of)
	if err != nil {
		return err
	}
	all, err := known.parseKnown()
	if err != nil {
		return err
	}
	forget, room, err := roomFor(tx, a)
	switch {
	case err != nil:
		return err
	case !room:
		return errOtherTree
	case forget != nil:
		all = slices.DeleteFunc(all, func(s firstSeen) bool { return s.id == idOf(forget) })
		if gone, err := taken(tx, forget); err != nil {
			return err
		} else if !gone {
			if err := tx.DropAgent(forget.Tenant, forget.Name); err != nil {
				return err
			}
		}
	}
	known.setKnown(append(all, firstSeen{a.First, idOf(a)}))
	if err := subAgents.Put(tx, of, known, version); err != nil {
		return err
	}
	if err := tx.PutAgent(*a); err != nil {
		return err
	}
	return k.event(tx, Event{Tenant: a.Tenant, Crossing: crossing, Name: eventSubAgent, Who: a.Principal, Subject: a.Name,
		Data: map[string]any{"owner": a.Owner, "parent": a.Parent}})
}

// tellFull records, once in the time in which there is no room, that an agent within
// the asking one was not taken for that.
func (k *Kernel) tellFull(tx Tx, j *judgement) error {
	of := treeKey{j.who.Tenant, j.who.Agent}
	known, version, err := subAgents.Find(tx, of)
	if err != nil || j.now.Sub(time.UnixMicro(known.Told)) < subAgentsFor {
		return err
	}
	known.Told = j.now.UnixMicro()
	if err := subAgents.Put(tx, of, known, version); err != nil {
		return err
	}
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventTreeIsFull, Who: "holdfast", Subject: j.who.Agent,
		Data: map[string]any{"why": fmt.Sprintf("it has %d agents within it that were first seen within %s: what others do is counted as its own", maxSubAgents, subAgentsFor)}})
}

package subagent

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

var trees = table.New[treeKey, treeRow]("subagent_tree", table.Options{Gates: true})

// Tables returns the tables of the feature, for the store.
func Tables() []*table.Def { return []*table.Def{trees.Def()} }

// treeKey is an agent whose sub-agents are known.
type treeKey struct {
	Tenant string `table:"tenant"`
	Agent  string `table:"agent"`
}

// treeRow is what is known of an agent's sub-agents. Told is in microseconds since 1970.
// Within has a line for each: when it was first seen, and its ID.
type treeRow struct {
	Told   int64  `json:"told"`
	Within string `json:"within"`
}

// Bounds of the agents that are remembered.
const (
	// maxKnown is the number of agents within one that were first seen within knownFor; as
	// many are remembered. Paused ones are never forgotten.
	maxKnown = 512
	knownFor = 24 * time.Hour
)

const (
	eventFirstSeen = "subagent_first_seen"
	eventFull      = "subagents_not_taken"
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

// findRoom reports whether there is room for one more, and returns the agent that is to be
// forgotten for it, or nil.
func findRoom(r kernel.Reader, a *holdfast.Agent) (forget *holdfast.Agent, room bool, err error) {
	known, _, err := trees.Find(r, treeKey{a.Tenant, a.Owner})
	if err != nil || known.countKnown() < maxKnown {
		return nil, err == nil, err
	}
	for line := range strings.Lines(known.Within) {
		old, err := parseFirstSeen(line)
		if err != nil {
			return nil, false, err
		}
		if a.First.Sub(old.at) < knownFor {
			break
		}
		o, err := r.Agent(a.Tenant, holdfast.SubName(a.Owner, old.id))
		switch {
		case errors.Is(err, kernel.ErrNotFound) || err == nil && o.Owner != a.Owner:
			return &holdfast.Agent{Tenant: a.Tenant, Name: holdfast.SubName(a.Owner, old.id), Owner: a.Owner}, true, nil
		case err != nil:
			return nil, false, err
		case o.State == holdfast.AgentRunning:
			return &o, true, nil
		}
	}
	return nil, false, nil
}

// meet remembers an agent within another at first sight, with an event.
func meet(tx kernel.FeatureTx, q kernel.Named, a *holdfast.Agent) (kernel.Met, error) {
	met := kernel.Met{Agent: a}
	of := treeKey{a.Tenant, a.Owner}
	known, version, err := trees.Find(tx, of)
	if err != nil {
		return met, err
	}
	all, err := known.parseKnown()
	if err != nil {
		return met, err
	}
	forget, room, err := findRoom(tx, a)
	switch {
	case err != nil:
		return met, err
	case !room:
		return met, kernel.ErrAgain
	case forget != nil:
		all = slices.DeleteFunc(all, func(s firstSeen) bool { return s.id == idOf(forget) })
		if taken, err := isTaken(tx, forget); err != nil {
			return met, err
		} else if !taken {
			met.Forget = forget
		}
	}
	known.setKnown(append(all, firstSeen{a.First, idOf(a)}))
	if err := trees.Put(tx, of, known, version); err != nil {
		return met, err
	}
	return met, tx.Event(kernel.Event{Tenant: a.Tenant, Crossing: q.Crossing, Name: eventFirstSeen, Who: a.Principal,
		Subject: a.Name, Data: map[string]any{"owner": a.Owner, "parent": a.Parent}})
}

// recordFull records, once while the tree is full, that an agent within the
// asking one was not taken.
func recordFull(tx kernel.FeatureTx, q kernel.Named) error {
	of := treeKey{q.Who.Tenant, q.Who.Agent}
	known, version, err := trees.Find(tx, of)
	if err != nil || q.Now.Sub(time.UnixMicro(known.Told)) < knownFor {
		return err
	}
	known.Told = q.Now.UnixMicro()
	if err := trees.Put(tx, of, known, version); err != nil {
		return err
	}
	return tx.Event(kernel.Event{Tenant: q.Who.Tenant, Crossing: q.Crossing, Name: eventFull, Who: "holdfast",
		Subject: q.Who.Agent,
		Data: map[string]any{"why": fmt.Sprintf("it has %d agents within it that were first seen within %s: "+
			"what others do is counted as its own", maxKnown, knownFor)}})
}

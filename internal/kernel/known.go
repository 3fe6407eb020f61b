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

// known are the agents within one that are remembered, the oldest first. It is kept as
// lines, so that whoever says one name after the other costs no more than to count
// them: when people were last told that there is no room, then of each when it was
// first seen and its id, times in unix microseconds.
type known struct {
	told   time.Time
	within []firstSeen
}

type firstSeen struct {
	at time.Time
	id string
}

func knownName(tenant, agent string) string { return "subagents/" + sha([]byte(tenant+"\x00"+agent)) }

func readKnown(tx Tx, tenant, agent string) (text string, err error) {
	b, err := tx.Meta(knownName(tenant, agent))
	if errors.Is(err, ErrNotFound) {
		return "0\n", nil
	}
	return string(b), err
}

func parseKnown(text string) (k known, err error) {
	told, rest, _ := strings.Cut(text, "\n")
	if k.told, err = parseMicros(told); err != nil {
		return k, err
	}
	for line := range strings.Lines(rest) {
		first, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		at, err := parseMicros(first)
		if err != nil {
			return k, err
		}
		k.within = append(k.within, firstSeen{at, id})
	}
	return k, nil
}

func parseMicros(s string) (time.Time, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("what is known of the agents within an agent is damaged: %w", err)
	}
	return time.UnixMicro(n).UTC(), nil
}

func (k *known) put(tx Tx, tenant, agent string) error {
	b := fmt.Appendf(nil, "%d\n", k.told.UnixMicro())
	for _, s := range k.within {
		b = fmt.Appendf(b, "%d %s\n", s.at.UnixMicro(), s.id)
	}
	return tx.PutMeta(knownName(tenant, agent), b)
}

// roomFor says whether there is room for one more, and who is to be forgotten for it,
// nil where nobody is.
func roomFor(tx Tx, a *holdfast.Agent) (forget *holdfast.Agent, room bool, err error) {
	text, err := readKnown(tx, a.Tenant, a.Owner)
	if err != nil || strings.Count(text, "\n") <= maxSubAgents {
		return nil, err == nil, err
	}
	_, rest, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(rest) {
		old, err := parseKnown("0\n" + line)
		if err != nil {
			return nil, false, err
		}
		if a.First.Sub(old.within[0].at) < subAgentsFor {
			break
		}
		o, err := tx.Agent(a.Tenant, holdfast.SubName(a.Owner, old.within[0].id))
		switch {
		case errors.Is(err, ErrNotFound) || err == nil && o.Owner != a.Owner:
			return &holdfast.Agent{Tenant: a.Tenant, Name: holdfast.SubName(a.Owner, old.within[0].id), Owner: a.Owner}, true, nil
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
	text, err := readKnown(tx, a.Tenant, a.Owner)
	if err != nil {
		return err
	}
	all, err := parseKnown(text)
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
		all.within = slices.DeleteFunc(all.within, func(s firstSeen) bool { return s.id == idOf(forget) })
		if gone, err := taken(tx, forget); err != nil {
			return err
		} else if !gone {
			if err := tx.DropAgent(forget.Tenant, forget.Name); err != nil {
				return err
			}
		}
	}
	all.within = append(all.within, firstSeen{a.First, idOf(a)})
	if err := all.put(tx, a.Tenant, a.Owner); err != nil {
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
	text, err := readKnown(tx, j.who.Tenant, j.who.Agent)
	if err != nil {
		return err
	}
	told, _, _ := strings.Cut(text, "\n")
	if at, err := parseMicros(told); err != nil || j.now.Sub(at) < subAgentsFor {
		return err
	}
	all, err := parseKnown(text)
	if err != nil {
		return err
	}
	all.told = j.now
	if err := all.put(tx, j.who.Tenant, j.who.Agent); err != nil {
		return err
	}
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventTreeIsFull, Who: "holdfast", Subject: j.who.Agent,
		Data: map[string]any{"why": fmt.Sprintf("it has %d agents within it that were first seen within %s: what others do is counted as its own", maxSubAgents, subAgentsFor)}})
}

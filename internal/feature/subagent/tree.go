// Package subagent keeps which agents an agent's host has named within it: the tree beneath
// which a request is made. A host says so by headers of its own, AGENT/ID. It is the agent's
// own word, so that nothing is granted by it: roles, trust, budgets, rates, floods, leases,
// sessions, replays and answers of people are the agent's, whoever asks within it. A pause or a
// limit that names one applies in addition to those of the agent.
package subagent

import (
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Bounds of an agent's tree. What is beyond them is not taken.
const (
	// maxDepth is the number of agents between an agent and the farthest one beneath it.
	maxDepth = 8
	// maxName is the longest name of an agent within another, in bytes: a name in the store
	// has 1024.
	maxName = 1000
)

// Tree implements kernel.Lineage.
type Tree struct{ redact *redact.Engine }

// New returns a Tree that accepts no ID in which the engine finds a secret.
func New(engine *redact.Engine) *Tree { return &Tree{engine} }

// Spec implements kernel.Feature.
func (*Tree) Spec() kernel.Spec { return kernel.Spec{Name: "subagent", Tables: Tables()} }

// Locate implements kernel.Lineage. Who started an agent counts as it was said at first sight,
// and only as far as it was known then. One that is not taken leaves the request to whoever it
// says it was started by, or to the agent.
func (t *Tree) Locate(r kernel.Reader, q kernel.Named) (kernel.Place, error) {
	a, err := find(r, q, q.Sub.ID)
	if err == nil {
		above, err := climb(r, q, a.Parent)
		return kernel.Place{Path: append([]holdfast.Agent{*a}, above...)}, err
	}
	if !errors.Is(err, kernel.ErrNotFound) {
		return kernel.Place{}, err
	}
	above, err := climb(r, q, holdfast.SubName(q.Who.Agent, q.Sub.Parent))
	if err != nil {
		return kernel.Place{}, err
	}
	a = &holdfast.Agent{Tenant: q.Who.Tenant, Name: holdfast.SubName(q.Who.Agent, q.Sub.ID), Owner: q.Who.Agent,
		Kind: q.Who.Kind, State: holdfast.AgentRunning, Principal: q.Who.Principal, Parent: q.Who.Agent, First: q.Now}
	if slices.ContainsFunc(above, func(p holdfast.Agent) bool { return p.Parent == a.Name }) {
		above = nil // it was forgotten, and those that it started were not
	}
	p := kernel.Place{Path: above}
	if !isPlain(q.Sub.ID) || len(above) >= maxDepth || len(a.Name) > maxName || t.redact.TellsSecret(q.Sub.ID) {
		return p, nil
	}
	if taken, err := isTaken(r, a); err != nil || taken {
		return p, err
	}
	if _, room, err := findRoom(r, a); err != nil || !room {
		p.Full = true
		return p, err
	}
	if len(above) > 0 {
		a.Parent = above[0].Name
	}
	return kernel.Place{Path: append([]holdfast.Agent{*a}, above...), Fresh: true}, nil
}

// isPlain reports whether a host's word can be the ID of an agent within another.
func isPlain(id string) bool {
	if id == "" || len(id) > kernel.MaxSubAgent {
		return false
	}
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.:@", c) >= 0) {
			return false
		}
	}
	return true
}

// isTaken reports whether another agent, with tokens of its own, has that name.
func isTaken(r kernel.Reader, a *holdfast.Agent) (bool, error) {
	was, err := r.Agent(a.Tenant, a.Name)
	if errors.Is(err, kernel.ErrNotFound) {
		return false, nil
	}
	return err == nil && was.Owner != a.Owner, err
}

// find returns the record of an agent within the asking one, or ErrNotFound.
func find(r kernel.Reader, q kernel.Named, id string) (*holdfast.Agent, error) {
	if !isPlain(id) || len(q.Who.Agent)+1+len(id) > maxName {
		return nil, kernel.ErrNotFound
	}
	a, err := r.Agent(q.Who.Tenant, holdfast.SubName(q.Who.Agent, id))
	if err == nil && a.Owner != q.Who.Agent {
		err = kernel.ErrNotFound
	}
	return &a, err
}

// climb returns the agent of that name within the asking one, then those above it, as far as
// they are known and maxDepth allows.
func climb(r kernel.Reader, q kernel.Named, name string) ([]holdfast.Agent, error) {
	var out []holdfast.Agent
	for len(out) < maxDepth {
		id, beneath := strings.CutPrefix(name, q.Who.Agent+"/")
		if !beneath {
			break
		}
		a, err := find(r, q, id)
		if errors.Is(err, kernel.ErrNotFound) ||
			err == nil && slices.ContainsFunc(out, func(b holdfast.Agent) bool { return b.Name == a.Name }) {
			break
		}
		if err != nil {
			return nil, err
		}
		out, name = append(out, *a), a.Parent
	}
	return out, nil
}

// Meet implements kernel.Lineage.
func (t *Tree) Meet(tx kernel.FeatureTx, q kernel.Named, p kernel.Place) (kernel.Met, error) {
	if p.Full {
		return kernel.Met{}, recordFull(tx, q)
	}
	return meet(tx, q, &p.Path[0])
}

func idOf(a *holdfast.Agent) string { return strings.TrimPrefix(a.Name, a.Owner+"/") }

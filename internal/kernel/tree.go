package kernel

import (
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
)

// An agent's host tells of agents within it, by headers of its own: AGENT/ID. Each
// is an Agent of the store, made at first sight. What it is told by is the agent's
// own word, so that nothing is granted by it: roles, trust, budgets, rates, floods,
// leases, sessions, replays and answers of people are the agent's, whoever asks
// within it. A pause or a limit that names one stands beside those of the agent.

// Bounds of an agent's tree. What is beyond them is not taken.
const (
	// maxTreeDepth is how many stand between an agent and what is farthest beneath it.
	maxTreeDepth = 8
	// maxSubAgent is how long an id may be, and how much a record keeps of a word that
	// a host says, in bytes.
	maxSubAgent = 96
)

// errOtherTree says that the agent's tree changed while a request was judged, so that
// it stands elsewhere. It leaves what errOtherPolicy leaves.
var errOtherTree = errors.New("the agent's tree changed while the request was judged")

// branch is where in its agent's tree a request stands: who asks, then whoever is
// above, without the agent itself. It is empty where the agent itself asks.
type branch struct {
	path []holdfast.Agent
	// fresh says that the first of them is not known yet, full that the agent has no
	// room for one more, so that whose request it is has not been taken.
	fresh, full bool
}

func (b *branch) names() []string {
	var out []string
	for i := range b.path {
		out = append(out, b.path[i].Name)
	}
	return out
}

// ids are those within the agent.
func (b *branch) ids() []string {
	var out []string
	for i := range b.path {
		out = append(out, idOf(&b.path[i]))
	}
	return out
}

func (b *branch) same(other *branch) bool {
	return slices.EqualFunc(b.path, other.path, func(x, y holdfast.Agent) bool { return x.Name == y.Name })
}

// paused is the refusal of a request that stands at or beneath one that is paused,
// or nil.
func (b *branch) paused() *holdfast.Opinion {
	for i := range b.path {
		if b.path[i].State != holdfast.AgentRunning {
			return pausedAgent(&b.path[i])
		}
	}
	return nil
}

// shownAgent is a name in a letter: an agent's, and the id of one within it.
func shownAgent(name string) string { return excerpt.Of(name, 64+1+maxSubAgent) }

func idOf(a *holdfast.Agent) string { return strings.TrimPrefix(a.Name, a.Owner+"/") }

// plainID says whether a host's word can be the id of an agent within another.
func plainID(id string) bool {
	if id == "" || len(id) > maxSubAgent {
		return false
	}
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.:@", c) >= 0) {
			return false
		}
	}
	return true
}

// stand finds where the request stands, by what is known and by what the host says.
// Who started one counts as it was said at first sight, and only as far as it was
// known then. One that is not taken leaves the request to whom it says it was
// started by, else to the agent.
func (j *judgement) stand(tx Tx) (branch, error) {
	said := j.req.Sub
	if said == nil || said.ID == "" || said.ID == j.who.Agent || j.whoErr != nil {
		return branch{}, nil
	}
	a, err := j.within(tx, said.ID)
	if err == nil {
		above, err := j.climb(tx, a.Parent)
		return branch{path: append([]holdfast.Agent{*a}, above...)}, err
	}
	if !errors.Is(err, ErrNotFound) {
		return branch{}, err
	}
	above, err := j.climb(tx, holdfast.SubName(j.who.Agent, said.Parent))
	if err != nil {
		return branch{}, err
	}
	a = &holdfast.Agent{Tenant: j.who.Tenant, Name: holdfast.SubName(j.who.Agent, said.ID), Owner: j.who.Agent, Kind: j.who.Kind,
		State: holdfast.AgentRunning, Principal: j.who.Principal, Parent: j.who.Agent, First: j.now}
	if slices.ContainsFunc(above, func(p holdfast.Agent) bool { return p.Parent == a.Name }) {
		above = nil // it was forgotten, and those that it started were not
	}
	b := branch{path: above}
	if !plainID(said.ID) || len(above) >= maxTreeDepth || len(a.Name) > maxSubName || j.k.telling(said.ID) {
		return b, nil
	}
	if taken, err := taken(tx, a); err != nil || taken {
		return b, err
	}
	if _, room, err := roomFor(tx, a); err != nil || !room {
		b.full = true
		return b, err
	}
	if len(above) > 0 {
		a.Parent = above[0].Name
	}
	return branch{path: append([]holdfast.Agent{*a}, above...), fresh: true}, nil
}

// maxSubName is the longest name of an agent within another, in bytes: a name in the
// store has 1024.
const maxSubName = 1000

// taken says whether another agent, with tokens of its own, bears that name.
func taken(tx Tx, a *holdfast.Agent) (bool, error) {
	was, err := tx.Agent(a.Tenant, a.Name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && was.Owner != a.Owner, err
}

// within is what is known of an agent within the asking one, or ErrNotFound.
func (j *judgement) within(tx Tx, id string) (*holdfast.Agent, error) {
	if !plainID(id) || len(j.who.Agent)+1+len(id) > maxSubName {
		return nil, ErrNotFound
	}
	a, err := tx.Agent(j.who.Tenant, holdfast.SubName(j.who.Agent, id))
	if err == nil && a.Owner != j.who.Agent {
		err = ErrNotFound
	}
	return &a, err
}

// climb is the agent of that name within the asking one, then whoever is above it, as
// far as they are known. There is no end of words, but of what is kept.
func (j *judgement) climb(tx Tx, name string) ([]holdfast.Agent, error) {
	var out []holdfast.Agent
	for len(out) < maxTreeDepth {
		id, beneath := strings.CutPrefix(name, j.who.Agent+"/")
		if !beneath {
			break
		}
		a, err := j.within(tx, id)
		if errors.Is(err, ErrNotFound) || err == nil && slices.ContainsFunc(out, func(b holdfast.Agent) bool { return b.Name == a.Name }) {
			break
		}
		if err != nil {
			return nil, err
		}
		out, name = append(out, *a), a.Parent
	}
	return out, nil
}

// admitSub looks once more whether anything is paused where the request stands. Where
// it begins, it must stand where it was judged, and one at first sight is kept.
func (k *Kernel) admitSub(tx Tx, j *judgement, begins bool) error {
	now, err := j.stand(tx)
	if err != nil {
		return err
	}
	if op := now.paused(); op != nil {
		return &errRefused{*op}
	}
	switch {
	case !begins:
		return nil
	case !now.same(&j.branch):
		return errOtherTree
	case now.full:
		return k.tellFull(tx, j)
	case now.fresh:
		return k.meetSub(tx, &now.path[0], j.id)
	}
	return nil
}

// ownAgent is the record of an agent with tokens of its own, or ErrNotFound. Where one
// within another has borne its name, it has none yet, unless a person paused that one.
func ownAgent(tx Tx, tenant, name string) (holdfast.Agent, error) {
	a, err := tx.Agent(tenant, name)
	if err == nil && a.Owner != "" && a.State == holdfast.AgentRunning {
		err = ErrNotFound
	}
	return a, err
}

// subAgent is what the host said of who asks, as it may be written down.
func (j *judgement) subAgent() *holdfast.SubAgent {
	if j.req.Sub == nil || *j.req.Sub == (holdfast.SubAgent{}) {
		return nil
	}
	own := *j.req.Sub
	for _, s := range [...]*string{&own.ID, &own.Parent, &own.Session} {
		if *s != "" {
			*s = visible.ReplaceUnprintable(j.k.quote(*s, maxSubAgent))
		}
	}
	return &own
}

// asker is who asks within the agent, "" where the agent itself does.
func (j *judgement) asker() string {
	if j.who.Sub == "" {
		return ""
	}
	return j.who.Name()
}

// owner is the record's: the agent, where one within it asks.
func (j *judgement) owner() string {
	if j.who.Sub == "" {
		return ""
	}
	return j.who.Agent
}

package kernel

import (
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
)

// MaxSubAgent is the longest ID of an agent within another, and how much a record keeps of a
// word that a host says, in bytes.
const MaxSubAgent = 96

// errOtherTree says that the agent's tree changed while a request was evaluated, so that the
// request is in another place of it. It leaves what errOtherPolicy leaves.
var errOtherTree = errors.New("the agent's tree changed while the request was judged")

// branch is where in its agent's tree a request is: see Place.
type branch struct {
	path        []holdfast.Agent
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

// paused returns the refusal of a request at or beneath an agent that is paused, or nil.
func (b *branch) paused() *holdfast.Opinion {
	for i := range b.path {
		if b.path[i].State != holdfast.AgentRunning {
			return pause.Refuse(&b.path[i])
		}
	}
	return nil
}

func idOf(a *holdfast.Agent) string { return strings.TrimPrefix(a.Name, a.Owner+"/") }

// named is the request as a Lineage sees it. It reports false if no agent within the asking
// one is named.
func (j *judgement) named() (Named, bool) {
	sub := j.req.Sub
	if sub == nil || sub.ID == "" || sub.ID == j.who.Agent || j.whoErr != nil {
		return Named{}, false
	}
	return Named{Who: j.who, Sub: *sub, Crossing: j.id, Now: j.now}, true
}

// locate finds where in the agent's tree the request is.
func (j *judgement) locate(tx Tx) (branch, error) {
	q, ok := j.named()
	if !ok {
		return branch{}, nil
	}
	p, err := j.k.lineage.Locate(tx, q)
	return branch{p.Path, p.Fresh, p.Full}, err
}

// admitSub looks once more whether anything is paused where the request is. If it begins, it
// must be where it was evaluated, and an agent at first sight is kept.
func (k *Kernel) admitSub(tx Tx, j *judgement, begins bool) error {
	now, err := j.locate(tx)
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
	case now.full || now.fresh:
		return k.meetSub(tx, j, now)
	}
	return nil
}

// meetSub keeps an agent within another at first sight, or records that it is not taken.
func (k *Kernel) meetSub(tx Tx, j *judgement, b branch) error {
	q, _ := j.named()
	own := (&scope{Tx: tx, k: k}).txFor(k.lineageHost.f) // it raises nothing
	defer own.endHook()
	met, err := k.lineage.Meet(own, q, Place{b.path, b.fresh, b.full})
	if err == nil && met.Forget != nil {
		err = tx.DropAgent(met.Forget.Tenant, met.Forget.Name)
	}
	if err != nil || met.Agent == nil {
		return err
	}
	return tx.PutAgent(*met.Agent)
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
			*s = visible.ReplaceUnprintable(j.k.quote(*s, MaxSubAgent))
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

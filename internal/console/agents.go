package console

import (
	"errors"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/excerpt"
	"github.com/holdfast-dev/holdfast/internal/operator"
	"github.com/holdfast-dev/holdfast/kernel"
)

// Bounds of the page of agents.
const (
	maxPaused  = 100
	maxRunning = 200
)

// agentsView is every agent that ever crossed, those that a person must let go
// on first.
type agentsView struct {
	Paused, Running []holdfast.Agent
	More            int // how many are not shown
}

func (s *Console) agents(v *visit) {
	var as []holdfast.Agent
	err := s.c.View(v.r.Context(), func(tx kernel.Tx) (err error) { as, err = tx.Agents(""); return err })
	if err != nil {
		v.fail(err)
		return
	}
	var view agentsView
	for _, a := range as {
		list, most := &view.Running, maxRunning
		if a.State != holdfast.AgentRunning {
			list, most = &view.Paused, maxPaused
		}
		if len(*list) == most {
			view.More++
			continue
		}
		*list = append(*list, a)
	}
	v.show("Agents", "agents", view)
}

// unpause lets the agent go on that the page showed: paused, and for the reason
// that stood there. One that was paused anew since is another decision.
func (s *Console) unpause(v *visit) {
	f := v.r.PostForm
	tenant, name := f.Get("tenant"), f.Get("agent")
	err := s.c.View(v.r.Context(), func(tx kernel.Tx) error {
		a, err := tx.Agent(tenant, name)
		switch {
		case errors.Is(err, kernel.ErrNotFound):
			return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no such agent"}
		case err == nil && a.State == holdfast.AgentRunning:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "it is not paused"}
		case err == nil && oneLine(a.Why) != oneLine(f.Get("why")): // a browser respells line ends
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "it was paused anew since you looked"}
		}
		return err
	})
	var signed operator.Signed
	if err == nil {
		signed, err = v.s.sign(operator.Statement{Act: operator.Unpause, Subject: name, Tenant: tenant, Reason: oneLine(f.Get("reason"))}, s.c.Runtime, v.now)
	}
	var got kernel.Unpaused
	if err == nil {
		got, err = s.c.Kernel.Unpause(tenant, signed)
	}
	if err != nil {
		v.goTo(v.at, "/agents", "not unpaused: "+letter(s.asError(err)), true)
		return
	}
	words := excerpt.Of(name, 64) + " goes on"
	if len(got.Settled) > 0 {
		words += ", which answers " + strings.Join(got.Settled, ", ") + ": approved"
	}
	if len(got.Left) > 0 {
		words += "; who asked cannot answer " + strings.Join(got.Left, ", ")
	}
	v.goTo(v.at, "/agents", words, false)
}

package story

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Anomaly is a condition that holds, as people are told of it (spec 001, layer 5;
// D41a).
type Anomaly struct {
	// Tenant and Agent say whose it is: Agent is empty of a tenant's, both of
	// everything's.
	Tenant    string     `json:"tenant_id,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Condition watch.Name `json:"condition"`
	Severity  string     `json:"severity"`
	Since     time.Time  `json:"since"`
	// Done is what was done about it, Lift how that is lifted.
	Done string `json:"done"`
	Lift string `json:"lift"`
}

// Holds tells of a condition that holds.
func Holds(s watch.State) Anomaly {
	a := Anomaly{Tenant: s.Tenant, Agent: s.Agent, Condition: s.Condition, Severity: s.Severity.String(), Since: s.Since}
	a.Done, a.Lift = done(&s)
	return a
}

func done(s *watch.State) (did, lift string) {
	const byItself = "it is over by itself once it holds no more"
	letGo := "answer its review (`holdfast review ls`), or `holdfast agent unpause " + excerpt.Of(s.Agent, 128) + "`"
	switch {
	case s.Consequence:
		return "recorded, as the consequence of another", byItself
	case s.Condition == watch.Escape || s.Condition == watch.SessionBudget:
		return "the agent was paused and a person asked, by the crossing itself", letGo
	case !s.Done:
		return "nothing yet", byItself
	case s.Response >= watch.Halt:
		return "everything was halted", "`holdfast resume`, once it is mended"
	case s.Response == watch.Pause && s.Agent != "":
		return "the agent was paused and a person asked", letGo
	case s.Condition == watch.NoHumanCheck:
		return "people were told", "unlock the pages and look at them, answer a review, or sign for anything else with the operator key"
	case s.Response >= watch.Alert:
		return "people were told", byItself
	}
	return "recorded", byItself
}

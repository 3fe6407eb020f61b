package daemon

import (
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
)

// observers are those that the kernel tells.
type observers []kernel.Observer

// GoalsJudged implements kernel.Observer.
func (os observers) GoalsJudged(verdicts []goalrule.Verdict, admitted bool) {
	for _, o := range os {
		o.GoalsJudged(verdicts, admitted)
	}
}

// Crossed implements kernel.Observer.
func (os observers) Crossed(c kernel.Crossed) {
	for _, o := range os {
		o.Crossed(c)
	}
}

// Escaped implements kernel.Observer.
func (os observers) Escaped(tenant, agent, crossing string) {
	for _, o := range os {
		o.Escaped(tenant, agent, crossing)
	}
}

// Attended implements kernel.Observer.
func (os observers) Attended(tenant, agent string) {
	for _, o := range os {
		o.Attended(tenant, agent)
	}
}

// Package signal has what the kernel and features tell each other in the transaction in
// which it happens. A signal is a value: handlers read it and change rows.
package signal

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Signal is one of the types of this package. Its JSON form is kept while a handler that
// failed has to receive it again.
type Signal interface {
	// SignalName returns the name under which the signal is kept.
	SignalName() string
	// SignalAbout returns whose it is, and the crossing in which it arose; "" if none.
	SignalAbout() (tenant, agent, crossing string)
}

// Escape is an attempt to leave a sandbox (D21).
type Escape struct {
	Tenant      string `json:"tenant_id"`
	Crossing    string `json:"crossing"`
	Boundary    string `json:"boundary"`
	Principal   string `json:"principal"`
	Agent       string `json:"agent"`
	Session     string `json:"session"`
	Intent      string `json:"intent"`
	Correlation string `json:"correlation_id"`
	// Run is the run's ID, Call the system call.
	Run  string       `json:"run"`
	Call posture.Call `json:"call"`
}

// SignalName implements Signal.
func (Escape) SignalName() string { return "escape" }

// SignalAbout implements Signal.
func (s Escape) SignalAbout() (tenant, agent, crossing string) { return s.Tenant, s.Agent, s.Crossing }

// PartsErased means that the erasable parts of a tenant's leaves in [From, To) were erased.
type PartsErased struct {
	Tenant string `json:"tenant_id"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
}

// SignalName implements Signal.
func (PartsErased) SignalName() string { return "parts_erased" }

// SignalAbout implements Signal.
func (s PartsErased) SignalAbout() (tenant, agent, crossing string) { return s.Tenant, "", "" }

// BudgetExceeded means that K3 refused a crossing for a budget, or that one used more than it
// had reserved (D41).
type BudgetExceeded struct {
	Tenant string `json:"tenant_id"`
	// Agent has the token, Asking is it or the sub-agent that asks; Asker is as reviews
	// name it.
	Agent       string    `json:"agent"`
	Asking      string    `json:"asking"`
	Asker       string    `json:"asker,omitempty"`
	Principal   string    `json:"principal"`
	Session     string    `json:"session"`
	Intent      string    `json:"intent,omitempty"`
	Chain       string    `json:"chain,omitempty"`
	Boundary    string    `json:"boundary"`
	Crossing    string    `json:"crossing"`
	Correlation string    `json:"correlation_id"`
	At          time.Time `json:"at"`
	// Draw is what was refused, or used beyond. Exceed and Of are the draw's: Of is the
	// sub-agent whose counter it is, "" if it is the agent's.
	Draw   budget.Draw   `json:"draw"`
	Exceed budget.Exceed `json:"exceed"`
	Of     string        `json:"of,omitempty"`
	// Amount is the policy's limit, Ends when its window ends, in seconds since 1970 or 0.
	Amount int64 `json:"amount"`
	Ends   int64 `json:"ends,omitempty"`
	// Settled says that the crossing was done, and used more.
	Settled bool `json:"settled,omitempty"`
}

// SignalName implements Signal.
func (BudgetExceeded) SignalName() string { return "budget_exceeded" }

// SignalAbout implements Signal.
func (s BudgetExceeded) SignalAbout() (tenant, agent, crossing string) {
	return s.Tenant, s.Agent, s.Crossing
}

// BudgetGranted means that a person approved the review of a spent budget.
type BudgetGranted struct {
	Tenant   string `json:"tenant_id"`
	Agent    string `json:"agent"`
	Crossing string `json:"crossing"`
	Session  string `json:"session"`
	Review   string `json:"review"`
	Reviewer string `json:"reviewer"`
}

// SignalName implements Signal.
func (BudgetGranted) SignalName() string { return "budget_granted" }

// SignalAbout implements Signal.
func (s BudgetGranted) SignalAbout() (tenant, agent, crossing string) {
	return s.Tenant, s.Agent, s.Crossing
}

// ReviewDecided means that a person decided a review.
type ReviewDecided struct {
	Tenant   string    `json:"tenant_id"`
	Agent    string    `json:"agent"`
	Crossing string    `json:"crossing"`
	Review   string    `json:"review"`
	About    string    `json:"about"`
	State    string    `json:"state"`
	Reviewer string    `json:"reviewer"`
	At       time.Time `json:"at"`
}

// SignalName implements Signal.
func (ReviewDecided) SignalName() string { return "review_decided" }

// SignalAbout implements Signal.
func (s ReviewDecided) SignalAbout() (tenant, agent, crossing string) {
	return s.Tenant, s.Agent, s.Crossing
}

// Stopped means that a stop was put in place, StopLifted that it was lifted.
type Stopped struct {
	Tenant string `json:"tenant_id"`
	Agent  string `json:"agent"`
	Stop   string `json:"stop"`
	Cause  string `json:"cause"`
}

// SignalName implements Signal.
func (Stopped) SignalName() string { return "stopped" }

// SignalAbout implements Signal.
func (s Stopped) SignalAbout() (tenant, agent, crossing string) { return s.Tenant, s.Agent, "" }

// StopLifted is the end of a stop.
type StopLifted Stopped

// SignalName implements Signal.
func (StopLifted) SignalName() string { return "stop_lifted" }

// SignalAbout implements Signal.
func (s StopLifted) SignalAbout() (tenant, agent, crossing string) { return s.Tenant, s.Agent, "" }

// Critical reports whether a handler that fails is left out, so that it cannot keep an
// agent from being stopped. The failure of a handler of any other signal refuses what
// raised it.
func Critical(s Signal) bool {
	switch s.(type) {
	case Escape, BudgetExceeded, Stopped:
		return true
	}
	return false
}

// Parse returns a signal of this package that was kept as JSON under its name.
func Parse(name string, text []byte) (Signal, error) {
	switch name {
	case Escape{}.SignalName():
		return parse[Escape](text)
	case BudgetExceeded{}.SignalName():
		return parse[BudgetExceeded](text)
	case BudgetGranted{}.SignalName():
		return parse[BudgetGranted](text)
	case PartsErased{}.SignalName():
		return parse[PartsErased](text)
	case ReviewDecided{}.SignalName():
		return parse[ReviewDecided](text)
	case Stopped{}.SignalName():
		return parse[Stopped](text)
	case StopLifted{}.SignalName():
		return parse[StopLifted](text)
	}
	return nil, fmt.Errorf("cannot read a signal: unknown name %.64q", name)
}

func parse[S Signal](text []byte) (Signal, error) {
	var s S
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("cannot read the signal %s: %w", s.SignalName(), err)
	}
	return s, nil
}

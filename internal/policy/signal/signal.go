// Package signal has what the kernel and features tell each other in the transaction in
// which it happens. A signal is a value: handlers read it and change rows.
package signal

import (
	"encoding/json"
	"fmt"
	"time"

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
	case Escape, Stopped:
		return true
	}
	return false
}

// Parse returns a signal of this package that was kept as JSON under its name.
func Parse(name string, text []byte) (Signal, error) {
	switch name {
	case Escape{}.SignalName():
		return parse[Escape](text)
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

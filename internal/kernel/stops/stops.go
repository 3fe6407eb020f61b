// Package stops keeps the active stops in memory: a request that is about to begin finds them
// without reading a row.
package stops

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
)

// Stop keeps requests from beginning. Several exist next to each other, and are lifted one
// by one.
type Stop struct {
	// ID is given by the kernel.
	ID string `json:"-"`
	// What is stopped: requests of the tenant, and of those only those of the agent and
	// the agents beneath it, of the intent, of the chain and at the boundary that are
	// named. Empty is all of them; an empty tenant is every tenant.
	Tenant   string `json:"-"`
	Agent    string `json:"agent,omitempty"`
	Intent   string `json:"intent,omitempty"`
	Chain    string `json:"chain,omitempty"`
	Boundary string `json:"boundary,omitempty"`

	// Cause is a code, Why the sentence for people.
	Cause string `json:"cause"`
	Why   string `json:"why"`
	// Feature is whose stop it is, "" of the kernel's.
	Feature string `json:"feature,omitempty"`
	// Review is the question whose answer ends it, "" without one.
	Review string    `json:"review,omitempty"`
	Since  time.Time `json:"since"`
	// Until is when it ends by itself; zero is never.
	Until time.Time `json:"until,omitzero"`
	// Cut also ends crossings in progress.
	Cut bool `json:"cut,omitempty"`
	// Recorded says that its feature records by events of its own that it is put in
	// place and lifted, and shows it.
	Recorded bool `json:"recorded,omitempty"`
	// Refusal is how requests are refused, nil as by any stop. With it Why is the whole
	// reason.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Refusal is how the requests that a stop stops are refused.
type Refusal struct {
	Kind  holdfast.Kind `json:"kind"`
	State string        `json:"state"`
	Rule  string        `json:"rule,omitempty"`
	Hint  string        `json:"hint,omitempty"`
}

// CauseHandlerFailed is the cause of a stop that lasts until a feature's handler succeeds.
const CauseHandlerFailed = "handler_failed"

// IsActive reports whether the stop has not ended by itself.
func (s *Stop) IsActive(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }

// AppliesTo reports whether the stop is for that request. agents are who asks, and every
// agent above.
func (s *Stop) AppliesTo(tenant, intent, chain, boundary string, agents ...string) bool {
	return (s.Tenant == "" || s.Tenant == tenant) && (s.Agent == "" || slices.Contains(agents, s.Agent)) &&
		(s.Intent == "" || s.Intent == intent) && (s.Chain == "" || s.Chain == chain) && (s.Boundary == "" ||
		s.Boundary == boundary)
}

// newRefusal returns how a request is refused.
func (s *Stop) newRefusal() *holdfast.Opinion {
	op := holdfast.Opinion{Gate: holdfast.GateHalt, Verdict: holdfast.Deny, Kind: holdfast.KindPaused,
		State: "STOPPED", Rule: "stop/" + s.Cause, Why: "stopped: " + s.Why, Hint: s.newHint()}
	if r := s.Refusal; r != nil {
		op.Kind, op.State, op.Rule, op.Why, op.Hint = r.Kind, r.State, r.Rule, s.Why, r.Hint
	}
	return &op
}

func (s *Stop) newHint() string {
	hint := "a person can see why with `holdfast status`"
	if s.Cause == CauseHandlerFailed && s.Agent != "" {
		hint += ", and lift it with `holdfast agent unpause " + pause.ShowAgent(s.Agent) + "`"
	}
	return hint
}

// Set holds the active stops: those of the store, and those that are about to be written. A
// stop counts from the moment at which it is armed. It is safe for concurrent use.
type Set struct {
	mu  sync.RWMutex
	all []Stop // guarded by mu
}

// Load replaces all stops, at the start.
func (s *Set) Load(all []Stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = all
}

// Arm adds a stop.
func (s *Set) Arm(stop Stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, stop)
}

// Disarm removes stops, by their IDs.
func (s *Set) Disarm(gone []Stop) {
	if len(gone) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(old Stop) bool {
		return slices.ContainsFunc(gone, func(g Stop) bool { return g.ID == old.ID })
	})
}

// Reword gives stops the Why of those with the same ID.
func (s *Set) Reword(changed []Stop) {
	if len(changed) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changed {
		if i := slices.IndexFunc(s.all, func(o Stop) bool { return o.ID == c.ID }); i >= 0 {
			s.all[i].Why = c.Why
		}
	}
}

// List returns the stops that match, in the order in which they were put in place.
func (s *Set) List(match func(*Stop) bool) []Stop {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Stop
	for i := range s.all {
		if match(&s.all[i]) {
			out = append(out, s.all[i])
		}
	}
	return out
}

// Refuse returns the refusal by the widest stop that matches, or nil.
func (s *Set) Refuse(match func(*Stop) bool) *holdfast.Opinion {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var widest *Stop
	for i := range s.all {
		if match(&s.all[i]) && (widest == nil || s.all[i].measureWidth() > widest.measureWidth()) {
			widest = &s.all[i]
		}
	}
	if widest == nil {
		return nil
	}
	return widest.newRefusal()
}

// measureWidth orders stops by how much they stop: of two, the wider one tells a caller more.
func (s *Stop) measureWidth() int {
	n := 0
	for _, narrows := range []string{s.Tenant, s.Agent, s.Intent, s.Chain, s.Boundary} {
		if narrows == "" {
			n++
		}
	}
	return n
}

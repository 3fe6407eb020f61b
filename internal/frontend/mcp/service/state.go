package service

import (
	"fmt"
	"maps"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/router"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// states is how the MCP servers are that clients are connected to. The zero
// value has none.
type states struct {
	mu sync.Mutex
	m  map[string]map[*serverState]bool // guarded by mu; by server
}

// serverState is one server of one client. Its fields are guarded by the
// states' mu.
type serverState struct {
	of         *states
	name       string
	state, why string
}

func (s *states) begin(name string) *serverState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]map[*serverState]bool{}
	}
	if s.m[name] == nil {
		s.m[name] = map[*serverState]bool{}
	}
	x := &serverState{of: s, name: name, state: "starting"}
	s.m[name][x] = true
	return x
}

func (x *serverState) set(state string, why error) {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.state, x.why = state, ""
	if why != nil {
		x.why = excerpt.Word(why.Error())
	}
}

func (x *serverState) end() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	delete(x.of.m[x.name], x)
	if len(x.of.m[x.name]) == 0 {
		delete(x.of.m, x.name)
	}
}

// say describes each server in a few words, the worst of its clients' first;
// configured servers that nobody uses are there too.
func (s *states) say(configured []string) map[string]string {
	out := map[string]string{}
	for _, name := range configured {
		out[name] = "not in use"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range maps.Keys(s.m) {
		out[name] = sayAll(s.m[name])
	}
	return out
}

func sayAll(xs map[*serverState]bool) string {
	for _, state := range []string{router.StateGivenUp, router.StateLeftOut, router.StateRestarting, "starting"} {
		n, why := 0, ""
		for x := range xs {
			if x.state == state {
				n++
				if why == "" || x.why < why {
					why = x.why
				}
			}
		}
		if n > 0 {
			if len(xs) > 1 {
				state = fmt.Sprintf("%s for %d of %d clients", state, n, len(xs))
			}
			if why != "" {
				state += ": " + why
			}
			return state
		}
	}
	if len(xs) > 1 {
		return fmt.Sprintf("running, %d clients", len(xs))
	}
	return router.StateRunning
}

package service

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/bearer"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// testConfig has the server a, whose hints are trusted.
type testConfig struct{}

func (testConfig) Server(name string) (Server, bool) {
	return Server{Command: []string{"/bin/true"}, TrustedHints: true}, name == "a"
}
func (testConfig) ServerNames() []string     { return []string{"a"} }
func (testConfig) AllowsPlainHTTP() bool     { return false }
func (testConfig) ReviewWait() time.Duration { return 0 }

// testKernel allows everything.
type testKernel struct{ gatewaytest.Open }

func (k *testKernel) ObserveFor(
	ctx context.Context, _, _ string, cs []holdfast.Contract,
) ([]holdfast.Contract, error) {
	return k.Observe(ctx, cs)
}
func (*testKernel) Record(kernel.Event) error { return nil }
func (*testKernel) Swapped() <-chan struct{}  { return nil }

func newTestService() *Service {
	return New(Options{Kernel: &testKernel{}, Config: func() Config { return testConfig{} },
		Halted: func() bool { return false },
		Log:    slog.New(slog.DiscardHandler)})
}

// TestHintsOfConfiguredServersAreTrusted: only a configured server has the trust that the
// configuration gives it.
func TestHintsOfConfiguredServersAreTrusted(t *testing.T) {
	s := newTestService()
	for _, c := range []struct {
		hello   api.Hello
		trusted bool
	}{{api.Hello{Name: "a"}, true}, {api.Hello{Name: "b", Command: []string{"/bin/true"}}, false}} {
		bs, err := s.servers(c.hello)
		if err != nil || len(bs) != 1 || bs[0].trusted != c.trusted {
			t.Errorf("%s: %+v %v", c.hello.Name, bs, err)
		}
	}
}

// TestGatewayTellsOfPanics: the sessions of an endpoint tell the service's hook.
func TestGatewayTellsOfPanics(t *testing.T) {
	s := newTestService()
	told := ""
	s.Panicked = func(what, _ string) { told = what }
	endpoint{s: s}.config(backend{name: "fs"}).Panicked("lost", "stack")
	if told != "lost" {
		t.Errorf("the hook heard %q", told)
	}
}

// A caller whose instance of a server ends again and again wears it out for
// itself alone, in all its sessions, and who comes under many names takes no more
// memory than the bound.
func TestAttackKeep_one_caller_wears_a_server_out(t *testing.T) {
	s := newTestService()
	b, err := s.backend(api.Hello{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	who := func(agent, session string) string {
		return bearer.CallerOf(holdfast.Identity{Tenant: "t", Principal: "p", Agent: agent, Session: session})
	}
	keeper := func(agent, session string) *server.Keeper { return s.keepers.of(s, who(agent, session), b) }
	alice := keeper("alice", "1")
	if keeper("bob", "1") == alice {
		t.Error("what ended for alice is counted for bob")
	}
	if keeper("alice", "2") != alice {
		t.Error("a new session of alice's begins to count again")
	}
	for i := range 2 * maxKeepers {
		keeper(fmt.Sprint(i), "1")
		if keeper("alice", "1") != alice {
			t.Fatal("a keeper in use is forgotten")
		}
	}
	if n := len(s.keepers.m); n > maxKeepers {
		t.Errorf("%d are kept", n)
	}
}

package daemon

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/witness"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// agentsOf are the names of agents, with their tenants.
func agentsOf(n *api.Now) string {
	var out []string
	for _, g := range n.Agents {
		out = append(out, g.Tenant+"/"+g.Agent)
	}
	return strings.Join(out, " ")
}

// Of one tenant alone a daemon tells what is that tenant's and what is everybody's;
// one of whom nothing is recorded is refused by name.
func TestNow_OfOneTenant(t *testing.T) {
	d, c, down := up(t, reportedConfig)
	defer down()
	stepAs(t, c, "ann", 1)
	if err := d.Kernel.Record(kernel.Event{Tenant: "acme", Name: "note", Who: "zoe", Subject: "x"}); err != nil {
		t.Fatal(err)
	}
	w := d.watching.Watch
	w.Add(watch.Seen{Tenant: "acme", Agent: "zoe", At: time.Now(), Action: 1})
	w.Set(holdfast.Local, "ann", watch.Loop, true, time.Now(), "x")
	w.Set("acme", "zoe", watch.Loop, true, time.Now(), "x")
	w.Set("", "", watch.VerificationFailed, true, time.Now(), "x")
	for tenant, want := range map[string]struct {
		agents string
		alarms int
	}{"acme": {"acme/zoe", 2}, holdfast.Local: {"local/ann", 2}, "": {"acme/zoe local/ann", 3}} {
		n, err := c.Now(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		got := agentsOf(n)
		if tenant == "" && got == "local/ann acme/zoe" {
			got = want.agents // who was active last stands before
		}
		if n.Tenant != tenant || got != want.agents || *n.Active != len(n.Agents) || len(n.Alarms) != want.alarms {
			t.Errorf("%q: %s, %d active, %+v", tenant, agentsOf(n), *n.Active, n.Alarms)
		}
	}
	if n, err := c.Now(t.Context(), "nobody"); holdfast.KindOf(err) != holdfast.KindNotFound || !strings.Contains(err.Error(), "nothing is recorded of tenant nobody") {
		t.Errorf("%+v %v", n, err)
	}
}

// The same without a daemon, of what the ledger has.
func TestLookNow_OfOneTenant(t *testing.T) {
	p := newPast(t)
	now := time.Now()
	p.step(holdfast.Local, now)
	p.step("acme", now)
	p.write()
	state := PathsIn(t.TempDir())
	for tenant, want := range map[string]string{"acme": "acme/a", holdfast.Local: "local/a", "": "acme/a local/a"} {
		n, err := LookNow(t.Context(), state, p.s, "", tenant)
		if err != nil {
			t.Fatal(err)
		}
		if agentsOf(n) != want || n.Tenant != tenant {
			t.Errorf("%q: %s", tenant, agentsOf(n))
		}
	}
	if n, err := LookNow(t.Context(), state, p.s, "", "nobody"); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Errorf("%+v %v", n, err)
	}
}

// TestD41b_NowIsOneHealth: what holds since another day, and what nobody knows at this
// moment, is no GREEN, neither for who looks nor for who scrapes.
func TestD41b_NowIsOneHealth(t *testing.T) {
	d, _, down := up(t, reportedConfig)
	defer down()
	learned(t, d)
	health := func() (now, scraped string) {
		t.Helper()
		n, err := d.Now(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		d.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		_, rest, _ := strings.Cut(w.Body.String(), "\nholdfast_health ")
		scraped, _, _ = strings.Cut(rest, "\n")
		return n.Health.String(), scraped
	}
	says := func(what, now, scraped string) {
		t.Helper()
		if n, s := health(); n != now || s != scraped {
			t.Errorf("%s: %s, and scraped %q", what, n, s)
		}
	}
	says("nothing is wrong", "GREEN", "0")
	d.watching.NoteLearned(errors.New("leaf 7"))
	says("what is usual is not known", "YELLOW", "1")
	d.watching.NoteLearned(nil)
	disk := d.witness.Disk
	d.witness.Disk = func(context.Context) (witness.Disk, error) { return nil, syscall.EIO }
	d.witness.Verify(t.Context())
	says("the ledger cannot be verified", "YELLOW", "1")
	d.witness.Disk = disk
	d.witness.Verify(t.Context())
	d.watching.Watch.Set("", "", watch.SnapshotMissing, true, time.Now(), "x") // nothing of it is in today's ledger
	says("an alarm holds", "YELLOW", "1")
}

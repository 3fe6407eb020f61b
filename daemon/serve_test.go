package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/ledger"
)

// up starts a daemon on a state directory of its own and returns a client of
// its socket.
func up(t *testing.T, config string, change ...func(*Options)) (*Daemon, *api.Client, func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	opt := Options{State: filepath.Join(dir, "s"), Version: "test"}
	if config != "" {
		opt.Config = filepath.Join(dir, "holdfast.yaml")
		if err := os.WriteFile(opt.Config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range change {
		c(&opt)
	}
	return serve(t, opt)
}

func serve(t *testing.T, opt Options) (*Daemon, *api.Client, func()) {
	t.Helper()
	d, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	// Without a configuration the pages have the usual port, which another
	// daemon of this machine may have: one that lingers goes on without.
	serving := Serving{Linger: opt.Config == "", Ready: func(string) { close(ready) }}
	go func() { ended <- d.Serve(ctx, serving) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	down := func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	c, _, err := api.Dial(t.Context(), d.Paths.Sock)
	if err != nil {
		down()
		t.Fatal(err)
	}
	return d, c, down
}

const quiet = "version: 1\nlisten:\n  pages: none\n"

func TestServeAndAsk(t *testing.T) {
	t.Parallel()
	_, c, down := up(t, quiet)
	defer down()
	ans, err := c.Cross(t.Context(), api.Ask{Boundary: "agent/step", Payload: []byte(`{"action":"plan"}`), Agent: "alice"})
	if err != nil || ans.Failure != nil || ans.Outcome.Verdict != holdfast.Allow {
		t.Fatalf("%v %+v", err, ans)
	}
	ans, err = c.Check(t.Context(), api.Ask{Boundary: "nowhere/known", Payload: []byte(`{}`), Agent: "alice"})
	if err != nil || ans.Outcome.Verdict != holdfast.Deny || ans.Outcome.Opinions[0].Kind != holdfast.KindSchemaNotFound {
		t.Fatalf("%v %+v", err, ans)
	}
	// A boundary with a hand cannot be crossed by saying so.
	if _, err = c.Cross(t.Context(), api.Ask{Boundary: "mcp/bank/pay", Payload: []byte(`{}`), Agent: "alice"}); holdfast.KindOf(err) != holdfast.KindUsage {
		t.Fatal(err)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.Agents != 1 || st.Halted {
		t.Fatalf("%v %+v", err, st)
	}
}

func TestOneOwner(t *testing.T) {
	d, _, down := up(t, quiet)
	defer down()
	_, err := Open(t.Context(), Options{State: d.Paths.Dir, Config: d.opt.Config})
	if holdfast.KindOf(err) != holdfast.KindConflict || !strings.Contains(err.Error(), "process") {
		t.Fatalf("a second owner: %v", err)
	}
}

func TestLatchWrittenPastTheDaemonCuts(t *testing.T) {
	d, c, down := up(t, quiet+`
boundaries:
  - boundary: test/wait
    risk: LOW
`)
	defer down()
	tok, err := d.Mint(holdfast.Identity{Agent: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	started, got := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := d.Kernel.Cross(context.Background(), holdfast.Request{Boundary: "test/wait", Payload: []byte(`{}`), Token: tok},
			func(ctx context.Context) (holdfast.Output, error) {
				close(started)
				<-ctx.Done()
				return holdfast.Output{}, ctx.Err()
			})
		got <- err
	}()
	<-started
	if err := d.latch.Set("carol", "by hand", time.Now()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if holdfast.KindOf(err) != holdfast.KindHalted {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the crossing was not cut")
	}
	cut, err := c.Poke(t.Context())
	if err != nil || cut.Waiting != 0 {
		t.Fatalf("%v %+v", err, cut)
	}
	if n := countEvents(t, d, "halted"); n != 1 {
		t.Fatalf("%d halted events", n)
	}
}

// TestAnotherHaltIsAnother: a latch that was removed and set again says something else,
// though nobody saw it gone; one that stays says the same each time it is asked.
func TestAnotherHaltIsAnother(t *testing.T) {
	d, _, down := up(t, quiet)
	defer down()
	path, seen := d.Paths.Halt, map[latch.State]bool{}
	for i, set := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(path, nil, 0o600) },
		func() error {
			later := time.Now().Add(time.Second)
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, later, later))
		},
		func() error { return d.latch.Set("carol", "by hand", time.Now()) },
		func() error { return os.Mkdir(path, 0o700) },
	} {
		if err := errors.Join(d.latch.Clear(), set()); err != nil {
			t.Fatal(err)
		}
		s := d.latched()
		if seen[s] || s != d.latched() || s.Halted != (i > 0) {
			t.Errorf("%d: %+v", i, s)
		}
		seen[s] = true
	}
}

func countEvents(t *testing.T, d *Daemon, name string) (n int) {
	t.Helper()
	err := d.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if err := tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
				if s.Kind != ledger.KindEvent {
					return nil
				}
				e, err := ledger.ParseEvent(s.Record)
				if err == nil && e.Name == name {
					n++
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReloadIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	d, c, down := up(t, quiet)
	defer down()
	before, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(d.opt.Config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy := func() string {
		st, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st.Policy
	}
	write(quiet + "boundaries:\n  - boundary: new/place\n    risk: LOW\n    schema: {type: 7}\n")
	time.Sleep(time.Second)
	if policy() != before.Policy {
		t.Fatal("a broken configuration took effect")
	}
	write(quiet + "boundaries:\n  - boundary: new/place\n    risk: LOW\n")
	for range 100 {
		if policy() != before.Policy {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if policy() == before.Policy {
		t.Fatal("a good configuration did not take effect")
	}
	if n := countEvents(t, d, "policy_changed"); n != 1 {
		t.Fatalf("%d policy_changed events", n)
	}
	ans, err := c.Check(t.Context(), api.Ask{Boundary: "new/place", Payload: []byte(`{}`), Agent: "a"})
	if err != nil || ans.Outcome.Verdict != holdfast.Allow {
		t.Fatalf("%v %+v", err, ans)
	}
}

func TestDisabledHalts(t *testing.T) {
	d, c, down := up(t, quiet, func(o *Options) { o.Enabled, o.EnabledSet = "", true })
	defer down()
	ans, err := c.Cross(t.Context(), api.Ask{Boundary: "agent/step", Payload: []byte(`{}`), Agent: "alice"})
	if err != nil || ans.Failure == nil || ans.Failure.Kind != holdfast.KindHalted {
		t.Fatalf("%v %+v", err, ans)
	}
	if r, err := report.ReadDay(t.Context(), d.store, time.Now(),
		time.Now()); err != nil || r.Health != health.Red || !slices.Contains(r.Because, "everything was halted") {
		t.Errorf("the day's report: %s because of %q, %v", r.Health, r.Because, err)
	}
}

func TestBackupWhileRunning(t *testing.T) {
	_, c, down := up(t, quiet)
	defer down()
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := c.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if i, err := os.Stat(file); err != nil || i.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", err, i)
	}
	if err := c.Backup(t.Context(), file); holdfast.KindOf(err) != holdfast.KindConflict {
		t.Fatalf("over an existing file: %v", err)
	}
	if err := c.Backup(t.Context(), "relative.db"); holdfast.KindOf(err) != holdfast.KindUsage {
		t.Fatalf("a relative path: %v", err)
	}
}

func TestDialNobody(t *testing.T) {
	_, _, err := api.Dial(t.Context(), filepath.Join(t.TempDir(), "sock"))
	if !errors.Is(err, api.ErrNobody) {
		t.Fatal(err)
	}
}

func TestLingerEnds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits seconds")
	}
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(cfg, []byte(quiet), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), Options{State: filepath.Join(dir, "s"), Config: cfg})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.Serve(t.Context(), Serving{Linger: true, Ready: func(string) { close(ready) }}) }()
	<-ready
	c, _, err := api.Dial(t.Context(), d.Paths.Sock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.MCP(t.Context(), api.Hello{Name: "x", Agent: "a", Command: []string{"/nonexistent/server"}}); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Fatalf("a server that cannot be started: %v", err)
	}
	c.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it did not end after its last client")
	}
}

// A latch that is removed by hand lifts the halt, and is an alarm (D34).
func TestRemovedLatchIsRecorded(t *testing.T) {
	d, c, down := up(t, quiet)
	if _, err := c.Halt(t.Context(), api.Word{Who: "carol", Why: "smoke"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.Paths.Halt); err != nil {
		t.Fatal(err)
	}
	until(t, "the removal's event", func() bool { return countEvents(t, d, "halt_latch_removed") == 1 })
	opt := d.opt
	if err := d.latch.Set("carol", "again", time.Now()); err != nil {
		t.Fatal(err)
	}
	until(t, "the second halt's event", func() bool { return countEvents(t, d, "halted") == 2 })
	down()
	if err := os.Remove(d.Paths.Halt); err != nil {
		t.Fatal(err)
	}
	d2, _, down2 := serve(t, opt)
	defer down2()
	if n := countEvents(t, d2, "halt_latch_removed"); n != 2 {
		t.Fatalf("after a restart: %d events", n)
	}
}

// A configuration that appears where there was none is taken up: who writes a
// prohibition must not find that nobody reads it.
func TestConfigurationThatAppears(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOLDFAST_CONFIG", "")
	os.Unsetenv("HOLDFAST_CONFIG")
	if path, err := config.FindPath("", os.LookupEnv); err != nil || path != "" {
		t.Skipf("this machine has a configuration of its own: %s %v", path, err)
	}
	_, c, down := up(t, "")
	defer down()
	dir := filepath.Join(home, "holdfast")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := quiet + "boundaries:\n  - boundary: agent/step\n    risk: PROHIBITED\n"
	if err := os.WriteFile(filepath.Join(dir, "holdfast.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := c.Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(st.Problems, "; "), "not in force yet") {
		t.Errorf("before it is in force, status says %v %v", st.Problems, err)
	}
	for range 100 {
		ans, err := c.Check(t.Context(), api.Ask{Boundary: "agent/step", Payload: []byte(`{}`), Agent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if ans.Outcome.Verdict == holdfast.Deny {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the prohibition is not in force")
}

// While everything is halted no server is started, and a name that the
// configuration gives to one command is not another's.
func TestServersAreStartedByTheRules(t *testing.T) {
	dir := t.TempDir()
	d, _, down := up(t, quiet+"mcp:\n  servers:\n    good: {command: [/bin/true], trusted_hints: true}\n")
	defer down()
	touch := api.Hello{Name: "x", Agent: "a", Command: []string{"/bin/sh", "-c", "touch " + dir + "/started"}}
	for _, taken := range []api.Hello{{Name: "good", Agent: "a", Command: touch.Command}, {Name: "good", Agent: "a", URL: "http://127.0.0.1:1/"}} {
		if _, err := d.mcp.Open(taken); holdfast.KindOf(err) != holdfast.KindConflict {
			t.Errorf("another command or url under a configured name: %v", err)
		}
	}
	good, err := d.mcp.Open(api.Hello{Name: "good", Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	_ = good(t.Context(), gone{}) // /bin/true ends, and so does its client
	if err := d.latch.Set("carol", "smoke", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.mcp.Open(touch); holdfast.KindOf(err) != holdfast.KindHalted {
		t.Errorf("while halted: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the server was started")
	}
	if n := countEvents(t, d, "mcp_server_started"); n != 1 {
		t.Errorf("%d events", n)
	}
}

// What cannot be undone is put to a person, whatever its risk says (D12).
func TestIrreversibleIsHeld(t *testing.T) {
	_, c, down := up(t, quiet+"boundaries:\n  - boundary: db/drop\n    risk: LOW\n    irreversible: true\n")
	defer down()
	ans, err := c.Check(t.Context(), api.Ask{Boundary: "db/drop", Payload: []byte(`{}`), Agent: "a"})
	if err != nil || ans.Outcome.Verdict != holdfast.Hold {
		t.Fatalf("%v %+v", err, ans.Outcome)
	}
}

// Tokens of a configured issuer are believed, for the tenants it may speak for;
// nobody else's are (D8).
func TestConfiguredIssuer(t *testing.T) {
	dir := t.TempDir()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	idp, err := token.NewMinter(key, "https://idp.example", "agents")
	if err != nil {
		t.Fatal(err)
	}
	jwks := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","use":"sig","alg":"EdDSA","kid":%q,"x":%q}]}`, idp.KeyID(), base64.RawURLEncoding.EncodeToString(pub))
	file := filepath.Join(dir, "keys.json")
	if err := os.WriteFile(file, []byte(jwks), 0o600); err != nil {
		t.Fatal(err)
	}
	_, c, down := up(t, quiet+"identity:\n  issuers:\n    - {name: 'https://idp.example', audience: agents, jwks_file: "+file+", tenants: [local]}\n")
	defer down()
	ask := func(m *token.Minter) holdfast.Verdict {
		tok, _, err := m.Mint(holdfast.Identity{Principal: "u1", Agent: "ext", Session: "s", Roles: []string{"agent"}}, time.Minute, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ans, err := c.Check(t.Context(), api.Ask{Boundary: "agent/step", Payload: []byte(`{}`), Token: tok.Reveal()})
		if err != nil {
			t.Fatal(err)
		}
		return ans.Outcome.Verdict
	}
	if v := ask(idp); v != holdfast.Allow {
		t.Fatalf("the issuer's own token: %v", v)
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"https://idp.example", "https://elsewhere.example", localIssuer} {
		forger, err := token.NewMinter(other, name, "agents")
		if err != nil {
			t.Fatal(err)
		}
		if v := ask(forger); v != holdfast.Deny {
			t.Errorf("a forged token of %s: %v", name, v)
		}
	}
}

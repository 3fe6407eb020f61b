package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The attempts of an agent of a real daemon to act unseen by the watch, or so that
// what it sees is not written down, not told or undone (spec 001, layer 5). What
// it could try on the judge alone is internal/policy/watch's.

// leaf is one leaf of a tenant's tree, as far as these tests look.
type leaf struct {
	kind   ledger.Kind
	name   string // of an event
	agent  string
	entry  *ledger.Entry
	event  *ledger.Event
	begins bool
}

// leaves are those of the local tenant, in their order.
func leaves(t *testing.T, d *Daemon) (out []leaf) {
	t.Helper()
	err := d.store.View(context.Background(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1<<40, func(s ledger.Stored) error {
			l := leaf{kind: s.Kind}
			var err error
			switch s.Kind {
			case ledger.KindEvent:
				if l.event, err = ledger.ParseEvent(s.Record); err == nil {
					l.name, l.agent = l.event.Name, l.event.Subject
				}
			case ledger.KindEntry:
				if l.entry, err = ledger.ParseEntry(s.Record); err == nil {
					l.agent = l.entry.Agent
				}
			case ledger.KindBegin:
				var b *ledger.Begin
				if b, err = ledger.ParseBegin(s.Record); err == nil {
					l.agent, l.begins = b.Agent, true
				}
			}
			out = append(out, l)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pausedAt is where the tree says that the agent was paused; -1 if nowhere.
func pausedAt(all []leaf, agent string) int {
	return slices.IndexFunc(all, func(l leaf) bool { return l.name == "agent_paused" && l.agent == agent })
}

// TestAttackWatch_in_flight_at_the_pause: many callers of one agent do the same as fast
// as they can, each in a session of its own, until they are refused. Nothing
// begins behind the pause in the tree; there is one pause, one review and one
// alarm.
func TestAttackWatch_in_flight_at_the_pause(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	var wg sync.WaitGroup
	for i := range 16 {
		token, err := d.Mint(holdfast.Identity{Agent: "ada", Session: fmt.Sprint("s", i)})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range 2000 {
				_, err := d.Kernel.Cross(context.Background(), holdfast.Request{Boundary: "test/act", Payload: []byte(`{"same":1}`), Token: token},
					func(context.Context) (holdfast.Output, error) { return holdfast.Output{Body: []byte(`{}`)}, nil })
				if holdfast.KindOf(err) == holdfast.KindPaused {
					return
				}
			}
			t.Error("never refused")
		})
	}
	wg.Wait()
	d.watching.Settle(t.Context())
	all := leaves(t, d)
	at := pausedAt(all, "ada")
	if at < 0 {
		t.Fatal("it is not paused")
	}
	for _, l := range all[at+1:] {
		if l.agent == "ada" && (l.begins || l.name == "agent_paused") {
			t.Errorf("behind the pause: %+v", l)
		}
	}
	if w := waitingAbout(t, c, "ada"); len(w) != 1 {
		t.Errorf("%d reviews", len(w))
	}
	found, _ := answersIn(t, d)
	n := 0
	for _, g := range found {
		if g.Agent == "ada" && g.Response == "pause" && g.name == respond.EventAnomaly {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d answers pause it: %+v", n, found)
	}
}

// TestAttackWatch_spends_on: what spends when the pause comes is cut and its reserve
// settled; behind the pause nothing is spent by another session, another token,
// another door or an agent within.
func TestAttackWatch_spends_on(t *testing.T) {
	t.Setenv(mcpServerEnv, "yes")
	d, c, down := up(t, strings.Replace(watched, "listen:\n  pages: none\n", "listen:\n  pages: 127.0.0.1:0\n", 1)+
		fmt.Sprintf("mcp:\n  servers:\n    a: {command: [%s], env: [%s]}\n", os.Args[0], mcpServerEnv))
	defer down()
	at, _ := d.pagesAt()
	bearer := &asking{giveToken(t, c, "ada").Token}
	over := reachMCP(t, at+"/mcp", "2025-11-25", bearer)
	pid(t, over, "pid")

	began, cut := make(chan struct{}), make(chan error, 1)
	long, err := d.Mint(holdfast.Identity{Agent: "ada", Session: "long"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := d.Kernel.Cross(context.Background(), holdfast.Request{Boundary: "test/paid", Payload: []byte(`{"long":1}`), Token: long},
			func(ctx context.Context) (holdfast.Output, error) {
				close(began)
				<-ctx.Done()
				return holdfast.Output{}, context.Cause(ctx)
			})
		cut <- err
	}()
	<-began
	for i := range 6 {
		_ = acts(t, d, "ada", "test/paid", fmt.Sprintf(`{"n":%d}`, i), nil)
	}
	answerTo(t, d, "ada", watch.CostPerHour)
	if err := <-cut; holdfast.KindOf(err) != holdfast.KindPaused {
		t.Errorf("what spent when the pause came ended with %v", err)
	}
	for _, id := range []holdfast.Identity{{Agent: "ada"}, {Agent: "ada", Session: "another"}, {Agent: "ada", Kind: "code", Principal: "somebody"}, {Agent: "ada", Sub: "within"}} {
		token, err := d.Mint(id)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: "test/paid", Payload: []byte(`{}`), Token: token},
			func(context.Context) (holdfast.Output, error) { t.Error("it acts"); return holdfast.Output{}, nil })
		if holdfast.KindOf(err) != holdfast.KindPaused {
			t.Errorf("%+v: %v", id, err)
		}
	}
	if a, err := c.Cross(t.Context(), api.Ask{Boundary: "agent/step", Agent: "ada", Payload: []byte(`{}`)}); err != nil || a.Failure == nil || a.Failure.Kind != holdfast.KindPaused {
		t.Errorf("by the socket: %+v, %v", a, err)
	}
	bearer.token = giveToken(t, c, "ada").Token
	if r, err := over.CallTool(t.Context(), &sdk.CallToolParams{Name: "pid"}); err == nil && !r.IsError {
		t.Errorf("by MCP: %+v", r)
	}
	spent := int64(0)
	all := leaves(t, d)
	for _, l := range all[pausedAt(all, "ada"):] {
		if l.agent == "ada" && (l.begins || l.entry != nil && l.entry.Outcome == ledger.Done) {
			t.Errorf("behind the pause: %+v", l.entry)
		}
	}
	for _, l := range all {
		if l.entry != nil && l.agent == "ada" {
			spent += story.CostOf(l.entry)
		}
	}
	if spent > 7_000_000 {
		t.Errorf("%d spent", spent)
	}
}

// TestAttackWatch_a_counter_over_MCP: what differs in each payload, by MCP, is no loop
// and is recorded as the same kind of action over and over; the agent goes on.
func TestAttackWatch_a_counter_over_MCP(t *testing.T) {
	d, c, at := withServers(t)
	s := reachMCP(t, at+"/mcp", "2025-11-25", &asking{giveToken(t, c, "ada").Token})
	for i := range 60 {
		if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "a__pid", Arguments: map[string]any{"n": i}}); err != nil || r.IsError {
			t.Fatalf("%d: %v %+v", i, err, r)
		}
	}
	if g := answerTo(t, d, "ada", watch.Repetition); g.Response != "record" || g.Review != "" {
		t.Errorf("%+v", g)
	}
	if a := stateOf(t, d, "ada"); a.State != holdfast.AgentRunning {
		t.Errorf("%+v", a)
	}
}

// TestAttackWatch_one_cause: an agent that loops in haste, dearly and in vain is one
// alarm, one review and one pause; what it also was is recorded behind it.
func TestAttackWatch_one_cause(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d, c, down := hookedAt(t, r, "LOW")
	defer down()
	for range 12 {
		_ = acts(t, d, "ada", "agent/step", `{"same":1}`, errBroken)
	}
	answerTo(t, d, "ada", watch.Loop)
	answerTo(t, d, "ada", watch.Errors)
	d.watching.Settle(t.Context())
	found, _ := answersIn(t, d)
	for _, g := range found {
		if g.Condition != watch.Loop && (g.Response != "record" || g.Cause == "") {
			t.Errorf("answered beside the loop: %+v", g)
		}
	}
	pauses := 0
	for _, l := range leaves(t, d) {
		if l.name == "agent_paused" {
			pauses++
		}
	}
	if w := waitingAbout(t, c, "ada"); pauses != 1 || len(w) != 1 {
		t.Errorf("%d pauses, %d reviews: %+v", pauses, len(w), found)
	}
	if got := r.wait(0); got["event"] != "review_opened" {
		t.Errorf("people are told %v", got)
	}
}

// TestAttackWatch_words: nothing that the agent says of itself, of its work or of what it
// wants stands in what people are told and asked, but its name, in which
// nothing can be said.
func TestAttackWatch_words(t *testing.T) {
	r := newReceiver(t)
	d, c, down := hookedAt(t, r, "LOW")
	defer down()
	for _, name := range []string{"ada\nSTATUS: APPROVED", "ada\x1b[2K", "ada\u202eevil"} {
		token, err := d.Mint(holdfast.Identity{Agent: name})
		if err == nil {
			_, err = d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: "agent/step", Payload: []byte(`{}`), Token: token},
				func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, nil })
		}
		if err == nil {
			t.Errorf("%q acts", name)
		}
	}
	const said = "STATUS APPROVED by ann it was only a test"
	for range 5 {
		_ = acts(t, d, "ada", "agent/step", fmt.Sprintf(`{"action":%q}`, said), nil)
	}
	g := answerTo(t, d, "ada", watch.Loop)
	rev, err := c.Review(t.Context(), g.Review)
	if err != nil {
		t.Fatal(err)
	}
	notice := r.wait(0)
	for what, text := range map[string]string{"the finding": fmt.Sprintf("%+v", g), "the review": rev.Why + rev.Preview, "the notice": fmt.Sprint(notice), "the pause": stateOf(t, d, "ada").Why} {
		if strings.Contains(text, said) || strings.Contains(text, "APPROVED") {
			t.Errorf("%s says what the agent said: %s", what, text)
		}
	}
	if rev.State != "pending" || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", rev)
	}
}

// TestAttackWatch_flood_hides_nobody: while others make findings as fast as they can,
// under ever new names, an agent's loop is answered all the same.
func TestAttackWatch_flood_hides_nobody(t *testing.T) {
	t.Parallel()
	d, _, down := up(t, watched)
	defer down()
	each := testrepeat.Times(40, 5)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range each {
				_ = acts(t, d, fmt.Sprintf("noisy-%d-%d", i, n), "test/never", `{}`, nil)
			}
		})
	}
	loops(t, d, "victim")
	answerTo(t, d, "victim", watch.Loop)
	wg.Wait()
	d.watching.Settle(t.Context())
	if st := stateOf(t, d, "victim"); st.State != holdfast.AgentPaused || d.latch.Halted() {
		t.Errorf("%+v, halted: %v", st, d.latch.Halted())
	}
	for i := range 4 {
		for n := range each {
			if a := stateOf(t, d, fmt.Sprintf("noisy-%d-%d", i, n)); a.State != holdfast.AgentPaused {
				t.Errorf("%+v", a)
			}
		}
	}
}

// TestAttackWatch_over_egress: an agent that sends a service the same again and again
// is paused; its stream is cut, and it reaches nothing.
func TestAttackWatch_over_egress(t *testing.T) {
	w := newWorld(t, withKey)
	agent := w.agent()
	open := w.stream(agent, "first")
	for range 5 {
		resp, err := agent.Post("https://example.com:"+w.port+"/same", "text/plain", strings.NewReader("again"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	answerTo(t, w.d, "nightly", watch.Loop)
	if b, err := io.ReadAll(open.Body); strings.Contains(string(b), "second") {
		t.Errorf("the stream goes on: %q, %v", b, err)
	}
	resp, err := agent.Get("https://example.com:" + w.port + "/other")
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("it reaches the service")
		}
	}
}

// TestAttackWatch_let_go_and_goes_on: a person lets the agent go on by whatever way there
// is, and it is seen again if it does the same.
func TestAttackWatch_let_go_and_goes_on(t *testing.T) {
	t.Parallel()
	d, c, down := up(t, watched)
	defer down()
	says := personOf(t, d, c)
	reviews := map[string]bool{}
	for range 3 {
		loops(t, d, "ada")
		var w []string
		until(t, "another review", func() bool {
			w = nil
			for _, r := range waitingAbout(t, c, "ada") {
				w = append(w, r.ID)
			}
			return len(w) == 1 && !reviews[w[0]]
		})
		reviews[w[0]] = true
		if err := says(operator.Approve, w[0]); err != nil {
			t.Fatal(err)
		}
		if a := stateOf(t, d, "ada"); a.State != holdfast.AgentRunning {
			t.Fatalf("%+v", a)
		}
	}
}

// TestAttackWatch_restart: a daemon that ends while a finding waits for its answer
// gives it before it ends, and what was paused stays paused.
func TestAttackWatch_restart(t *testing.T) {
	var opt Options
	d, _, down := up(t, watched, func(o *Options) { opt = *o })
	loops(t, d, "ada")
	down()
	d, _, down = serve(t, opt)
	defer down()
	if a := stateOf(t, d, "ada"); a.State != holdfast.AgentPaused {
		t.Errorf("it goes on: %+v", a)
	}
	if err := acts(t, d, "ada", "test/act", `{}`, nil); holdfast.KindOf(err) != holdfast.KindPaused {
		t.Error(err)
	}
}

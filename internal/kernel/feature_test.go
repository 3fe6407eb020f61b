package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/stops"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// probe is a feature that only tests have. It has every verb; a nil function does nothing.
type probe struct {
	host     kernel.Host
	gates    []holdfast.Gate
	onJoin   func(r kernel.Reader, v *kernel.View) (kernel.Part, error)
	onBegin  func(tx kernel.FeatureTx, p kernel.Part, b *ledger.Begin) error
	onEntry  func(tx kernel.FeatureTx, p kernel.Part, e *ledger.Entry) error
	onSignal func(tx kernel.FeatureTx, s signal.Signal) (map[string]any, error)
	onReact  func(ctx context.Context, t kernel.Task) error
}

type probeKey struct {
	Tenant string `table:"tenant"`
	Name   string `table:"name"`
}

type probeRow struct {
	Text string `json:"text,omitempty"`
}

var probeRows = table.New[probeKey, probeRow]("test_probe", table.Options{Gates: true})

// testTables returns the tables of the features that tests have.
func testTables() []*table.Def { return append(feature.Tables(), probeRows.Def()) }

// with adds the feature to the kernel.
func withFeature(p *probe) option {
	return func(c *kernel.Config, _ *world) {
		c.Features = append(c.Features, func(h kernel.Host) kernel.Feature { p.host = h; return p })
	}
}

func (p *probe) Spec() kernel.Spec {
	return kernel.Spec{Name: "probe", Tables: []*table.Def{probeRows.Def()}, Gates: p.gates}
}

func (p *probe) Join(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
	if p.onJoin == nil {
		return nil, nil
	}
	return p.onJoin(r, v)
}

func (p *probe) OnBegin(tx kernel.FeatureTx, part kernel.Part, b *ledger.Begin) error {
	if p.onBegin == nil {
		return nil
	}
	return p.onBegin(tx, part, b)
}

func (p *probe) OnEntry(tx kernel.FeatureTx, part kernel.Part, e *ledger.Entry) error {
	if p.onEntry == nil {
		return nil
	}
	return p.onEntry(tx, part, e)
}

func (p *probe) OnSignal(tx kernel.FeatureTx, s signal.Signal) (map[string]any, error) {
	if p.onSignal == nil {
		return nil, nil
	}
	return p.onSignal(tx, s)
}

func (p *probe) React(ctx context.Context, t kernel.Task) error {
	if p.onReact == nil {
		return nil
	}
	return p.onReact(ctx, t)
}

func (p *probe) Recall(record json.RawMessage) (kernel.Part, error) {
	var part ruled
	return part, json.Unmarshal(record, &part)
}

// ruled is a part that decides by the text of a row: "deny" and "hold" do that at K2.
type ruled struct {
	Text   string `json:"text"`
	claims kernel.Claims
}

func (p ruled) Evaluate(_ context.Context, g holdfast.Gate, _ *kernel.View) holdfast.Opinion {
	switch p.Text {
	case "deny":
		return holdfast.Opinion{Verdict: holdfast.Deny, Kind: holdfast.KindPermission, Why: "the row says so",
			Rule: "probe/row"}
	case "hold":
		return holdfast.Opinion{Verdict: holdfast.Hold, Why: "the row asks for a person"}
	}
	return holdfast.Opinion{Verdict: holdfast.Allow}
}

func (p ruled) Claims() kernel.Claims { return p.claims }
func (p ruled) Record() any           { return p }

// joinRow joins with the text of the row "rule", and takes no part without one.
func joinRow(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
	row, _, err := probeRows.Get(r, probeKey{v.Who.Tenant, "rule"})
	if errors.Is(err, kernel.ErrNotFound) {
		return nil, nil
	}
	return ruled{Text: row.Text}, err
}

func (w *world) setProbe(p *probe, name, text string) {
	w.t.Helper()
	err := p.host.Commit(context.Background(), func(tx kernel.FeatureTx) error { return putProbe(tx, name, text) })
	if err != nil {
		w.t.Fatal(err)
	}
}

func putProbe(tx kernel.FeatureTx, name, text string) error {
	k := probeKey{holdfast.Local, name}
	_, version, err := probeRows.Find(tx, k)
	if err != nil {
		return err
	}
	return probeRows.Put(tx, k, probeRow{text}, version)
}

func (w *world) probeRow(name string) (row probeRow, found bool) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx kernel.Tx) (err error) {
		row, _, err = probeRows.Get(tx, probeKey{holdfast.Local, name})
		return err
	})
	if err != nil && !errors.Is(err, kernel.ErrNotFound) {
		w.t.Fatal(err)
	}
	return row, err == nil
}

func TestFeatureDecidesAtItsGate(t *testing.T) {
	p := &probe{gates: []holdfast.Gate{holdfast.K2}, onJoin: joinRow}
	w := newWorld(t, "", withFeature(p))
	w.passes(w.req("test/low", `{"n":1}`))
	w.setProbe(p, "rule", "deny")
	e := w.refusedAs(w.req("test/low", `{"n":2}`), holdfast.K2, holdfast.KindPermission)
	if e.Why != "the row says so" || e.Rule != "probe/row" {
		t.Errorf("%+v", e)
	}
	w.setProbe(p, "rule", "hold")
	h := w.held(w.req("test/low", `{"n":3}`))
	w.approve(h.Review)
	w.passes(w.req("test/low", `{"n":3}`))
	w.held(w.req("test/low", `{"n":4}`))
	out, err := w.k.Check(t.Context(), w.req("test/low", `{"n":5}`))
	if err != nil || out.Verdict != holdfast.Hold {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestFeatureWithoutOpinionDenies: the zero opinion, a panic and an error are denials.
func TestFeatureWithoutOpinionDenies(t *testing.T) {
	for name, join := range map[string]func(kernel.Reader, *kernel.View) (kernel.Part, error){
		"zero": func(kernel.Reader, *kernel.View) (kernel.Part, error) {
			return opinion(func() holdfast.Opinion { return holdfast.Opinion{} }), nil
		},
		"panic": func(kernel.Reader, *kernel.View) (kernel.Part, error) {
			return opinion(func() holdfast.Opinion { panic("no") }), nil
		},
		"error": func(kernel.Reader, *kernel.View) (kernel.Part, error) { return nil, errors.New("no") },
		"foreign counter": func(kernel.Reader, *kernel.View) (kernel.Part, error) {
			return ruled{claims: kernel.Claims{Draws: []budget.Draw{{Key: "x", Amount: 1, Limit: 1}}}}, nil
		},
		"endless": func(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
			for i := range 1001 {
				if _, _, err := probeRows.Find(r, probeKey{v.Who.Tenant, fmt.Sprint(i)}); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", withFeature(&probe{gates: []holdfast.Gate{holdfast.K2}, onJoin: join}))
			w.noAct(w.req("test/low", `{}`), name)
		})
	}
}

type opinion func() holdfast.Opinion

func (o opinion) Evaluate(context.Context, holdfast.Gate, *kernel.View) holdfast.Opinion { return o() }

// TestFeatureClaimsFromK3: a feature's own counter is reserved and settled with the others.
func TestFeatureClaimsFromK3(t *testing.T) {
	claim := budget.Draw{Key: kernel.ClaimKey("probe") + "seats", Resource: "seats", Amount: 2, Limit: 5,
		Name: "seats of the probe"}
	p := &probe{onJoin: func(kernel.Reader, *kernel.View) (kernel.Part, error) {
		return ruled{claims: kernel.Claims{Draws: []budget.Draw{claim}}}, nil
	}}
	w := newWorld(t, "", withFeature(p))
	w.passes(w.req("test/low", `{"n":1}`))
	w.passes(w.req("test/low", `{"n":2}`))
	e := w.refusedAs(w.req("test/low", `{"n":3}`), holdfast.K3, holdfast.KindBounds)
	if e.Rule != claim.Name {
		t.Errorf("%+v", e)
	}
	raised := kernel.Claims{Draws: []budget.Draw{claim}}
	raised.Draws[0].Limit = 6
	p.onJoin = func(kernel.Reader, *kernel.View) (kernel.Part, error) { return ruled{claims: raised}, nil }
	w.passes(w.req("test/low", `{"n":4}`))
}

// TestFeatureChecksAtUse: what a join has read is changed before the begin commits, in each
// way in which it can change; the crossing is evaluated again, and what held was true.
func TestFeatureChecksAtUse(t *testing.T) {
	read := map[string]func(r kernel.Reader, v *kernel.View) (kernel.Part, error){
		"a row": joinRow,
		"a range": func(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
			part := ruled{}
			err := probeRows.Scan(r, table.Range{Prefix: []any{v.Who.Tenant}, Limit: 10}, func(_ probeKey,
				row probeRow, _ int64) error {
				part.Text += row.Text
				return nil
			})
			return part, err
		},
		"an agent": func(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
			a, err := r.Agent(v.Who.Tenant, "bob")
			if errors.Is(err, kernel.ErrNotFound) {
				return ruled{}, nil
			}
			if a.Level > holdfast.Baseline {
				return ruled{Text: "deny"}, err
			}
			return ruled{}, err
		},
	}
	for name, join := range read {
		t.Run(name, func(t *testing.T) {
			p := &probe{gates: []holdfast.Gate{holdfast.K2, holdfast.K8}}
			w := newWorld(t, "", withFeature(p))
			joins := 0
			p.onJoin = func(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
				joins++
				return join(r, v)
			}
			changed := false
			inner := p.onJoin
			p.onJoin = func(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
				part, err := inner(r, v)
				return atK8{part, func() {
					if changed {
						return
					}
					changed = true
					if name == "an agent" {
						w.setLevel("bob", holdfast.Highest)
					} else {
						w.setProbe(p, "rule", "deny")
					}
				}}, err
			}
			w.noAct(w.req("test/low", `{}`), "a row that changed")
			if joins != 2 {
				t.Errorf("it was evaluated %d times, expected 2", joins)
			}
		})
	}
	t.Run("again and again", func(t *testing.T) {
		p := &probe{gates: []holdfast.Gate{holdfast.K8}}
		w := newWorld(t, "", withFeature(p))
		n := 0
		p.onJoin = func(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
			n++
			_, err := joinRow(r, v)
			return atK8{ruled{}, func() { w.setProbe(p, "rule", fmt.Sprint(n)) }}, err
		}
		_, err := w.cross(w.req("test/low", `{}`))
		wants(t, err, holdfast.KindConflict)
		if n != 8 {
			t.Errorf("it was evaluated %d times, expected 8", n)
		}
	})
}

// change writes an agent with that trust level.
func (w *world) setLevel(name string, level holdfast.Level) {
	w.t.Helper()
	err := w.store.Update(context.Background(), func(tx kernel.Tx) error {
		return tx.PutAgent(holdfast.Agent{Tenant: holdfast.Local, Name: name, Level: level,
			State: holdfast.AgentRunning, First: w.now()})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// atK8 does something while K8 is evaluated.
type atK8 struct {
	kernel.Part
	do func()
}

func (p atK8) Evaluate(ctx context.Context, g holdfast.Gate, v *kernel.View) holdfast.Opinion {
	if g == holdfast.K8 {
		p.do()
	}
	if p.Part == nil {
		return holdfast.Opinion{Verdict: holdfast.Allow}
	}
	return p.Part.Evaluate(ctx, g, v)
}

// TestFeatureCannotKeepAnAgentFromBeingStopped: a handler that errors, panics or hangs at
// an escape, and an entry hook that does at any entry.
func TestFeatureCannotKeepAnAgentFromBeingStopped(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, fails := range map[string]func(tx kernel.FeatureTx) error{
		"errors": func(kernel.FeatureTx) error { return errors.New("no") },
		"panics": func(kernel.FeatureTx) error { panic("no") },
		"hangs": func(tx kernel.FeatureTx) error {
			<-hang
			return putProbe(tx, "late", "x")
		},
	} {
		t.Run("a handler that "+name, func(t *testing.T) {
			var repaired atomic.Bool
			p := &probe{onSignal: func(tx kernel.FeatureTx, s signal.Signal) (map[string]any, error) {
				if _, ok := s.(signal.Escape); !ok {
					return nil, nil
				}
				if err := putProbe(tx, "seen", s.SignalName()); err != nil || repaired.Load() {
					return nil, err
				}
				return nil, fails(tx)
			}}
			w := newWorld(t, "", withFeature(p))
			out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), breaksOut)
			wants(t, err, holdfast.KindEscape)
			if w.agent("alice").State != holdfast.AgentPaused {
				t.Error("the agent is not paused")
			}
			if _, d := w.attempt(out.Crossing); fmt.Sprint(d["failed_handlers"]) != "[probe]" {
				t.Errorf("%v", d)
			}
			if _, there := w.probeRow("seen"); there {
				t.Error("a failed handler left a row")
			}
			if n := len(w.events(holdfast.Local, "feature_failed")); n != 1 {
				t.Errorf("%d events", n)
			}
			repaired.Store(true)
			w.untilReacted()
			if row, there := w.probeRow("seen"); !there || row.Text != "escape" {
				t.Errorf("the signal was not delivered again: %+v", row)
			}
		})
		t.Run("an entry hook that "+name, func(t *testing.T) {
			var repaired atomic.Bool
			p := &probe{onEntry: func(tx kernel.FeatureTx, _ kernel.Part, e *ledger.Entry) error {
				if err := putProbe(tx, "seen", e.ID); err != nil || repaired.Load() {
					return err
				}
				return fails(tx)
			}}
			w := newWorld(t, "", withFeature(p))
			out := w.passes(w.req("test/low", `{}`))
			w.refusedAs(w.req("test/low", `{"again":1}`), holdfast.GateHalt, holdfast.KindPaused)
			w.unpause()
			if stops := w.k.Stops(); len(stops) != 0 {
				t.Errorf("after an unpause: %+v", stops)
			}
			w.passes(w.req("test/low", `{"unpaused":1}`)) // whose entry fails as well
			if all := w.k.Stops(); len(all) == 0 || all[0].Cause != stops.CauseHandlerFailed ||
				all[0].Agent != "alice" {
				t.Errorf("%+v", all)
			}
			repaired.Store(true)
			w.untilReacted()
			if row, there := w.probeRow("seen"); !there || row.Text == "" {
				t.Errorf("the entry of %s was not delivered again: %+v", out.Crossing, row)
			}
			if stops := w.k.Stops(); len(stops) != 0 {
				t.Errorf("%+v", stops)
			}
			w.passes(w.req("test/low", `{"later":1}`))
		})
	}
}

// untilReacted lets the features do the tasks that wait. The first round waits for one that
// is in progress, and whose failure puts its task off.
func (w *world) untilReacted() {
	w.t.Helper()
	for range 2 {
		w.advance(5 * time.Minute)
		if err := w.k.React(context.Background()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestFeatureReactsAfterACrash: a task that a commit left is done by the process after, and
// is not done again once it succeeded.
func TestFeatureReactsAfterACrash(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	done := map[string]int{}
	make := func(fails bool) *probe {
		return &probe{
			onEntry: func(tx kernel.FeatureTx, _ kernel.Part, e *ledger.Entry) error {
				return tx.Later(kernel.Task{Name: "tidy", Data: json.RawMessage(fmt.Sprintf("%q", e.ID))})
			},
			onReact: func(_ context.Context, task kernel.Task) error {
				mu.Lock()
				defer mu.Unlock()
				if fails {
					return errors.New("the process ends before it is done")
				}
				done[string(task.Data)]++
				return nil
			},
		}
	}
	w := reopen(t, dir, "", withFeature(make(true)))
	out := w.passes(w.req("test/low", `{}`))
	_ = w.k.React(t.Context()) // it fails, here or in the goroutine of the commit
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.k = nil
	w = reopen(t, dir, "", withFeature(make(false)))
	w.untilReacted()
	w.untilReacted()
	mu.Lock()
	defer mu.Unlock()
	if len(done) != 1 || done[fmt.Sprintf("%q", out.Crossing)] != 1 {
		t.Errorf("%v, expected %s once", done, out.Crossing)
	}
}

// TestFeatureDecisionIsEvaluatedAgain: from the ledger alone, in a kernel whose store has no
// row of the feature.
func TestFeatureDecisionIsEvaluatedAgain(t *testing.T) {
	p := &probe{gates: []holdfast.Gate{holdfast.K2}, onJoin: joinRow}
	w := newWorld(t, "", withFeature(p))
	w.setProbe(p, "rule", "fine")
	allowed := w.passes(w.req("test/low", `{"n":1}`))
	w.setProbe(p, "rule", "deny")
	w.refusedAs(w.req("test/low", `{"n":2}`), holdfast.K2, holdfast.KindPermission)
	facts := map[string][]ledger.FeatureFacts{}
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		switch s.Kind {
		case ledger.KindBegin:
			b, err := ledger.ParseBegin(s.Record)
			if err != nil {
				t.Fatal(err)
			}
			facts["allowed"] = b.Features
		case ledger.KindEntry:
			e, err := ledger.ParseEntry(s.Record)
			if err != nil {
				t.Fatal(err)
			}
			if e.ID != allowed.Crossing {
				facts["denied"] = e.Features
			}
		}
	})
	elsewhere := []kernel.Feature{&probe{gates: []holdfast.Gate{holdfast.K2}}}
	for name, want := range map[string]holdfast.Verdict{"allowed": holdfast.Allow, "denied": holdfast.Deny} {
		got, err := kernel.Recall(elsewhere, facts[name], &kernel.View{})
		if err != nil || len(got) != 1 || got[0].Feature != "probe" || len(got[0].Opinions) != 1 ||
			got[0].Opinions[0].Verdict != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := kernel.Recall(nil, facts["denied"], &kernel.View{}); err == nil {
		t.Error("a record of an unknown feature was evaluated")
	}
}

// TestFeatureRecordIsBoundedAndRedacted: what a part leaves in the ledger.
func TestFeatureRecordIsBoundedAndRedacted(t *testing.T) {
	const secret = "AKIAIOSFODNN7EXAMPLE"
	p := &probe{onJoin: func(kernel.Reader, *kernel.View) (kernel.Part, error) {
		return ruled{Text: "key " +
			secret}, nil
	}}
	w := newWorld(t, "", withFeature(p))
	w.passes(w.req("test/low", `{}`))
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if strings.Contains(string(s.Record), secret) {
			t.Errorf("%s", s.Record)
		}
	})
	p.onJoin = func(kernel.Reader, *kernel.View) (kernel.Part, error) {
		return ruled{Text: strings.Repeat("x ", ledger.MaxFeatureText)}, nil
	}
	w.noAct(w.req("test/low", `{}`), "a record that is too long")
}

// TestFeatureBegins: a hook may refuse, and ask that the crossing be evaluated again.
func TestFeatureBegins(t *testing.T) {
	p := &probe{onJoin: func(kernel.Reader, *kernel.View) (kernel.Part, error) { return ruled{}, nil }}
	w := newWorld(t, "", withFeature(p))
	p.onBegin = func(tx kernel.FeatureTx, _ kernel.Part, b *ledger.Begin) error {
		return errors.Join(putProbe(tx, "begun", b.ID), tx.Event(kernel.Event{Tenant: b.TenantID, Crossing: b.ID,
			Name: "probe_began", Who: "probe", Subject: "x"}))
	}
	out := w.passes(w.req("test/low", `{}`))
	if row, _ := w.probeRow("begun"); row.Text != out.Crossing || len(w.events(holdfast.Local, "probe_began")) != 1 {
		t.Errorf("%+v", row)
	}
	p.onBegin = func(tx kernel.FeatureTx, _ kernel.Part, _ *ledger.Begin) error {
		return errors.Join(putProbe(tx, "begun", "no"), kernel.Refuse(holdfast.Opinion{Gate: holdfast.K2,
			Why: "not now"}))
	}
	w.refusedAs(w.req("test/low", `{"n":1}`), holdfast.K2, holdfast.KindPermission)
	n := 0
	p.onBegin = func(kernel.FeatureTx, kernel.Part, *ledger.Begin) error {
		if n++; n < 3 {
			return kernel.ErrAgain
		}
		return nil
	}
	w.passes(w.req("test/low", `{"n":2}`))
	if row, _ := w.probeRow("begun"); row.Text != out.Crossing || n != 3 {
		t.Errorf("%+v, %d", row, n)
	}
}

// TestFeatureStops: a stop is active before it is durable, concerns what it names, is
// found after a restart, and is lifted by its feature alone.
func TestFeatureStops(t *testing.T) {
	dir := t.TempDir()
	p := &probe{}
	w := reopen(t, dir, "", withFeature(p))
	w.passes(w.req("test/low", `{}`))
	id, err := p.host.Stop(t.Context(), kernel.Stop{Tenant: holdfast.Local, Agent: "alice", Cause: "test",
		Why: "a test stops it"})
	if err != nil {
		t.Fatal(err)
	}
	e := w.refusedAs(w.req("test/low", `{}`), holdfast.GateHalt, holdfast.KindPaused)
	if e.Rule != "stop/test" || !strings.Contains(e.Why, "a test stops it") {
		t.Errorf("%+v", e)
	}
	bob := w.req("test/low", `{}`)
	bob.Token = w.who("bob")
	w.passes(bob)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.k = nil
	w = reopen(t, dir, "", withFeature(p))
	w.refusedAs(w.req("test/low", `{}`), holdfast.GateHalt, holdfast.KindPaused)
	err = p.host.Commit(t.Context(), func(tx kernel.FeatureTx) error { return tx.Lift(holdfast.Local, id) })
	if err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/low", `{}`))
	names := []string{}
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Kind != ledger.KindEvent {
			return
		}
		if ev, err := ledger.ParseEvent(s.Record); err == nil && strings.HasPrefix(ev.Name, "stop") {
			names = append(names, ev.Name)
		}
	})
	if !slices.Equal(names, []string{"stopped", "stop_lifted"}) {
		t.Errorf("%v", names)
	}
	failed := errors.New("no")
	err = p.host.Commit(t.Context(), func(tx kernel.FeatureTx) error {
		_, err := tx.Stop(kernel.Stop{Tenant: holdfast.Local, Cause: "test", Why: "undone"})
		return errors.Join(err, failed)
	})
	if !errors.Is(err, failed) || len(w.k.Stops()) != 0 {
		t.Errorf("a stop whose transaction failed is active: %v, %+v", err, w.k.Stops())
	}
}

// TestFeatureRaisesSignals: a signal of a handler is delivered after it, at most 8 deep.
func TestFeatureRaisesSignals(t *testing.T) {
	p := &probe{}
	newWorld(t, "", withFeature(p))
	var order []string
	p.onSignal = func(tx kernel.FeatureTx, s signal.Signal) (map[string]any, error) {
		e, ok := s.(signal.PartsErased)
		if !ok {
			return nil, nil
		}
		order = append(order, fmt.Sprint(e.From))
		if e.From < e.To {
			err := tx.Raise(signal.PartsErased{Tenant: e.Tenant, From: e.From + 1, To: e.To})
			order = append(order, "raised")
			return nil, err
		}
		return nil, nil
	}
	raise := func(to int64) error {
		order = nil
		return p.host.Commit(t.Context(),
			func(tx kernel.FeatureTx) error { return tx.Raise(signal.PartsErased{Tenant: "t", From: 1, To: to}) })
	}
	if err := raise(3); err != nil || strings.Join(order, " ") != "1 raised 2 raised 3" {
		t.Errorf("%v, %v", order, err)
	}
	if err := raise(8); err != nil {
		t.Errorf("8 deep: %v", err)
	}
	if err := raise(9); err == nil {
		t.Error("9 deep was taken")
	}
}

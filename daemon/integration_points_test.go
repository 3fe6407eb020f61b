package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// points is a daemon whose agents' work is looked at: what they cross, and what becomes
// of their work tree.
type points struct {
	d    *Daemon
	tree string
}

func openPoints(t *testing.T, change ...func(*Options)) *points {
	t.Helper()
	tree, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, _, down := up(t, fmt.Sprintf(`version: 1
listen: {pages: none}
boundaries:
  - {boundary: agent/step, risk: LOW, permissions: ["agent:step"], consumes: {iterations: 1}}
  - {boundary: test/apart, risk: LOW, cooldown: 1h}
  - {boundary: test/low, risk: LOW}
  - {boundary: test/act, risk: MEDIUM}
  - {boundary: test/high, risk: HIGH}
  - {boundary: test/never, risk: PROHIBITED}
  - {boundary: test/sure, risk: MEDIUM, confidence: declared}
  - {boundary: test/careful, risk: MEDIUM, on_error: rollback}
  - {boundary: test/dear, risk: LOW, consumes: {money_micro: 11000000}}
snapshots:
  trees: [{path: %s, kind: state, agents: [coder]}]
`, tree), change...)
	t.Cleanup(down)
	return &points{d, tree}
}

// wish is a request, and how its hand ends.
type wish struct {
	agent, kind, boundary string
	payload               string // "{}" if absent
	sure                  *float64
	hand                  func() error
}

// cross makes it, and says whether the hand was called.
func (p *points) cross(t *testing.T, a wish) (acted bool, out *holdfast.Outcome, err error) {
	t.Helper()
	token, err := p.d.Mint(holdfast.Identity{Agent: a.agent, Kind: a.kind})
	if err != nil {
		t.Fatal(err)
	}
	if a.payload == "" {
		a.payload = "{}"
	}
	out, err = p.d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: a.boundary, Payload: []byte(a.payload), Token: token, Confidence: a.sure},
		func(context.Context) (holdfast.Output, error) {
			acted = true
			if a.hand == nil {
				return holdfast.Output{Body: []byte("{}")}, nil
			}
			return holdfast.Output{Body: []byte("{}")}, a.hand()
		})
	return acted, out, err
}

// acts sees that it is let through.
func (p *points) acts(t *testing.T, a wish) *holdfast.Outcome {
	t.Helper()
	acted, out, err := p.cross(t, a)
	if !acted || err != nil && a.hand == nil {
		t.Fatalf("%+v: acted %v, %v", a, acted, err)
	}
	return out
}

// stops sees that it is not, for that reason, and that nothing was done.
func (p *points) stops(t *testing.T, a wish, kind holdfast.Kind, why string) {
	t.Helper()
	acted, _, err := p.cross(t, a)
	if acted || holdfast.KindOf(err) != kind || !strings.Contains(fmt.Sprint(err), why) {
		t.Fatalf("%+v: acted %v, %v; want %s with %q", a, acted, err, kind, why)
	}
}

// rates are an agent's figures.
func (p *points) rates(agent string) (r watch.Rates) {
	all := p.d.watching.Watch.Rates(time.Now())
	if i := slices.IndexFunc(all, func(r watch.Rates) bool { return r.Agent == agent }); i >= 0 {
		r = all[i]
	}
	return r
}

// entry is how a crossing ended.
func (p *points) entry(t *testing.T, id string) (e *ledger.Entry) {
	t.Helper()
	err := p.d.store.View(t.Context(), func(tx kernel.Tx) error {
		list, err := tx.Crossing(holdfast.Local, id)
		for _, l := range list {
			if l.Kind == ledger.KindEntry && err == nil {
				e, err = ledger.ParseEntry(l.Record)
			}
		}
		return err
	})
	if err != nil || e == nil {
		t.Fatalf("%s has no entry: %v", id, err)
	}
	return e
}

// writes is a hand that writes a file of the tree, and ends with err.
func (p *points) writes(name, text string, err error) func() error {
	return func() error {
		if bad := os.WriteFile(filepath.Join(p.tree, name), []byte(text), 0o644); bad != nil {
			return bad
		}
		return err
	}
}

// Test001_IntegrationPoints walks the lists of spec 001, "Integration Points", on the
// daemon as it is: each of their lines is asked, or done, by a crossing of itself, and
// nobody has to call it.
func Test001_IntegrationPoints(t *testing.T) {
	t.Parallel()
	p := openPoints(t)
	float := func(v float64) *float64 { return &v }
	for _, row := range []struct {
		line string
		is   func(t *testing.T)
	}{
		{"before an iteration: enabled flag", func(t *testing.T) {
			off := openPoints(t, func(o *Options) { o.Enabled, o.EnabledSet = "false", true })
			off.stops(t, wish{agent: "ada", boundary: "agent/step"}, holdfast.KindHalted, "HOLDFAST_ENABLED")
		}},
		{"before an iteration: iteration limit", func(t *testing.T) {
			for range 3 { // of kind code
				p.acts(t, wish{agent: "turner", kind: "code", boundary: "agent/step"})
			}
			p.stops(t, wish{agent: "turner", kind: "code", boundary: "agent/step"}, holdfast.KindBounds, "iterations per session")
		}},
		{"before an iteration: cooldown", func(t *testing.T) {
			p.acts(t, wish{agent: "hasty", boundary: "test/apart"})
			p.stops(t, wish{agent: "hasty", boundary: "test/apart"}, holdfast.KindBounds, "cooldown of 1h0m0s")
		}},
		{"before an iteration: API budget", func(t *testing.T) {
			p.stops(t, wish{agent: "rich", boundary: "test/dear"}, holdfast.KindBounds, "money_micro per session")
		}},
		{"before an action: risk classification", func(t *testing.T) {
			p.acts(t, wish{agent: "risky", boundary: "test/low"})
			p.acts(t, wish{agent: "risky", boundary: "test/act"})
			p.stops(t, wish{agent: "risky", boundary: "test/high"}, holdfast.KindHeld, "the risk is HIGH")
			p.stops(t, wish{agent: "risky", boundary: "test/never"}, holdfast.KindProhibited, "")
		}},
		{"before an action: confidence gate", func(t *testing.T) {
			p.acts(t, wish{agent: "sure", boundary: "test/sure", sure: float(0.7)})
			p.stops(t, wish{agent: "sure", boundary: "test/sure", sure: float(0.69)}, holdfast.KindHeld, "the confidence 0.69 is below 0.70")
			p.stops(t, wish{agent: "sure", boundary: "test/sure"}, holdfast.KindConfidence, "")
		}},
		{"before an action: anomaly detection", func(t *testing.T) {
			for range 5 {
				_, _, _ = p.cross(t, wish{agent: "looper", boundary: "test/low"})
			}
			answerTo(t, p.d, "looper", watch.Loop)
			p.stops(t, wish{agent: "looper", boundary: "test/low", payload: `{"other":1}`}, holdfast.KindPaused, "loop: the same action 5 times")
		}},
		{"before an action: all pass, it is executed", func(t *testing.T) {
			out := p.acts(t, wish{agent: "calm", boundary: "test/act"})
			for g := holdfast.K1; g <= holdfast.K8; g++ {
				if !slices.ContainsFunc(out.Opinions, func(o holdfast.Opinion) bool { return o.Gate == g && o.Verdict == holdfast.Allow }) {
					t.Errorf("%v let it through without a word: %+v", g, out.Opinions)
				}
			}
			if e := p.entry(t, out.Crossing); e.Outcome != ledger.Done {
				t.Errorf("%+v", e)
			}
		}},
		{"after an action: state is committed", func(t *testing.T) {
			out := p.acts(t, wish{agent: "coder", boundary: "test/act", hand: p.writes("state.md", "one", nil)})
			until(t, "the commit", func() bool {
				kept := false
				err := p.d.store.View(t.Context(), func(tx kernel.Tx) error {
					list, err := tx.Events(holdfast.Local, out.Crossing, 10)
					for _, l := range list {
						kept = kept || strings.Contains(string(l.Record), `"event":"work_committed"`)
					}
					return err
				})
				return err == nil && kept
			})
		}},
		{"after an action: metrics are updated", func(t *testing.T) {
			p.acts(t, wish{agent: "metered", boundary: "agent/step"})
			p.acts(t, wish{agent: "metered", boundary: "test/low"})
			until(t, "both in the agent's figures", func() bool { r := p.rates("metered"); return r.Actions == 2 && r.StepsPerHour > 0 && r.Judged == 2 })
		}},
		{"after an action: the iteration counter goes up", func(t *testing.T) {
			for range 2 { // of an unknown kind, and what failed counts as well
				p.acts(t, wish{agent: "counted", boundary: "agent/step", hand: p.writes("counted", "", errBroken)})
			}
			p.stops(t, wish{agent: "counted", boundary: "agent/step"}, holdfast.KindBounds, "iterations per session")
		}},
		{"on an error: back to the last good state", func(t *testing.T) {
			if err := p.writes("code", "good", nil)(); err != nil {
				t.Fatal(err)
			}
			_, _, err := p.cross(t, wish{agent: "coder", boundary: "test/careful", hand: p.writes("code", "half", errBroken)})
			b, bad := os.ReadFile(filepath.Join(p.tree, "code"))
			if bad != nil || string(b) != "good" || !strings.Contains(fmt.Sprint(err), "rolled back") {
				t.Errorf("it holds %q, %v; %v", b, bad, err)
			}
		}},
		{"on an error: it is logged for the patterns", func(t *testing.T) {
			out := p.acts(t, wish{agent: "erring", boundary: "test/low", hand: func() error { return errBroken }})
			if e := p.entry(t, out.Crossing); e.Outcome != ledger.Failed || !strings.Contains(e.Why, errBroken.Error()) {
				t.Errorf("%+v", e)
			}
			for i := range 24 {
				p.acts(t, wish{agent: "erring", boundary: "test/low", payload: fmt.Sprintf(`{"n":%d}`, i)})
			}
			until(t, "its rate of errors", func() bool { r := p.rates("erring"); return r.Known && r.Judged == 25 && r.ErrorRate == 0.04 })
		}},
		{"on an error: repeated ones are put to a person", func(t *testing.T) {
			for i := range 3 {
				p.acts(t, wish{agent: "failing", boundary: "test/low", payload: fmt.Sprintf(`{"n":%d}`, i), hand: func() error { return errBroken }})
			}
			if g := answerTo(t, p.d, "failing", watch.Errors); g.Review == "" {
				t.Errorf("nobody is asked: %+v", g)
			}
		}},
		// Last, since nothing acts after it.
		{"before an iteration: emergency stop", func(t *testing.T) {
			if err := os.WriteFile(p.d.Paths.Halt, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.stops(t, wish{agent: "ada", boundary: "agent/step"}, holdfast.KindHalted, "everything is halted")
		}},
	} {
		t.Run(row.line, row.is)
	}
}

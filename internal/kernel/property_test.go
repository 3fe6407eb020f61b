package kernel_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

const (
	modelAgents = 2
	modelCap    = 150 // tokens, of a window that never ends
)

// asked is what the model remembers of one question.
type asked struct {
	state string // pending, approved, rejected, expired
	id    string
	held  string // the crossing
	ends  time.Time
}

// model is the kernel in a few lines: what must come out of each operation.
type model struct {
	*world
	r       *rand.Rand
	halted  bool
	paused  [modelAgents]bool
	met     [modelAgents]bool
	used    int64
	asked   map[string]*asked
	settled map[string]string // by agent and key, the body that was given
	expire  map[string]time.Time
	ended   map[string]ledger.Outcome
	acts    map[string]int
	trace   []string
}

func newModel(t testing.TB, seed uint64) *model {
	m := &model{r: random(seed), asked: map[string]*asked{}, settled: map[string]string{}, expire: map[string]time.Time{},
		ended: map[string]ledger.Outcome{}, acts: map[string]int{}}
	m.world = newWorld(t, "", limits(tokens(budget.Tenant, modelCap)))
	return m
}

func (m *model) fatal(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter %q", fmt.Sprintf(format, args...), m.trace)
}

func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

func agentName(i int) string { return fmt.Sprintf("agent-%d", i) }

// step does one operation and compares.
func (m *model) step() {
	a := m.r.IntN(modelAgents)
	switch n := m.r.IntN(100); {
	case n < 14:
		m.crossing(a, "test/low", fmt.Sprintf(`{"n":%d}`, n), "", "")
	case n < 32:
		m.crossing(a, "test/cost", `{}`, "", "")
	case n < 52:
		m.crossing(a, "test/high", fmt.Sprintf(`{"p":%d}`, m.r.IntN(2)), "", "")
	case n < 56:
		m.crossing(a, "test/never", `{}`, holdfast.KindProhibited, "")
	case n < 60:
		m.crossing(a, "test/schema", `{}`, holdfast.KindValidation, "")
	case n < 68:
		m.crossing(a, "test/low", `{"keyed":1}`, "", fmt.Sprintf("k%d", m.r.IntN(2)))
	case n < 78:
		m.decide()
	case n < 80:
		m.note("halt")
		if _, err := m.k.Halt("user:carol", "model"); err != nil {
			m.fatal("%v", err)
		}
		m.halted = true
	case n < 88:
		m.note("resume")
		if err := m.k.Resume(m.sign(operator.Statement{Act: operator.Resume})); err != nil {
			m.fatal("%v", err)
		}
		m.halted = false
	case n < 90:
		m.pause(a, true)
	case n < 94:
		m.pause(a, false)
	case n < 97:
		d := []time.Duration{61, 431, 1501}[m.r.IntN(3)] * time.Minute
		m.note("wait %v", d)
		m.advance(d)
		if m.r.IntN(2) == 0 {
			m.sweep()
		}
	default:
		m.restart(m.r.IntN(2) == 0)
	}
}

func (m *model) pause(a int, on bool) {
	if !m.met[a] {
		return
	}
	m.note("pause %d %v", a, on)
	var err error
	if on {
		_, err = m.k.Pause(holdfast.Local, agentName(a), "user:carol", "")
	} else {
		_, err = m.k.Unpause(holdfast.Local, m.sign(operator.Statement{Act: operator.Unpause, Subject: agentName(a)}))
	}
	if err != nil {
		m.fatal("%v", err)
	}
	m.paused[a] = on
}

// close notes that a held crossing ended without beginning.
func (m *model) close(q *asked, o ledger.Outcome) { m.ended[q.held] = o }

// tick lets time do to a question what time does.
func (m *model) tick(q *asked, swept bool) {
	if m.world.now().Before(q.ends) {
		return
	}
	switch q.state {
	case "pending", "approved":
		if swept {
			m.close(q, ledger.HeldExpired)
		}
		q.state = "expired"
	case "rejected":
		q.state = ""
	}
}

func (m *model) sweep() {
	m.note("sweep")
	want := 0
	for _, q := range m.asked {
		if (q.state == "pending" || q.state == "approved") && !m.world.now().Before(q.ends) {
			want++
		}
		m.tick(q, true)
	}
	if n, err := m.k.Sweep(); err != nil || n != want {
		m.fatal("%d expired, want %d: %v", n, want, err)
	}
}

func (m *model) decide() {
	for _, key := range slices.Sorted(maps.Keys(m.asked)) {
		q := m.asked[key]
		if q.state != "pending" || !m.world.now().Before(q.ends) {
			continue
		}
		act, state := operator.Approve, "approved"
		if m.r.IntN(3) == 0 {
			act, state = operator.Reject, "rejected"
			m.close(q, ledger.Denied)
		}
		m.note("%s %s", act, key)
		r, err := m.k.Decide(m.say(act, q.id, "model"))
		if err != nil {
			m.fatal("%v", err)
		}
		q.state, q.ends = state, r.Expires
		return
	}
}

// restart closes the store and opens it again; with a crash, a crossing was
// between its begin and its entry.
func (m *model) restart(crash bool) {
	m.note("restart, crash %v", crash)
	if crash && !m.halted && !m.paused[0] && m.used+10 <= modelCap {
		req := m.req("test/cost", `{"crash":1}`)
		req.Token = m.who(agentName(0))
		var id string
		_, err := m.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
			id = kernel.CrossingID(ctx)
			m.mu.Lock()
			m.fault = func(string) error { return errGone }
			m.mu.Unlock()
			return holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.LLMTokens: 1}}, nil
		})
		if holdfast.KindOf(err) != holdfast.KindWALWrite {
			m.fatal("the disk failed and the caller learned %v", err)
		}
		m.met[0], m.used = true, m.used+10
		m.ended[id], m.acts[id] = ledger.Unknown, 1
	}
	for _, q := range m.asked {
		m.tick(q, true)
	}
	ahead := m.offset
	m.store.Close()
	m.world = reopen(m.t, m.dir, "", limits(tokens(budget.Tenant, modelCap)), func(_ *kernel.Config, w *world) { w.offset = ahead })
}

// crossing asks, and compares with what the model expects. kind is what a
// running, unpaused kernel must refuse it with.
func (m *model) crossing(a int, boundary, payload string, kind holdfast.Kind, key string) {
	m.note("%s by %d %s %s", boundary, a, payload, key)
	req := m.req(boundary, payload)
	req.Token, req.IdempotencyKey = m.who(agentName(a)), key
	use := m.r.Int64N(11)
	var inside string
	out, err := m.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
		inside = kernel.CrossingID(ctx)
		m.acts[inside]++
		m.begun(inside)
		return holdfast.Output{Body: fmt.Appendf(nil, `{"by":%q}`, inside), Used: map[holdfast.Resource]int64{holdfast.LLMTokens: use}}, nil
	})
	m.met[a] = true
	q := m.asked[agentName(a)+payload]
	if boundary == "test/high" && q != nil && !m.halted && !m.paused[a] {
		m.tick(q, false)
	}
	body, kept := m.settled[agentName(a)+key]
	replay := key != "" && kept && m.world.now().Before(m.expire[agentName(a)+key])
	switch {
	case m.halted:
		kind = holdfast.KindHalted
	case m.paused[a]:
		kind = holdfast.KindPaused
	case kind != "":
	case boundary == "test/cost" && m.used+10 > modelCap:
		kind = holdfast.KindBounds
	case boundary == "test/high":
		kind = m.question(agentName(a)+payload, q, out)
	}
	if got := holdfast.KindOf(err); got != kind {
		m.fatal("got %v (%v), want %v", got, err, kind)
	}
	switch acted := inside != ""; {
	case kind == holdfast.KindHeld:
		if acted {
			m.fatal("acted while held")
		}
	case kind != "" || replay:
		if acted {
			m.fatal("acted against the model")
		}
		if m.ended[out.Crossing] != "" {
			m.fatal("crossing %s ended twice", out.Crossing)
		}
		m.ended[out.Crossing] = ledger.Denied
		if kind == "" {
			m.ended[out.Crossing] = ledger.Replayed
			if !out.Replayed || string(out.Output.Body) != body {
				m.fatal("replayed %v %s, want %s", out.Replayed, out.Output.Body, body)
			}
		}
	default:
		if !acted || out.Replayed || m.ended[out.Crossing] != "" || inside != out.Crossing {
			m.fatal("acted %v, replayed %v, %s", acted, out.Replayed, m.ended[out.Crossing])
		}
		m.ended[out.Crossing] = ledger.Done
		if boundary == "test/cost" {
			m.used += use
		}
		if key != "" {
			m.settled[agentName(a)+key], m.expire[agentName(a)+key] = string(out.Output.Body), m.world.now().Add(24*time.Hour)
		}
	}
}

// question is what a HIGH request must come to, and what becomes of its
// question.
func (m *model) question(key string, q *asked, out *holdfast.Outcome) holdfast.Kind {
	if q == nil || q.state == "" {
		m.asked[key] = &asked{state: "pending", id: out.Review, held: out.Crossing, ends: out.Expires}
		return holdfast.KindHeld
	}
	switch q.state {
	case "pending":
		if out.Review != q.id || out.Crossing != q.held {
			m.fatal("attached to %s, not to %s", out.Review, q.id)
		}
		return holdfast.KindHeld
	case "approved":
		if out.Crossing != q.held {
			m.fatal("the approved crossing is %s, not %s", out.Crossing, q.held)
		}
		q.state = ""
		return ""
	case "rejected":
		return holdfast.KindRejected
	}
	q.state = ""
	m.close(q, ledger.HeldExpired)
	return holdfast.KindApprovalTimeout
}

// begun fails if a crossing acts whose begin is not durable.
func (m *model) begun(id string) {
	err := m.store.View(context.Background(), func(tx kernel.Tx) error {
		ls, err := tx.Crossing(holdfast.Local, id)
		if err == nil && (len(ls) != 1 || ls[0].Kind != ledger.KindBegin) {
			err = fmt.Errorf("%d leaves", len(ls))
		}
		return err
	})
	if err != nil {
		m.fatal("%s acts without its begin: %v", id, err)
	}
	if m.halted {
		m.fatal("%s acts while halted", id)
	}
}

// check compares the ledger and the counters with the model.
func (m *model) check() {
	if got := m.spent(); got != m.used || got > modelCap {
		m.fatal("%d tokens are used, the model has %d of %d", got, m.used, modelCap)
	}
	seen := map[string]bool{}
	for _, e := range m.entries(holdfast.Local) {
		if seen[e.ID] {
			m.fatal("%s has two entries", e.ID)
		}
		seen[e.ID] = true
		if want := m.ended[e.ID]; e.Outcome != want {
			m.fatal("%s is %s, want %q", e.ID, e.Outcome, want)
		}
		if begun := e.BeginSeq != nil; begun != (m.acts[e.ID] == 1) {
			m.fatal("%s: begun %v, acted %d times", e.ID, begun, m.acts[e.ID])
		}
	}
	for id, o := range m.ended {
		if !seen[id] {
			m.fatal("%s ended %s and has no entry", id, o)
		}
	}
	verifyStore(m.t, m.world)
	nothingWrong(m.t, m.world)
}

// Whatever happens in whatever order: exactly one entry for each crossing that
// ended, no budget above its cap, no act without its begin or while halted,
// each approval used once, and every tree verifies.
func TestPropertyRandomOperations(t *testing.T) {
	runs := testrepeat.Times(30, 3)
	came := map[ledger.Outcome]int{}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, uint64(seed))
			for range 80 {
				m.step()
			}
			m.check()
			m.restart(false)
			m.check()
			for _, o := range m.ended {
				came[o]++
			}
		})
	}
	for _, o := range []ledger.Outcome{ledger.Done, ledger.Denied, ledger.HeldExpired, ledger.Unknown, ledger.Replayed} {
		if came[o] == 0 && came[ledger.Done] > 200 {
			t.Errorf("no crossing ended %s in %v: the walks are too short", o, came)
		}
	}
	t.Logf("%v", came)
}

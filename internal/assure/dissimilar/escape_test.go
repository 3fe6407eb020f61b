package dissimilar_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

// escaping is an attempt to leave a sandbox by an agent of trust medium, with
// its answer; a test changes or leaves out what it wants.
type escaping struct {
	without map[string]bool // "event", "trust", "pause", "review", "entry"
	data    func(map[string]any)
	from    string
	to      string // what the trust event says
	entry   func(*ledger.Entry)
	between bool // another agent's leaf stands in between
	late    bool
}

// write puts it all down, and returns the leaf of the event.
func (x escaping) write(b *book) int64 {
	if x.from == "" {
		x.from, x.to = "medium", "baseline"
	}
	eve := func(g *ledger.Begin) { g.Agent, g.Level = "eve", x.from }
	b.event("agent_first_seen", "user:alice", "eve", "", map[string]any{"level": x.from}, nil)
	g, seq := b.begin(eve)
	failed := func() {
		if !x.without["entry"] {
			b.end(g, seq, func(e *ledger.Entry) {
				e.Agent, e.Outcome, e.State, e.ErrorKind, e.ExitCode = "eve", ledger.Failed, holdfast.Faulted, holdfast.KindEscape, 159
				if x.late {
					e.ErrorKind, e.Outcome = holdfast.KindHalted, ledger.Halted
				}
				if x.entry != nil {
					x.entry(e)
				}
			})
		}
	}
	if x.late {
		failed()
	}
	data := map[string]any{"level": "CRITICAL", "request_id": "r1", "principal": "user:alice", "agent": "eve", "crossing": g.ID, "boundary": g.Boundary,
		"call": map[string]any{"name": "ptrace", "nr": 101}, "trust_from": x.from, "trust_to": "baseline", "review": "rv_e", "late": x.late}
	if x.data != nil {
		x.data(data)
	}
	at := seq
	if !x.without["event"] {
		at = b.event("sandbox_escape_attempted", "user:alice", "eve", g.ID, data, nil)
	}
	if x.between {
		b.event("agent_first_seen", "user:carol", "zoe", "", map[string]any{"level": "baseline"}, nil)
	}
	if !x.without["trust"] {
		b.event("trust_level_changed", "holdfast", "eve", g.ID, map[string]any{"from": x.from, "level": x.to}, nil)
	}
	if !x.without["pause"] {
		b.event("agent_paused", "holdfast", "eve", g.ID, map[string]any{"why": "it tried"}, nil)
	}
	if !x.without["review"] {
		b.event("review_proposed", "user:alice", "rv_e", g.ID, map[string]any{"about": "escape", "agent": "eve", "boundary": g.Boundary,
			"exact_hash": sha([]byte("attempt")), "preview_hash": sha([]byte(text)), "policy": policy}, part(text))
	}
	if !x.late {
		failed()
	}
	return at
}

func without(what ...string) func(*book) int64 {
	x := escaping{without: map[string]bool{}}
	for _, w := range what {
		x.without[w] = true
	}
	return x.write
}

// attempts are answers to an escape attempt of which something is missing or is
// not as it was.
func attempts() map[string]func(*book) int64 {
	data := func(name string, v any) func(*book) int64 {
		return escaping{data: func(d map[string]any) { d[name] = v }}.write
	}
	return map[string]func(*book) int64{
		"escape_without_pause":            without("pause"),
		"escape_without_trust":            without("trust"),
		"escape_without_review":           without("review"),
		"escape_that_did_not_fail":        escaping{entry: func(e *ledger.Entry) { e.Outcome, e.State, e.ErrorKind, e.ExitCode = ledger.Done, holdfast.Idle, "", 0 }}.write,
		"escape_that_failed_of_something": escaping{entry: func(e *ledger.Entry) { e.ErrorKind = holdfast.KindOperation }}.write,
		"escape_untold":                   without("event", "trust", "pause", "review"),
		"escape_alone":                    without("trust", "pause", "review", "entry"),
		"escape_answered_apart":           escaping{between: true, without: map[string]bool{"trust": true, "review": true, "entry": true}}.write,
		"escape_at_another_trust":         data("trust_from", "high"),
		"escape_that_cost_nothing":        data("trust_to", "medium"),
		"escape_that_cost_two_levels":     escaping{from: "high", to: "baseline"}.write,
		"escape_that_cost_another_level":  escaping{from: "medium", to: "highest"}.write,
		"escape_that_is_not_critical":     data("level", "INFO"),
		"escape_of_another_agent":         data("agent", "ada"),
		"escape_for_another_person":       data("principal", "user:carol"),
		"escape_of_no_crossing": func(b *book) int64 {
			b.event("agent_first_seen", "user:alice", "eve", "", map[string]any{"level": "baseline"}, nil)
			return b.event("sandbox_escape_attempted", "user:alice", "eve", "01a1fcf0-0000-7000-8000-00000000eeee", map[string]any{"level": "CRITICAL",
				"principal": "user:alice", "agent": "eve", "crossing": "01a1fcf0-0000-7000-8000-00000000eeee", "trust_from": "baseline", "trust_to": "baseline", "review": "rv_e"}, nil)
		},
		"escape_called_late_before_its_end": data("late", true),
		"violation_of_no_crossing": func(b *book) int64 {
			return b.event("sandbox_violation", "user:alice", "ada", "01a1fcf0-0000-7000-8000-00000000eeee", nil, nil)
		},
		"violation_of_another_agent": func(b *book) int64 {
			g, seq := b.begin()
			at := b.event("sandbox_violation", "user:alice", "zoe", g.ID, nil, nil)
			b.end(g, seq)
			return at
		},
	}
}

// TestD21_answersThatAreRight: an attempt with all its effects, one heard of
// late, and one of an agent that has nothing to lose are as they should be, and
// a violation brings about nothing.
func TestD21_answersThatAreRight(t *testing.T) {
	floor := escaping{from: "baseline", without: map[string]bool{"trust": true}}
	for name, x := range map[string]escaping{"whole": {}, "late": {late: true}, "at the floor": floor} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			ordinary(b)
			x.write(b)
			g, seq := b.begin()
			b.event("sandbox_violation", "user:alice", "ada", g.ID, nil, nil)
			b.end(g, seq)
			b.event("agent_unpaused", "bob", "eve", "", word(b.sign(operator.Statement{Act: operator.Unpause, Subject: "eve", Tenant: "acme"}), nil), nil)
			b.whole(func(g *ledger.Begin) { g.Agent = "eve" })
			r, found := b.judge()
			for _, f := range found {
				t.Error(f.String())
			}
			for _, c := range r.Checks {
				if c.Check == dissimilar.Escape.String() && c.Right != 2 {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// TestD21_aBeginAfterAnAttemptIsFound: nothing begins for an agent that tried.
func TestD21_aBeginAfterAnAttemptIsFound(t *testing.T) {
	b := newBook(t)
	escaping{}.write(b)
	_, at := b.whole(func(g *ledger.Begin) { g.Agent = "eve" })
	_, found := b.judge()
	if len(found) != 1 || found[0].Seq != at || found[0].Check != dissimilar.Paused.String() {
		t.Error(fmt.Sprint(found))
	}
}

// answeredAttempt writes an attempt of eve's with its question rv_e, and returns
// the answer that approves it.
func answeredAttempt(b *book) operator.Statement {
	escaping{}.write(b)
	s := answer("rv_e")
	s.Exact, s.Tenant = sha([]byte("attempt")), "acme"
	return s
}

// TestD21_anAnswerAndItsPause: an approval that lifts the pause of its attempt and
// an unpause that answers it are right, and one that reaches further is found.
func TestD21_anAnswerAndItsPause(t *testing.T) {
	unpause := operator.Statement{Act: operator.Unpause, Subject: "eve", Tenant: "acme"}
	decided := func(b *book, review string, s operator.Signed) int64 {
		return b.event("review_decided", "bob", review, "", word(s, map[string]any{"decision": "approved"}), nil)
	}
	lifted := func(b *book, agent string, s operator.Signed) int64 {
		return b.event("agent_unpaused", "bob", agent, "", word(s, nil), nil)
	}
	for name, write := range map[string]func(*book) (bad int64){
		"approved": func(b *book) int64 {
			s := b.sign(answeredAttempt(b))
			decided(b, "rv_e", s)
			lifted(b, "eve", s)
			return -1
		},
		"unpaused": func(b *book) int64 {
			answeredAttempt(b)
			s := b.sign(unpause)
			lifted(b, "eve", s)
			decided(b, "rv_e", s)
			return -1
		},
		"approved, and another agent goes on": func(b *book) int64 {
			s := b.sign(answeredAttempt(b))
			decided(b, "rv_e", s)
			return lifted(b, "ada", s)
		},
		"put off, and the agent goes on": func(b *book) int64 {
			said := answeredAttempt(b)
			return lifted(b, "eve", b.sign(said))
		},
		"approved, and the agent goes on again later": func(b *book) int64 {
			s := b.sign(answeredAttempt(b))
			decided(b, "rv_e", s)
			lifted(b, "eve", s)
			b.event("agent_paused", "carol", "eve", "", nil, nil)
			return lifted(b, "eve", s)
		},
		"a request's approval lets its agent go on": func(b *book) int64 {
			id := b.id()
			b.propose("rv_a", id, text)
			s := b.sign(answer("rv_a"))
			decided(b, "rv_a", s)
			return lifted(b, "ada", s)
		},
		"unpaused, and a request's question is approved": func(b *book) int64 {
			b.propose("rv_a", b.id(), text)
			s := b.sign(operator.Statement{Act: operator.Unpause, Subject: "ada", Tenant: "acme"})
			lifted(b, "ada", s)
			return decided(b, "rv_a", s)
		},
		"unpaused, and another's attempt is answered": func(b *book) int64 {
			answeredAttempt(b)
			s := b.sign(operator.Statement{Act: operator.Unpause, Subject: "ada", Tenant: "acme"})
			lifted(b, "ada", s)
			return decided(b, "rv_e", s)
		},
		"unpaused by who asked": func(b *book) int64 {
			answeredAttempt(b)
			own := unpause
			own.Reviewer = "alice"
			s := b.sign(own)
			b.event("agent_unpaused", "alice", "eve", "", word(s, nil), nil)
			return b.event("review_decided", "alice", "rv_e", "", word(s, map[string]any{"decision": "approved"}), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			ordinary(b)
			bad := write(b)
			_, found := b.judge()
			switch {
			case bad < 0 && len(found) > 0:
				t.Error(fmt.Sprint(found))
			case bad >= 0 && (len(found) != 1 || found[0].Seq != bad):
				t.Errorf("leaf %d is wrong, and found is %s", bad, fmt.Sprint(found))
			}
		})
	}
}

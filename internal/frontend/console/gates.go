package console

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

// gate is one of the eight lamps. Class says how it burns, Word the same for
// whoever does not see it.
type gate struct {
	Name, Asks, Class, Word string
	Why, Rule, Kind         string
}

// asks is what each gate asks, in the order in which they are asked.
func asks() [9]string {
	return [9]string{"may anything be done at all?", "is this well formed?", "may this one do that?", "is there room?", "who is asking, in which flow?",
		"have we done it already?", "can it be written down?", "must a person answer first?", "do the rules allow it, and what came out?"}
}

// gates are the eight lamps of an entry. The latch has one only where it spoke.
func gates(e *ledger.Entry, held bool) []gate {
	said := map[holdfast.Gate]ledger.Opinion{}
	for _, o := range e.Opinions {
		if old, ok := said[o.Gate]; !ok || o.Verdict < old.Verdict {
			said[o.Gate] = o
		}
	}
	var out []gate
	for g := holdfast.GateHalt; g <= holdfast.K8; g++ {
		o, asked := said[g]
		if g == holdfast.GateHalt && (!asked || o.Verdict == holdfast.Allow) {
			continue
		}
		l := gate{Name: g.String() + " " + g.Topic(), Asks: asks()[g], Class: "off", Word: "not asked"}
		if asked {
			l.Class, l.Word = burns(o.Verdict)
			l.Why, l.Rule, l.Kind = o.Why, o.Rule, string(o.Kind)
			if l.Why == "" {
				l.Why = story.Grounds(e, o)
			}
			switch {
			case o.Rule == "armed":
				l.Rule = ""
			case o.Rule == "none declared":
				l.Rule = ""
				if l.Why == "" {
					l.Why = "nothing is declared for it"
				}
			}
			if held && (g == holdfast.K6 || g == holdfast.K8) && o.Verdict == holdfast.Allow {
				l.Word = "armed"
				if o.Why == "" {
					l.Why = armed(g)
				}
			}
		}
		out = append(out, l)
	}
	return out
}

// armed says what a gate is ready for that has its part when something acts.
func armed(g holdfast.Gate) string {
	if g == holdfast.K6 {
		return "ready: it will write down what comes of this"
	}
	return "ready: it will judge what comes out of this"
}

func burns(v holdfast.Verdict) (class, word string) {
	switch v {
	case holdfast.Allow:
		return "lit", "passed"
	case holdfast.Hold:
		return "held", "held for a person"
	}
	return "dark", "refused"
}

// begunGates are the lamps of a crossing that is under way: all were lit when
// it began, or it would not have.
func begunGates(b *ledger.Begin) []gate {
	e := &ledger.Entry{Required: b.Required, Granted: b.Granted, SchemaID: &b.SchemaID, Key: &b.Key, Approved: b.Approved, Reviewer: b.Reviewer, Correlation: b.Correlation}
	for g := holdfast.K1; g <= holdfast.K8; g++ {
		e.Opinions = append(e.Opinions, ledger.Opinion{Gate: g, Verdict: holdfast.Allow})
	}
	return gates(e, true)
}

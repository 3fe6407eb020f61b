package constitution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
)

// ledgerOf is a history that is written down: what each crossing was. It is what
// the words of Past say, carried out without any thought of speed.
type ledgerOf struct {
	t    testing.TB
	past []Facts
}

// Ask implements History.
func (l ledgerOf) Ask(p *Past, group string, now time.Time) (Answer, error) {
	var a Answer
	values := map[string]bool{}
	for _, f := range l.past {
		if f.Now.Before(now.Add(-p.Window)) {
			continue
		}
		seen, err := p.See(l.t.Context(), f)
		if err != nil {
			return Answer{}, err
		}
		if !seen.Matches || seen.Group != group {
			continue
		}
		a.Count++
		a.Sum += seen.Amount
		if seen.Value != "" && !values[seen.Value] {
			values[seen.Value] = true
			a.Distinct++
		}
		if f.Now.After(a.Last) {
			a.Last = f.Now
		}
	}
	return a, nil
}

type noHistory struct{ err error }

// Ask implements History.
func (h noHistory) Ask(*Past, string, time.Time) (Answer, error) { return Answer{}, h.err }

func pay(t testing.TB, payload string, ago time.Duration) Facts {
	return Facts{Boundary: "mcp/bank/pay", Who: holdfast.Identity{Tenant: "local", Agent: "a1", Session: "s1"},
		Payload: decode(t, payload), Now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).Add(-ago)}
}

func loadWhen(t testing.TB, when string) *Set {
	t.Helper()
	return load(t, "rules:\n- id: a\n  on: request\n  message: m\n  when: |\n    "+when+"\n")
}

// verdict is "", "violated", or the failure's text.
func verdict(s *Set, on On, f Facts) string {
	found := s.Judge(context.Background(), on, f)
	switch {
	case len(found) == 0:
		return ""
	case found[0].Err != nil:
		return found[0].Err.Error()
	}
	return "violated"
}

func TestPastFunctionsAnswer(t *testing.T) {
	history := ledgerOf{t, []Facts{
		pay(t, `{"to":"bob","amount":150.10}`, 24*time.Hour),
		pay(t, `{"to":"bob","amount":200.20}`, time.Hour),
		pay(t, `{"to":"eve","amount":100}`, time.Minute),
	}}
	for _, c := range []struct{ when, want string }{
		{`past("mcp/bank/pay", "24h").count() == 3`, "violated"}, // exactly a day ago counts
		{`past("mcp/bank/pay", "23h").count() == 2`, "violated"},
		{`past("mcp/*", "1d").where(args.amount > 100).count() == 2`, "violated"},
		{`past("mcp/mail/send", "24h").happened()`, ""},
		{`past("mcp/bank/*", "24h").same(args.to).count() == 2`, "violated"},
		{`past("mcp/bank/pay", "24h").same(args.to).sum(args.amount) == 350.3`, "violated"},
		{`past("mcp/bank/pay", "24h").same(args.to).sum(args.amount) + args.amount > 400.29`, "violated"},
		{`past("mcp/bank/pay", "24h").same(args.to).sum(args.amount) + args.amount > 400.30`, ""},
		{`400.30 >= args.amount + past("mcp/bank/pay", "24h").same(args.to).sum(args.amount)`, "violated"},
		{`double(past("mcp/bank/pay", "24h").sum(args.amount)) == 450.3`, "violated"},
		{`-past("mcp/bank/pay", "24h").sum(args.amount) * 2 < -900`, "violated"},
		{`(args.to == "bob" ? past("mcp/bank/pay", "24h").sum(args.amount) : 0) > 450`, "violated"},
		{`past("mcp/bank/pay", "24h").distinct(args.to) == 2`, "violated"},
		{`now - past("mcp/bank/pay", "24h").last() < duration("61s")`, "violated"},
		{`past("mcp/bank/pay", "24h").last().getHours() == 11`, "violated"},
		{`past("mcp/bank/pay", "24h").same(agent).same(session).count() == 3`, "violated"},
		{`past("mcp/bank/pay", "10s").happened() && past("mcp/bank/pay", "10s").last() < now`, ""},
		{`past("mcp/bank/pay", "10s").last() < now`, `could not be evaluated: last of past("mcp/bank/pay", "10s").last(): there was none; ask happened() first`},
		{`["eve", "bob"].exists(n, n == args.to && past("mcp/bank/pay", "24h").where(args.to == "eve").count() == 1)`, "violated"},
		{`past("mcp/bank/pay", "24h").where(has(args.memo)).count() == 0`, "violated"},
		{`past("mcp/bank/pay", "24h").count() > 2 && past("mcp/bank/pay", "24h").where(args.amount > 100).count() > 2`, ""},
		{`past("mcp/bank/*", "24h").same(args.from).happened()`, `could not be evaluated: same of past("mcp/bank/*", "24h").same(args.from).happened(): there is no key from`},
	} {
		t.Run(c.when, func(t *testing.T) {
			f := pay(t, `{"to":"bob","amount":50}`, 0)
			f.History = history
			if got := verdict(loadWhen(t, c.when), OnRequest, f); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

// TestPastOnEveryKindOfRule: rules over outputs and goals ask the past as well.
func TestPastOnEveryKindOfRule(t *testing.T) {
	f := pay(t, `{"to":"bob","amount":50}`, 0)
	f.History = ledgerOf{t, []Facts{pay(t, `{}`, time.Minute)}}
	for _, on := range []On{OnRequest, OnOutput, OnGoal, OnSubtask, OnGraph} {
		s := load(t, fmt.Sprintf("rules: [{id: a, on: %s, message: m, when: 'past(\"mcp/*\", \"1h\").happened()'}]", on))
		if got := verdict(s, on, f); got != "violated" {
			t.Errorf("on %s: %q", on, got)
		}
	}
	s := load(t, `rules: [{id: a, on: output, message: m, when: 'past("mcp/*", "1h").count() > 0'}]`)
	p, _ := s.Predicate("a")
	if ok, _, err := p.Check(t.Context(), f, outputcheck.Context{}); ok || err != nil {
		t.Errorf("as a predicate: %v, %v", ok, err)
	}
}

// TestPastIsRefusedWhereItIsWrong: each error stands at the file's line and
// column, with a hint.
func TestPastIsRefusedWhereItIsWrong(t *testing.T) {
	for _, c := range []struct{ when, at, why, hint string }{
		{`past("mcp/a", "1h").were(args.x).count() > 1`, "6:25", `past has no "were"`, `did you mean "where"?`},
		{`past("mcp/a", "1h").cuont() > 1`, "6:25", `past has no "cuont"`, `did you mean "count"?`},
		{`args.x && past("mcp/a", "1h").where(args.x)`, "6:15", "this past asks nothing", "end it with"},
		{`past("mcp/a", "1h").count > 1`, "6:24", "count of past is a function", "write `.count()`"},
		{`pst("mcp/a", "1h").count() > 1`, "6:8", `there is no "pst"`, `did you mean "past"?`},
		{`past("mcp/a").count() > 1`, "6:5", "wants a boundary and a window", "for example"},
		{`past(args.b, "1h").count() > 1`, "6:14", "the boundary of past must be written out", "a text"},
		{`past("mcp/*/a", "1h").count() > 1`, "6:10", `"mcp/*/a" is no boundary`, "one *"},
		{`past("", "1h").count() > 1`, "6:10", "is no boundary", ""},
		{`past("mcp/a", args.w).count() > 1`, "6:23", "the window of past must be written out", "a text"},
		{`past("mcp/a", "soon").count() > 1`, "6:19", `"soon" is no window`, "24h"},
		{`past("mcp/a", "25h").count() > 1`, "6:19", "not within 1s and 24h", "limit"},
		{`past("mcp/a", "2d").count() > 1`, "6:19", "not within 1s and 24h", ""},
		{`past("mcp/a", "-1h").count() > 1`, "6:19", "not within 1s and 24h", ""},
		{`past("mcp/a", "999ms").count() > 1`, "6:19", "not within 1s and 24h", ""},
		{`past("mcp/a", "1h").where(true).where(true).count() > 1`, "6:37", "a second where", "&&"},
		{`past("mcp/a", "1h").same(1).same(2).same(3).same(4).same(5).count() > 1`, "6:57", "more than 4 same", ""},
		{`past("mcp/a", "1h").count(args.x) > 1`, "6:25", "count of past takes nothing", "where"},
		{`past("mcp/a", "1h").sum() > 1`, "6:25", "sum of past takes one expression", ""},
		{`past("mcp/a", "1h").where("x").count() > 1`, "6:31", "yields string, not true or false", ""},
		{`past("mcp/a", "1h").sum("x") > 1`, "6:29", "yields string, not a number", ""},
		{`past("mcp/a", "1h").where(agnet == "x").count() > 1`, "6:31", `there is no "agnet"`, `did you mean "agent"?`},
		{`args.l.exists(x, past("mcp/a", "1h").same(x).happened())`, "6:47", `same of past cannot know "x"`, "macro"},
		{`past("mcp/a", "1h").where(past("mcp/a", "1h").happened()).happened()`, "6:31", "a past function within a past function", ""},
		{`past("mcp/a", "1h").where(output == "x").count() > 1`, "6:31", `there is no "output" before the act`, ""},
		{`past("mcp/a", "1h").count().where(true) > 1`, "6:33", "where after count", "the end"},
		{`past("mcp/a", "1h").count() > "x"`, "6:33", "found no matching overload", ""},
		{`past("mcp/a", "1h").sum(args.x) > "x"`, "6:37", "found no matching overload for '_>_'", ""},
		{`past("mcp/a", "1h").sum(args.x) in [1]`, "6:37", "a sum is an exact number", "double"},
		{`[past("mcp/a", "1h").sum(args.x)] == [1]`, "", "a sum is an exact number", "double"},
		{`{"a": past("mcp/a", "1h").sum(args.x)}.a == 1`, "", "a sum is an exact number", "double"},
		{`past("mcp/a", "1h").sum(args.x)`, "6:5", "the condition is a sum", "compare"},
		{`args.l.map(x, past("mcp/a", "1h").sum(args.x)) == []`, "", "a sum is an exact number", "double"},
		{`past("mcp/a", "1h").sum(args.x) / 2 > 1`, "6:37", "a sum is an exact number", "double"},
		{`size(past("mcp/a", "1h").sum(args.x)) > 1`, "", "a sum is an exact number", "double"},
		{`past("mcp/a", "1h").exists(x, x)`, "6:5", "this past asks nothing", ""},
		{`past("mcp/a", "1h") == 1`, "6:5", "this past asks nothing", ""},
		{`@past.count(@request, 0) > 1`, "6:5", "", ""},
		{"args.`@past.count` > 1", "", "", ""},
		{"`@past.count`(`@request`, 0) > 1", "", "", ""},
		{`dyn(past("mcp/a", "1h").sum(args.x)) == 1`, "", "a sum is an exact number", "double"},
		{`past == 1`, "6:5", "past is not known here", ""},
		{`past("mcp/a", "1h").where(args.l.all(a, args.l.all(b, args.l.all(c, a == b && b == c)))).count() > 1`, "6:41", "may cost", ""},
	} {
		t.Run(c.when, func(t *testing.T) {
			_, err := Load([]Source{{"r.yaml", []byte("rules:\n- id: a\n  on: request\n  message: m\n  when: |\n    " + c.when + "\n")}})
			var h *holdfast.Error
			if !errors.As(err, &h) {
				t.Fatalf("no error: %v", err)
			}
			if !strings.HasPrefix(h.Why, "r.yaml:"+c.at) || !strings.Contains(h.Why, c.why) || !strings.Contains(h.Hint, c.hint) {
				t.Errorf("%s\nhint: %s", h.Why, h.Hint)
			}
		})
	}
	many := strings.Repeat(`past("mcp/a", "1h").happened() || `, MaxPasts) + `past("mcp/a", "1h").happened()`
	for when, why := range map[string]string{many: "more than 16 past functions"} {
		if _, err := Load([]Source{{"r.yaml", []byte("rules:\n- {id: a, on: request, message: m, when: '" + when + "'}")}}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v", err)
		}
	}
	if _, err := Load([]Source{{"r.yaml", []byte("rules:\n- {id: a, on: spawn, message: m, when: 'past(\"mcp/a\", \"1h\").happened()'}")}}); err == nil || !strings.Contains(err.Error(), "a rule on spawn cannot ask the past") {
		t.Errorf("%v", err)
	}
	if _, err := CompileScore(`past("mcp/a", "1h").count()`, "c:1"); err == nil || !strings.Contains(err.Error(), "past is not known here") {
		t.Errorf("%v", err)
	}
	// What only looks like one is none.
	load(t, "rules:\n- {id: a, on: request, message: m, when: 'args.past == 3 && args.count == 1 && args.past.sum.last == 2'}")
}

// TestWithoutAnAnswerARuleFails: no history, one that is not ready, and a
// request that the history could not read later are failures of the rule, and a
// failure denies.
func TestWithoutAnAnswerARuleFails(t *testing.T) {
	s := loadWhen(t, `past("mcp/bank/pay", "24h").count() > 3`)
	f := pay(t, `{}`, 0)
	for _, c := range []struct {
		history History
		want    string
	}{
		{nil, "there is no history here"},
		{noHistory{errors.New("it is being read from the ledger")}, "it is being read from the ledger"},
	} {
		f.History = c.history
		found := s.Judge(t.Context(), OnRequest, f)
		if len(found) != 1 || found[0].Verdict != holdfast.Deny || !errors.Is(found[0].Err, failure.ErrHistory) ||
			!errors.Is(found[0].Err, failure.ErrEval) || !strings.Contains(found[0].Message, c.want) {
			t.Errorf("%+v", found)
		}
	}
}

// TestARequestThatCannotBecomeHistoryIsRefused: by the rule that could not read
// it later, though that rule judges at another boundary or another time.
func TestARequestThatCannotBecomeHistoryIsRefused(t *testing.T) {
	for _, c := range []struct{ rule, payload, want string }{
		{`{id: a, on: request, boundary: mcp/mail/send, message: m, when: 'past("mcp/bank/pay", "1h").where(args.amount > 1).count() > 1'}`, `{}`, "there is no key amount"},
		{`{id: a, on: output, message: m, when: 'past("mcp/bank/pay", "1h").sum(args.amount) > 1'}`, `{"amount":"1"}`, "not a number"},
		{`{id: a, on: goal, message: m, when: 'past("mcp/bank/pay", "1h").sum(args.amount) > 1'}`, `{"amount":0.0000001}`, "more than six decimals"},
		{`{id: a, on: request, boundary: mcp/mail/send, message: m, when: 'past("mcp/bank/pay", "1h").same(args.to).happened()'}`, `{"to":"` + strings.Repeat("x", MaxPastKey) + `"}`, "larger than 1024 bytes"},
		{`{id: a, on: request, boundary: mcp/mail/send, message: m, when: 'past("mcp/mail/send", "1h").sum(args.amount) > 1'}`, `{}`, ""},
	} {
		s := load(t, "rules:\n- "+c.rule)
		f := pay(t, c.payload, 0)
		f.History = ledgerOf{t: t}
		if got := verdict(s, OnRequest, f); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", c.rule, got)
		}
		f.Sights = s.See(t.Context(), f)
		if got := verdict(s, OnRequest, f); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("seen before, %s: %q", c.rule, got)
		}
		if f.Sights = []Sight{}; c.want != "" && !strings.Contains(verdict(s, OnRequest, f), "nobody looked") {
			t.Errorf("a request that nobody looked at passed: %q", verdict(s, OnRequest, f))
		}
	}
	observed := load(t, "rules:\n- "+`{id: a, on: request, mode: observe, boundary: mcp/mail/send, message: m, when: 'past("mcp/bank/pay", "1h").sum(args.amount) > 1'}`)
	found := observed.Judge(t.Context(), OnRequest, pay(t, `{}`, 0))
	if len(found) != 1 || found[0].Verdict != holdfast.Allow || !found[0].Observed || found[0].Err == nil {
		t.Errorf("%+v", found)
	}
}

// TestPastCostsAreCounted: statically and while judging, where the evaluator
// counts and where it does not.
func TestPastCostsAreCounted(t *testing.T) {
	cost := func(when string) uint64 { return loadWhen(t, when).Rules()[0].Cost }
	if one, none := cost(`past("mcp/a", "1h").count() > 1`), cost(`size("a") > 1`); one < none+PastCost || one > none+PastCost+100 {
		t.Errorf("%d with a past function, %d without", one, none)
	}
	if in, out := cost(`past("mcp/a", "1h").where(args.l.exists(x, x == 1)).count() > 1`), cost(`args.l.exists(x, x == 1)`); in < out+PastCost {
		t.Errorf("%d with a where, which alone is %d", in, out)
	}
	// 256 elements of an ordinary payload at 1,000 each stay within a
	// million; a list in a list does not.
	if _, err := Load([]Source{{"r.yaml", []byte(`rules: [{id: a, on: request, message: m, when: 'args.l.all(x, args.l.all(y, past("mcp/a", "1h").count() > x))'}]`)}}); err == nil || !strings.Contains(err.Error(), "may cost") {
		t.Errorf("%v", err)
	}
	uncounted := loadWhen(t, `past("mcp/a", "1h").count() > 1`).rules[0].expr
	counted := loadWhen(t, `args.l.all(x, past("mcp/a", "1h").count() >= 0)`).rules[0].expr
	if uncounted.counted || !counted.counted {
		t.Fatal("the two expressions are not what this test is about")
	}
	if uncounted.bound < PastCost {
		t.Errorf("an expression without a count is charged %d", uncounted.bound)
	}
	f := pay(t, `{"l":[1,2,3,4,5,6,7,8,9,10]}`, 0)
	f.History = ledgerOf{t: t}
	s := loadWhen(t, `args.l.all(x, past("mcp/a", "1h").count() >= 0)`)
	act := &facts{Facts: f, on: OnRequest, ctx: t.Context(), left: MaxRuleCost, rule: s.rules[0]}
	if _, spent, err := counted.eval(t.Context(), act, MaxRuleCost); err != nil || spent < 10*PastCost {
		t.Errorf("ten past functions were charged %d: %v", spent, err)
	}
	list := "[" + strings.Repeat("1,", 1_100) + "1]"
	f.Payload = decode(t, `{"l":`+list+`}`)
	if got := verdict(s, OnRequest, f); got != failure.ErrCost.Error() {
		t.Errorf("a thousand past functions in one rule: %q", got)
	}
}

// TestPastIDs: what asks for the same aggregate has one ID, whatever the layout
// and the question; anything else has another.
func TestPastIDs(t *testing.T) {
	id := func(chain string) string {
		t.Helper()
		tail := " == 1"
		if strings.HasSuffix(chain, "happened()") {
			tail = ""
		} else if strings.HasSuffix(chain, "last()") {
			tail = " == now"
		}
		pasts := loadWhen(t, chain+tail).Pasts()
		if len(pasts) != 1 || len(pasts[0].ID) != 64 {
			t.Fatalf("%+v", pasts)
		}
		return pasts[0].ID
	}
	base := id(`past("mcp/a", "24h").where(args.x > 1 && has(args.y)).same(args.z).count()`)
	for _, same := range []string{
		`past( "mcp/a" , '24h' ).where(  args.x>1  && has(args.y) ).same(args.z).count()`,
		`past("mcp/a", "1d").where(args.x > 1 && has(args.y)).same(args.z).happened()`,
		`past("mcp/a", "1440m").same(args.z).where((args.x > 1) && has(args.y)).last()`,
	} {
		if id(same) != base {
			t.Errorf("another ID: %s", same)
		}
	}
	seen := map[string]string{base: "the first"}
	for _, other := range []string{
		`past("mcp/b", "24h").where(args.x > 1 && has(args.y)).same(args.z).count()`,
		`past("mcp/a", "23h").where(args.x > 1 && has(args.y)).same(args.z).count()`,
		`past("mcp/a", "24h").where(args.x > 1.0 && has(args.y)).same(args.z).count()`,
		`past("mcp/a", "24h").where(args.x > "1" && has(args.y)).same(args.z).count()`,
		`past("mcp/a", "24h").where(args.x > 1u && has(args.y)).same(args.z).count()`,
		`past("mcp/a", "24h").where(args.x > 1 && args.y).same(args.z).count()`,
		`past("mcp/a", "24h").same(args.z).count()`,
		`past("mcp/a", "24h").where(args.z).count()`,
		`past("mcp/a", "24h").where(args.x > 1 && has(args.y)).count()`,
		`past("mcp/a", "24h").same(args.z).same(args.y).count()`,
		`past("mcp/a", "24h").same([args.z, args.y]).count()`,
		`past("mcp/a", "24h").same(args.z).sum(args.y)`,
		`past("mcp/a", "24h").same(args.z).distinct(args.y)`,
		`past("mcp/a", "24h").same(args.l.map(x, x)).count()`,
		`past("mcp/a", "24h").same(args.l.map(x, x + x)).count()`,
		`past("mcp/a", "24h").same(args.l.filter(x, x)).count()`,
		`past("mcp/a", "24h").same({"a": 1}).count()`,
		`past("mcp/a", "24h").same({"a": 2}).count()`,
	} {
		got := id(other)
		if was, taken := seen[got]; taken {
			t.Errorf("%s has the ID of %s", other, was)
		}
		seen[got] = other
	}
}

func TestRulesListTheirPasts(t *testing.T) {
	s := load(t, "rules:\n- id: a\n  on: request\n  message: m\n  when: |\n    past( 'mcp/a', \"24h\" ).count() > 1 &&\n    past(\"mcp/a\",\"1d\").happened()\n")
	want := []PastInfo{{Text: `past("mcp/a", "24h").count()`, Where: "rules.yaml:6:5", Cost: PastCost}, {Text: `past("mcp/a", "1d").happened()`, Where: "rules.yaml:7:5", Cost: PastCost}}
	got := s.Rules()[0].Past
	if len(got) != 2 || got[0].Aggregate != got[1].Aggregate || len(s.See(t.Context(), Facts{Boundary: "mcp/a"})) != 1 {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if w.Aggregate = got[i].Aggregate; got[i] != w {
			t.Errorf("%+v, not %+v", got[i], w)
		}
	}
}

// TestPastIsTypedByItsOwnBoundary: what reads past crossings is checked against
// their boundary's schema, what same reads against the rule's own as well.
func TestPastIsTypedByItsOwnBoundary(t *testing.T) {
	known := []Boundary{{"mcp/bank/pay", json.RawMessage(paySchema)},
		{"mcp/mail/send", json.RawMessage(`{"type":"object","properties":{"subject":{"type":"string"}}}`)}}
	for _, c := range []struct{ when, want string }{
		{`past("mcp/bank/pay", "1h").where(args.amout > 1).happened()`, `did you mean "amount"?`},
		{`past("mcp/bank/pay", "1h").where(args.to == 1).happened()`, "a text is compared with a number"},
		{`past("mcp/bank/pay", "1h").sum(args.amuont) > 1`, `did you mean "amount"?`},
		{`past("mcp/bank/pay", "1h").where(args.amount > 1).sum(args.amount) > 1`, ""},
		{`past("mcp/bank/pay", "1h").same(args.to).happened()`, "the schema names no such member"},
		{`past("mcp/mail/send", "1h").same(args.subject).happened()`, ""},
	} {
		_, err := Load(oneRule("request", "mcp/mail/send", c.when), known...)
		if got := fmt.Sprintf("%v %s", err, hints(err)); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.when, got)
		}
	}
	s := loadWhen(t, `past("mcp/bank/pay", "1h").sum(args.amuont) > 1`)
	if found, err := s.Misfits(known[0]); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

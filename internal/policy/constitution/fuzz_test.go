package constitution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// FuzzLoad: no text makes Load panic, what it refuses names a place, and what
// it accepts can be judged.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		"", "rules: []\n", head + "args.x == 1\n", head + "|\n  a &&\n\n  b\n", head + "'a'' == b'\n", head + "\"\\x41\\u00e4 == b\"\n",
		"rules:\n- &a {id: x}\n- *a\n", "rules: [{id: a, on: output, when: output.a.all(x, x > 1), message: m, mode: observe}]",
		"rules: {a: [}", "\xef\xbb\xbfrules: []", "%YAML 1.2\n---\nrules: []\n", "? a\n: b", "rules:\n- !!map {}\n", head + "now.getHours('+01:00') > 1\n",
		head + ">-\n    a.b.c\n    || d\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Load([]Source{{"f.yaml", text}})
		if err != nil {
			if s != nil {
				t.Fatal("an error came with a set")
			}
			var h *holdfast.Error
			if !errors.As(err, &h) || !strings.HasPrefix(h.Why, "f.yaml:") {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for _, r := range s.Rules() {
			if len(r.Version) != 64 || r.Cost > MaxRuleCost {
				t.Fatalf("%+v", r)
			}
			s.Judge(ctx, r.On, Facts{Boundary: strings.TrimSuffix(r.Boundary, "*")})
		}
		if again, err := Load([]Source{{"g.yaml", text}}); err != nil || again.Version() != s.Version() {
			t.Fatal("loading twice gives two versions", err)
		}
	})
}

// FuzzJudge: whatever the expression and the payload, judging ends within its
// bounds, does not panic, gives the same answer twice, and never lets an error
// through.
func FuzzJudge(f *testing.F) {
	payload := `{"path":"/etc/passwd","n":1,"f":1.5,"l":[1,[2],{"a":null}],"o":{"k":"v"}}`
	for _, when := range []string{
		`args.path.startsWith("/etc")`, `args.l.exists(x, x == 1)`, `args.n > args.f`, `args.path.split("/").map(p, p + p).join("")  == ""`,
		`args.l.sort() == args.l.distinct()`, `args == {"a": args.o}`, `string(args.n) in args.o`, `args.path.matches("^(a|b)*$")`,
		`timestamp(args.path) > now`, `args.l[args.n] == dyn([2])`, `sets.contains(args.l, [1])`, `args.path.substring(args.n, 3) == "x"`,
		`duration(args.path) == duration("1s")`, `bytes(args.path) == b"x"`, `args.l.flatten().slice(0, 1) == []`, `int(args.f) % args.n == 0`,
	} {
		f.Add(when, payload)
	}
	lang, err := newLanguage()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, when, payload string) {
		e, problems := compile(lang.request, when, isBool, "a bool")
		if e == nil {
			if len(problems) == 0 {
				t.Fatal("refused without a reason")
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader([]byte(payload)))
		d.UseNumber()
		var tree any
		if d.Decode(&tree) != nil || len(payload) > holdfast.MaxPayload {
			return
		}
		r := &rule{info: Info{ID: "a", On: OnRequest, Boundary: "*", Severity: SeverityBlock, Mode: "enforce", OnError: "deny"}, expr: e}
		r.finish()
		s := &Set{loaded: true, by: map[On][]*rule{}, named: map[string]*rule{}}
		s.add(r)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		one := s.Judge(ctx, OnRequest, Facts{Payload: tree, PayloadSize: len(payload)})
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("took %v", time.Since(begin))
		}
		two := s.Judge(ctx, OnRequest, Facts{Payload: tree, PayloadSize: len(payload)})
		if len(one) != len(two) {
			t.Fatalf("%+v, then %+v", one, two)
		}
		for _, got := range one {
			if got.Verdict != holdfast.Deny {
				t.Fatalf("%+v", got)
			}
			if got.Err != nil && !errors.Is(got.Err, failure.ErrCost) && !errors.Is(got.Err, failure.ErrEval) &&
				!errors.Is(got.Err, failure.ErrTimeout) {
				t.Fatalf("an error of no kind: %v", got.Err)
			}
			if got.Err != nil && strings.Contains(errors.Join(got.Err).Error(), "panic") {
				t.Fatal(got.Err)
			}
		}
	})
}

// FuzzPredicates: no output makes a built-in predicate panic or disagree with
// itself, and an output with a forbidden boundary never passes L0.
func FuzzPredicates(f *testing.F) {
	for _, s := range []string{
		`{"goals":[{"id":"a","conditions":["x"]},{"id":"b","parent":"a","covers":["x"],"boundary":"branch/merge"}]}`,
		`{"boundary":"branch/merge","undo":false,"consumes":{"llm_tokens":5},"level":"medium"}`, `[{"tool":{}}]`, `"x"`, `{"Boundary":1,"boundary":2}`,
	} {
		f.Add([]byte(s))
	}
	s, err := Load(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var tree any
		if d.Decode(&tree) != nil {
			return
		}
		for _, id := range Builtins() {
			p, _ := s.Predicate(id)
			ok, why, err := p.Check(t.Context(), Facts{Output: tree}, sound())
			if err != nil && strings.Contains(err.Error(), "broke off") {
				t.Fatal(err)
			}
			if ok && why != "" || !ok && err == nil && why == "" {
				t.Fatalf("%v %q", ok, why)
			}
			again, same, _ := p.Check(t.Context(), Facts{Output: tree}, sound())
			if again != ok || same != why {
				t.Fatalf("%q, then %q", why, same)
			}
			bad := []any{tree, map[string]any{"boundary": "mcp/db/drop"}}
			if ok, _, _ := p.Check(t.Context(), Facts{Output: bad}, sound()); ok && id == CelestialConstraintCheck {
				t.Fatal("a forbidden boundary passed")
			}
		}
	})
}

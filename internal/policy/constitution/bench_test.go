package constitution

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"github.com/holdfast-dev/holdfast"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return v
}

func load(t testing.TB, text string) *Set {
	t.Helper()
	s, err := Load([]Source{{Name: "rules.yaml", Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func someFacts(t testing.TB) Facts {
	return Facts{
		Boundary: "mcp/files/write", Operation: "file:write", Risk: holdfast.Medium, Level: holdfast.MediumTrust,
		Who:         holdfast.Identity{Tenant: "local", Principal: "ada", Roles: []string{"writer"}, Agent: "a1", Kind: "coder", Session: "s1"},
		Payload:     decode(t, `{"path":"/srv/data/a.txt","mode":"w","count":7,"tags":["x","y"],"nested":{"deep":{"n":1.5}}}`),
		PayloadSize: 100, Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
}

// BenchmarkJudge measures one simple rule, and beside it CEL's own evaluation
// of the same expression on the same facts without any bound.
func BenchmarkJudge(b *testing.B) {
	for _, c := range []struct{ name, when string }{
		{"simple", `args.path.startsWith("/etc/")`},
		{"three", `args.path.startsWith("/etc/") || args.count > 10 || "admin" in roles`},
		{"regex", `args.path.matches("^/(etc|root)/")`},
		{"list", `args.tags.exists(t, t == "secret")`},
	} {
		s := load(b, fmt.Sprintf("rules:\n- id: a\n  on: request\n  message: m\n  when: %s\n", c.when))
		f := someFacts(b)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		b.Run(c.name+"/judge", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := s.Judge(ctx, OnRequest, f); len(got) != 0 {
					b.Fatal(got)
				}
			}
		})
		b.Run(c.name+"/bare", func(b *testing.B) {
			lang, err := newLanguage()
			if err != nil {
				b.Fatal(err)
			}
			ast, issues := lang.request.Compile(c.when)
			if issues.Err() != nil {
				b.Fatal(issues.Err())
			}
			p, err := lang.request.Program(ast, cel.EvalOptions(cel.OptOptimize))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := p.Eval(&facts{Facts: f, on: OnRequest}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoad measures a file of 100 rules.
func BenchmarkLoad(b *testing.B) {
	var t strings.Builder
	t.WriteString("rules:\n")
	for i := range 100 {
		fmt.Fprintf(&t, "- {id: r%d, on: request, message: m, when: 'args.path.startsWith(\"/etc/%d\")'}\n", i, i)
	}
	src := []Source{{Name: "r.yaml", Text: []byte(t.String())}}
	for b.Loop() {
		if _, err := Load(src); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompileScore measures one confidence expression, environment
// included.
func BenchmarkCompileScore(b *testing.B) {
	for b.Loop() {
		if _, err := CompileScore(`args.count > 5 ? 0.2 : 0.9`, "c:1"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJudgeMany measures a set of 100 rules of which 10, or all, are for the
// boundary, and what past functions add.
func BenchmarkJudgeMany(b *testing.B) {
	for _, c := range []struct {
		name string
		here int
		past bool
	}{{"10of100", 10, false}, {"100of100", 100, false}, {"10of100past", 10, true}} {
		var t strings.Builder
		t.WriteString("rules:\n")
		for i := range 100 {
			boundary := "mcp/files/*"
			if i >= c.here {
				boundary = fmt.Sprintf("mcp/other%d/*", i)
			}
			when := fmt.Sprintf(`args.path.startsWith("/etc/%d") || args.count > 1%d`, i, i)
			if c.past {
				when = fmt.Sprintf(`past("%s", "24h").where(args.count > %d).count() > 3`, boundary, i)
			}
			fmt.Fprintf(&t, "- {id: r%d, on: request, boundary: '%s', message: m, when: '%s'}\n", i, boundary, when)
		}
		s := load(b, t.String())
		f := someFacts(b)
		f.History = noHistory{}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := s.Judge(b.Context(), OnRequest, f); len(got) != 0 {
					b.Fatal(got)
				}
			}
		})
	}
}

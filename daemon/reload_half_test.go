package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

const halfRules = `rules:
  - {id: small, on: request, boundary: test/pay, when: args.amount > 100, message: above a hundred}
`

// halfConfig has rules, a budget and a risk.
const halfConfig = quiet + `boundaries:
  - {boundary: test/pay, risk: LOW}
  - {boundary: test/tokens, risk: LOW, consumes: {llm_tokens: 10}}
budgets:
  - {scope: agent, resource: llm_tokens, amount: 25, window: 24h}
risks:
  - {match: 'drop table', risk: PROHIBITED}
rules: {files: [rules.yaml]}
`

// A configuration or a rules file that is written by half is refused with its
// line, and all that is in force stays in force as it was: rules, budgets, what is
// used of them, and risks. The whole ones take effect, all of them.
func TestHalfWrittenLeavesRulesBudgetsAndRisks(t *testing.T) {
	t.Parallel()
	var out countedLog
	var rules string
	d, c, down := up(t, halfConfig, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&out, nil))
		rules = filepath.Join(filepath.Dir(o.Config), "rules.yaml")
		put(t, rules, halfRules)
	})
	defer down()
	ask := func(boundary, payload string) api.Ask {
		return api.Ask{Boundary: boundary, Payload: []byte(payload), Agent: "ada"}
	}
	inForce := func(when string) {
		t.Helper()
		for _, no := range []struct {
			boundary, payload string
			gate              holdfast.Gate
			says              string
		}{
			{"test/pay", `{"amount":101}`, holdfast.K8, "above a hundred"},
			{"test/tokens", `{}`, holdfast.K3, "llm_tokens"},
			{"test/pay", `{"amount":1,"action":"drop table"}`, holdfast.K7, ""},
		} {
			ans, err := c.Check(t.Context(), ask(no.boundary, no.payload))
			if err != nil {
				t.Fatal(err)
			}
			last := ans.Outcome.Opinions[len(ans.Outcome.Opinions)-1]
			if ans.Outcome.Verdict != holdfast.Deny || last.Gate != no.gate || !strings.Contains(last.Why, no.says) {
				t.Errorf("%s: %s %s: %+v", when, no.boundary, no.payload, last)
			}
		}
		if ans, err := c.Check(t.Context(), ask("test/pay", `{"amount":1}`)); err != nil || ans.Outcome.Verdict != holdfast.Allow {
			t.Errorf("%s: what is allowed: %v %+v", when, err, ans)
		}
	}
	for range 2 {
		tok, err := d.Mint(holdfast.Identity{Agent: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: "test/tokens", Payload: []byte(`{}`), Token: tok},
			func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	inForce("before")
	was := d.Kernel.Policy().Version

	newRules := strings.ReplaceAll(strings.ReplaceAll(halfRules, "100", "10"), "hundred", "ten")
	newConfig := strings.NewReplacer("amount: 25", "amount: 1000", "drop table", "truncate").Replace(halfConfig)
	for _, h := range []struct{ name, file, text, whole, says string }{
		{"half a configuration, within its budgets", d.opt.Config, newConfig[:strings.Index(newConfig, ", window")], halfConfig, "holdfast.yaml:9: not YAML"},
		{"half a configuration, within its risks", d.opt.Config, newConfig[:strings.Index(newConfig, "cate'")], halfConfig, "holdfast.yaml:10: not YAML"},
		{"half a configuration, within its rules", d.opt.Config, newConfig[:strings.Index(newConfig, ".yaml]")], halfConfig, "holdfast.yaml:12: not YAML"},
		{"half a rules file", rules, newRules[:strings.Index(newRules, ", message")], halfRules, "rules.yaml:3:1: not YAML"},
		{"a rules file that is cut to nothing", rules, "", halfRules, "rules.yaml:1:1: the file is empty"},
	} {
		before := out.count("not reloaded")
		put(t, h.file, h.text)
		eventually(t, h.name, func() bool { return out.count("not reloaded") > before && out.count(h.says) > 0 })
		inForce(h.name)
		if v := d.Kernel.Policy().Version; v != was {
			t.Errorf("%s: the policy is %s", h.name, v)
		}
		if st, err := c.Status(t.Context()); err != nil || !strings.Contains(strings.Join(st.Problems, "\n"), "does not load, and the one before it stays in force") {
			t.Errorf("%s: %v %q", h.name, err, st.Problems)
		}
		put(t, h.file, h.whole)
		eventually(t, h.name+", mended", func() bool {
			st, err := c.Status(t.Context())
			return err == nil && !strings.Contains(strings.Join(st.Problems, "\n"), "does not load")
		})
	}
	if n := countEvents(t, d, "policy_changed"); n != 0 {
		t.Errorf("%d policies were recorded", n)
	}

	put(t, rules, newRules)
	put(t, d.opt.Config, newConfig)
	eventually(t, "both", func() bool {
		a, err := c.Check(t.Context(), ask("test/pay", `{"amount":11}`))
		b, err2 := c.Check(t.Context(), ask("test/tokens", `{}`))
		return err == nil && err2 == nil && a.Outcome.Verdict == holdfast.Deny && b.Outcome.Verdict == holdfast.Allow
	})
	if a, err := c.Check(t.Context(), ask("test/pay", `{"amount":1,"action":"drop table"}`)); err != nil || a.Outcome.Verdict != holdfast.Allow {
		t.Errorf("the risk that is gone: %v %+v", err, a)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for start := time.Now(); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 40*time.Second {
			t.Fatalf("%s: waited in vain", what)
		}
	}
}

// countedLog counts what was logged.
type countedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *countedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *countedLog) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

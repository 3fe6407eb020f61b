package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Test001_Dashboard_Alerts: each metric of the Safety Net's rules is one that is
// shown, at the document's threshold, and the rules' own tests ask at it and above.
func Test001_Dashboard_Alerts(t *testing.T) {
	text, err := os.ReadFile("../deploy/prometheus/holdfast.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../deploy/prometheus/holdfast.rules.test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, expr, series string }{
		{"iterations per hour > 20", "holdfast_agent_iterations_per_hour{rank=\"1\"} > 20\n", `values: "0 20 20.5 20"`},
		{"API cost per hour > $5", "holdfast_agent_cost_dollars_per_hour{rank=\"1\"} > 5\n", `values: "0 5 5.01 5"`},
		{"time since last human check > 24 h", "holdfast_human_check_age_seconds > 24 * 3600\n", `values: "86399 86400 86401 0"`},
		{"error rate > 5 %", "holdfast_agent_error_ratio{rank=\"1\"} > 0.05\n", `values: "0 0.05 0.06 0.05"`},
		{"files changed per commit > 10", "holdfast_agent_commit_files{rank=\"1\"} > 10\n", `values: "0 10 11 10"`},
		{"repeated action count > 5", "holdfast_agent_repeated_actions{rank=\"1\"} > 5\n", `values: "0 5 6 5"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if !strings.Contains(string(text), "expr: "+row.expr) {
				t.Errorf("no rule says %s", row.expr)
			}
			if !strings.Contains(string(tests), row.series) {
				t.Errorf("no test of a rule asks %s", row.series)
			}
		})
	}
}

// dashboard is what of a Grafana dashboard is looked at.
type dashboard struct {
	Title         string
	UID           string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Datasource *datasource
			Definition string
		}
	}
	Panels []struct {
		ID         int
		Title      string
		Type       string
		GridPos    struct{ X, Y, W, H int }
		Datasource datasource
		Targets    []struct {
			Datasource         datasource
			Expr, LegendFormat string
			RefID              string
		}
	}
}

type datasource struct{ Type, UID string }

// Test001_Dashboard_Grafana: the ready dashboard is one that Grafana takes: its
// queries are PromQL, name only metrics and labels that a real daemon shows after
// real crossings, and no data source of anybody's.
func Test001_Dashboard_Grafana(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/grafana/holdfast.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil || d.Title == "" || d.UID == "" || d.SchemaVersion < 36 {
		t.Fatalf("%v %+v", err, d)
	}
	shown := shownLabels(t)
	var titles, rules []string
	places := map[[2]int]string{}
	ask := func(where, expr string) {
		for name, labels := range queried(expr) {
			known, there := shown[name]
			if !there {
				t.Errorf("%s asks for %s, which no daemon shows", where, name)
			}
			for _, l := range labels {
				if there && !slices.Contains(known, l) {
					t.Errorf("%s asks %s for the label %s, which it lacks: %q", where, name, l, known)
				}
			}
		}
	}
	for _, p := range d.Panels {
		titles = append(titles, p.Title)
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%s: %+v", p.Title, p.Datasource)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s lies over %q", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
		for _, q := range p.Targets {
			if q.Datasource.UID != "${datasource}" || q.Datasource.Type != "prometheus" || q.RefID == "" {
				t.Errorf("%s: %+v", p.Title, q)
			}
			ask(p.Title, q.Expr)
			for _, m := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				for name := range queried(q.Expr) {
					if !slices.Contains(shown[name], m[1]) {
						t.Errorf("%s writes %s, which %s lacks", p.Title, m[1], name)
					}
				}
			}
			rules = append(rules, strings.ReplaceAll(q.Expr, "$instance", ".+"))
		}
	}
	for _, want := range []string{"Iterations per hour", "API cost per hour", "Time since last human check", "Error rate, last 100 actions", "Files changed per commit", "Repeated action count",
		"Refusals by gate", "Halted", "Reviews waiting", "Alarms", "Budget remaining today", "Health today", "Alert channels that fail", "Alerts told and waiting"} {
		if !slices.Contains(titles, want) {
			t.Errorf("no panel %q", want)
		}
	}
	if l := d.Templating.List; len(l) != 2 || l[0].Name != "datasource" || l[0].Type != "datasource" || l[1].Datasource.UID != "${datasource}" {
		t.Errorf("%+v", l)
	}
	ask("a variable", d.Templating.List[1].Definition)
	promtoolTakes(t, rules)
}

// queried are the metrics that a query names, each with the labels that it asks for.
func queried(expr string) map[string][]string {
	out := map[string][]string{}
	by := regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expr, -1)
	for _, m := range regexp.MustCompile(`(holdfast_\w+)(\{[^}]*\})?`).FindAllStringSubmatch(expr, -1) {
		labels := out[m[1]]
		for _, l := range regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`).FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		for _, b := range by {
			for l := range strings.SplitSeq(b[1], ",") {
				labels = append(labels, strings.TrimSpace(l))
			}
		}
		out[m[1]] = labels
	}
	return out
}

// promtoolTakes has promtool read queries, as rules.
func promtoolTakes(t *testing.T, queries []string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("groups:\n  - name: queries\n    rules:\n")
	for i, q := range queries {
		fmt.Fprintf(&b, "      - {record: 'q:%d', expr: %q}\n", i, q)
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v (it is of Debian's package prometheus: see make deps)\n%s", err, out)
	}
}

// shownLabels are the metrics that a real daemon shows after real crossings, each
// with its labels and the one that Prometheus adds.
func shownLabels(t *testing.T) map[string][]string {
	t.Helper()
	_, c, down := up(t, strings.Replace(reportedConfig, "$1.5", "$0.01", 1)+`rules:
  inline:
    - {id: notes, on: request, boundary: agent/step, when: "true", severity: warn, message: m}
alerts: {channels: {team: {kind: chat, env: HOLDFAST_TEST_NO_ADDRESS}}}
`)
	defer down()
	stepAs(t, c, "ann", 25)
	submit(t, c, plainGoal)
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, body := get(t, st.Pages+"/metrics")
	out := map[string][]string{}
	for line := range strings.Lines(body) {
		if m := regexp.MustCompile(`^(holdfast_\w+)(?:\{(.*)\})? `).FindStringSubmatch(line); m != nil {
			labels := append(out[m[1]], "instance")
			for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
				labels = append(labels, l[1])
			}
			out[m[1]] = labels
		}
	}
	return out
}

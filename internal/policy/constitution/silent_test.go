package constitution

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// silent are rules that read well and could never speak, each with the place and
// the hint that its author is told, or "" where it is right (the shape "a name
// drifts, and a rule silently never matches").
func silent() []struct{ on, boundary, when, where, hint string } {
	return []struct{ on, boundary, when, where, hint string }{
		{"request", "a/b", `risk == "high"`, "6:16", `did you mean "HIGH"?`},
		{"request", "a/b", `risk in ["LOW", "HIHG"]`, "6:16", `did you mean "HIGH"?`},
		{"request", "a/b", `risk == "HIGH"`, "", ""},
		{"output", "a/b", `"severe" == risk`, "6:21", "it is LOW, MEDIUM, HIGH, PROHIBITED"},
		{"request", "a/b", `kind == "ops" && level == "Medium"`, "6:34", `did you mean "medium"?`},
		{"request", "a/b", `level != "highest"`, "", ""},
		{"request", "a/b", `["LOW"].exists(risk, risk == "high")`, "", ""},
		{"request", "a/b", `past("a/b", "1h").where(risk == "high").count() > 3`, "6:40", `did you mean "HIGH"?`},
		{"goal", "a/b", `goal.goal_type == "deploy"`, "5:15", "leave `boundary` out"},
		{"graph", "goal/*x", `true`, "5:15", "an exact name"},
		{"subtask", "goal/admit", `subtask.id == "x"`, "", ""},
		{"subtask", "goal/*", `subtask.id == "x"`, "", ""},
		{"request", "goal/admit", `args.goal.goal_type == "Deploy"`, "", ""},
		{"goal", "*", `goal.priority == "high"`, "6:25", "a priority is a number here: 0 critical"},
		{"goal", "*", `goal.priority_name == "High"`, "6:30", `did you mean "high"?`},
		{"goal", "*", `goal.goal_type == "Deploy It"`, "6:26", `did you mean "deploy_it"?`},
		{"goal", "*", `goal.goal_type in ["deploy", "ROLL-BACK"]`, "6:26", `did you mean "roll_back"?`},
		{"goal", "*", `goal.goal_type.startsWith("Self")`, "6:36", `did you mean "self"?`},
		{"subtask", "*", `subtask.required_caps.exists(c, c == "net:external")`, "6:45", `did you mean "network:external"?`},
		{"subtask", "*", `subtask.required_caps.exists(c, c == "network:external")`, "", ""},
		{"subtask", "*", `"Exec:any" in subtask.required_caps`, "6:23", `did you mean "exec:arbitrary"?`},
		{"subtask", "*", `"external" in subtask.required_caps`, "6:23", "a capability is scheme:name"},
		{"subtask", "*", `subtask.required_caps.exists(c, c.startsWith("net:"))`, "6:55", `did you mean "network:"?`},
		{"subtask", "*", `subtask.required_caps.exists(c, c.startsWith("net"))`, "", ""},
		{"subtask", "*", `subtask.required_caps.exists(c, c.contains("Local"))`, "6:53", `did you mean "local"?`},
		{"graph", "*", `graph.sub_tasks.exists(s, "fed:local:x" in s.required_caps)`, "6:51", `did you mean "federation:local:x"?`},
	}
}

func TestRuleThatCouldNeverSpeakIsRefused(t *testing.T) {
	for _, c := range silent() {
		when := c.when
		if strings.ContainsAny(when[:1], "\"[") {
			when = "'" + when + "'" // else YAML takes it for something else
		}
		text := fmt.Sprintf("rules:\n  - id: r\n    message: no\n    on: %s\n    boundary: '%s'\n    when: %s\n", c.on, c.boundary, when)
		_, err := Load([]Source{{Name: "r.yaml", Text: []byte(text)}})
		if c.where == "" {
			if err != nil {
				t.Errorf("%s: %v", c.when, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s %s %s: loaded", c.on, c.boundary, c.when)
			continue
		}
		if got := fmt.Sprintf("%v %s", err, hints(err)); !strings.Contains(got, c.hint) || !strings.Contains(got, "r.yaml:"+c.where+":") {
			t.Errorf("%s %s\ngot  %s\nwant %s %s", c.on, c.when, got, c.where, c.hint)
		}
	}
}

// TestCheckNamesWhatIsMostLikelyNeverAsked: what may be meant, and is not an
// error, is a warning.
// A rule or a past function for a boundary that nothing lists is named, where it is
// known what is listed; patterns that meet are listed.
func TestUnlistedBoundariesAreNamed(t *testing.T) {
	by := Setting{Boundaries: []Boundary{{Name: "mcp/bank/pay"}, {Name: "exec/*"}}, Names: []string{"mcp/notes/*", "egress/api.example.com", "judge/strict"}}
	for _, c := range []struct{ on, boundary, when, want string }{
		{"request", "mcp/bank/refund", "true", `r.yaml:2: r is about "mcp/bank/refund", which nothing lists`},
		{"request", "mcp/bank/pya", "true", `which is not listed; did you mean "mcp/bank/pay"?`},
		{"request", "mcp/nots/*", "true", `r is about "mcp/nots/*", which nothing lists; did you mean "mcp/notes/*"?`},
		{"output", "egress/other.example.com", "true", "which nothing lists"},
		{"request", "mcp/notes/read", `past("mcp/shop/*", "1h").happened()`, `r is about "mcp/shop/*", which nothing lists`},
		{"request", "mcp/notes/read", `past("mcp/notes/wr*", "1h").happened()`, ""},
		{"request", "mcp/*", `past("*", "1h").happened()`, ""},
		{"request", "exec/python", "true", ""},
		{"request", "egress/*", "true", ""},
		{"request", "judge/strict", "true", ""},
		{"request", "*", "true", ""},
		{"goal", "", "true", ""},
	} {
		boundary := ""
		if c.boundary != "" {
			boundary = "    boundary: '" + c.boundary + "'\n"
		}
		files := []Source{{Name: "r.yaml", Text: fmt.Appendf(nil, "rules:\n  - id: r\n    message: no\n    on: %s\n%s    when: %s\n", c.on, boundary, c.when)}}
		report, err := by.Check(files)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(report.Warnings, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.boundary, c.when, got, c.want)
		}
		if silent, err := (Setting{}).Check(files); err != nil || len(silent.Warnings) != 0 {
			t.Errorf("%s: where nobody knows what is listed: %q, %v", c.boundary, silent.Warnings, err)
		}
	}
}

func TestCheckNamesWhatIsMostLikelyNeverAsked(t *testing.T) {
	listed := []Boundary{{Name: "mcp/bank/pay"}, {Name: "mcp/bank/*"}}
	for _, c := range []struct{ on, boundary, when, want string }{
		{"request", "mcp/bank/pya", "true", `r.yaml:2: r is about "mcp/bank/pya", which is not listed; did you mean "mcp/bank/pay"?`},
		{"request", "mcp/bank/Pay", "true", `did you mean "mcp/bank/pay"?`},
		{"request", "mcp/bank/pay", `past("mcp/bnak/pay", "1h").happened()`, `r is about "mcp/bnak/pay"`},
		{"request", "mcp/bank/pay", `past("mcp/bank/pay", "1h").happened()`, ""},
		{"request", "mcp/bank/refund", "true", ""},
		{"request", "mcp/bank/p*", "true", ""},
		{"request", "*", "true", ""},
		{"spawn", "spawn/x", "true", "r.yaml:2: r is on spawn, which nothing in this version asks"},
	} {
		files := []Source{{Name: "r.yaml", Text: fmt.Appendf(nil, "rules:\n  - id: r\n    message: no\n    on: %s\n    boundary: '%s'\n    when: %s\n", c.on, c.boundary, c.when)}}
		report, err := Setting{Boundaries: listed}.Check(files)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(report.Warnings, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.boundary, c.when, got, c.want)
		}
		s, err := Load(files, listed...)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(s.Weakened(), func(w string) bool { return strings.Contains(w, "is on spawn") })
		if said != (c.on == "spawn") {
			t.Errorf("%s: weakened %q", c.on, s.Weakened())
		}
	}
}

// TestHintsSayWhatToWrite: what a newcomer writes, and what he is told to write.
func TestHintsSayWhatToWrite(t *testing.T) {
	for when, want := range map[string]string{
		"amount > 3":                             "for example `args.amount`",
		"args.amount.foo() > 3":                  "rules have no such function",
		"'now > \"2026-01-01\"'":                 "timestamp(",
		"'now - now < \"60s\"'":                  `duration("60s")`,
		"'roles == \"admin\"'":                   `"admin" in roles`,
		"'true == \"true\"'":                     "never of one type",
		"!(args.to in [\"a\"])":                  "single quotes",
		"\"admin\" in roles":                     "single quotes",
		"args.to == \"a: b\"":                    "single quotes",
		"args.n > 1\n\t  && args.m > 1":          "no tabs",
		"!!bool true":                            "without !!bool",
		"past('a/b', '1h').sum('x') > 1":         "for example `args.amount`",
		"past('a/b', '1h').count()":              "compare with something",
		"past('a/b', '1h').cout() > 1":           `did you mean "count"?`,
		"past('a/b', '1h').where(1).count() > 1": "compare with something",
	} {
		_, err := Load([]Source{{Name: "r.yaml", Text: []byte("rules:\n  - id: r\n    message: no\n    on: request\n    when: " + when + "\n")}})
		if err == nil {
			t.Errorf("%s: loaded", when)
		} else if got := hints(err); !strings.Contains(got, want) {
			t.Errorf("%s: %v, hint %q, want %q", when, err, got, want)
		}
	}
}

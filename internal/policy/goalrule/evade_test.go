package goalrule

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func tasksOf(prefix string, n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`{"id":"%s%d","required_caps":[]}`, prefix, i))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// TestEvadeCapabilities: other ways to write what is blocked, and what takes it
// in, are blocked; what merely looks like it is not.
func TestEvadeCapabilities(t *testing.T) {
	for capability, allowed := range map[string]bool{
		"network:*": false, "*:external": false, "*:*": false, "exec:*": false, "network:ext*": false, "n*k:external": false,
		"federation:*": false, "local:*": false, "local:x:*": false, "federation:network/*": false, "exec:arb*ary": false,
		"network/external:x": false, "local:network/external": false, "local:network.external": false, "local:network-external": false,
		"local:network_external": false, "network:external/http": false, "network:external.http": false, "local:net/ext": false,
		"exec:arbitrary_code": false, "local:exec-any": false, "exec:any": false, "network:internet": false,
		"network:": false, "network::external": false, "network;external": false, `network:external\u0000`: false, `network:\u202eexternal`: false,
		"network:externa\u0142": false, "": false, ":": false, "network": false,
		"local:files/*": true, "local:net*": true, "local:network": true, "local:external": true, "local:external:network": true,
		"local:networks:external": true, "federation:peer-*": true, "LOCAL:x": true, "local:executive:arbitrary": true, "local:-": true,
	} {
		if got := verdicts(t, filter(t, nil), aTask(`["`+capability+`"]`), Caller{}, nil); got[0].Allowed != allowed {
			t.Errorf("%s: allowed is %v: %s", capability, got[0].Allowed, spoke(got[0]))
		}
	}
	for _, text := range []string{
		`{"sub_tasks":[{"id":"t","required_caps":["local:x"],"capability_required":"exec:arbitrary"}]}`,
		`{"sub_tasks":[{"id":"t","required_caps":["local:x"],"capability_required":""}]}`,
		`{"sub_tasks":[{"id":"t","required_caps":["exec:arbitrary"],"capability_required":"local:x"}]}`,
	} {
		if got := verdicts(t, filter(t, nil), text, Caller{}, nil); got[0].Allowed {
			t.Errorf("%s: %s", text, spoke(got[0]))
		}
	}
}

// TestBlockedPatterns: a star in what is blocked is none of the letters that it
// stands for.
func TestBlockedPatterns(t *testing.T) {
	for _, c := range []struct {
		blocked, capability string
		allowed             bool
	}{
		{"exec:*", "exec:shell", false},
		{"exec:*", "federation:exec:shell:sh", false},
		{"exec:*", "local:x", true},
		{"exec:*", "exec:*", false},
		{"*:shell", "local:shell", false},
		{"exec:sh*", "exec:sh", false},
		{"exec:sh*", "exec:shell", false},
		{"exec:sh*", "exec:bash", true},
		{"exec:*sh", "exec:b*", false},
		{"a:*:c", "a:b:b:c", false},
		{"a:*:c", "a:c", true},
		{"cloud:disk-write", "cloud:disk:write", false},
	} {
		f := filter(t, func(conf *Config) { conf.BlockedCapabilities = []string{c.blocked} })
		if got := verdicts(t, f, aTask(`["`+c.capability+`"]`), Caller{}, nil); got[0].Allowed != c.allowed {
			t.Errorf("%s of %s: allowed is %v", c.capability, c.blocked, got[0].Allowed)
		}
	}
	conf := Defaults()
	conf.BlockedCapabilities = []string{"-:."}
	if _, err := New(conf); err == nil {
		t.Error("a pattern that names nothing is taken")
	}
}

// TestEvadeTypes: a type that nobody may have is that type however it is
// written, and one in letters that look like others is not read at all.
func TestEvadeTypes(t *testing.T) {
	for kind, want := range map[string]string{
		"ExfiltrateData": "SR-007 critical", "exfiltratedata": "SR-007 critical", "selfModifyRuntime": "SR-007 critical",
		"ｅxfiltrate＿data": "SR-007 critical", "exfiltrate__data": "SR-007 critical", "exfiltrate.data.": "SR-007 critical",
		"ExFiLtRaTe-DaTa": "SR-007 critical", "exfil\u00adtrate_data": "SR-007 critical", "exﬁltrate_data": "SR-007 critical", "e x filtrate data": "SR-007 critical",
		"\u0435xfiltrate_data": "SR-007 block", "\u1d07xfiltrate_data": "SR-007 block", "exfiltrate_d\u0251ta": "SR-007 block", "\u00e9xfiltrate_data": "SR-007 block",
		"exf\u0131ltrate_data": "SR-007 block", "exfiltrate_data\u3164": "SR-007 block", "___": "SR-007 block", "löschen": "SR-007 block",
		"exfiltrate_data_report_of_last_year": "", "deploy-2": "",
	} {
		text, err := json.Marshal(kind)
		if err != nil {
			t.Fatal(err)
		}
		got := verdicts(t, filter(t, nil), strings.Replace(aGoal(""), `"maintenance"`, string(text), 1), Caller{}, nil)
		if spoke(got[0]) != want || got[0].Allowed != (want == "") {
			t.Errorf("%q: %q, want %q", kind, spoke(got[0]), want)
		}
	}
	f := filter(t, func(c *Config) { c.DeniedTypes = []string{"löschen"} })
	if got := verdicts(t, f, goalOf("d", "2", "Löschen", ""), Caller{}, nil); spoke(got[0]) != "SR-007 critical" {
		t.Error(spoke(got[0]))
	}
}

// TestEvadeURLs: an address is one as browsers read it.
func TestEvadeURLs(t *testing.T) {
	for description, warned := range map[string]bool{
		"ht\ntps://x": true, "ht\ttps://x": true, `https:\\evil`: true, "https:/evil": true, `http:\/evil`: true, "https：／／x": true,
		"h\u0301ttps://x": true, "HTTPS\u200b:\u200b//x": true, "xhttp://x": true,
		"about https and such": false, "https: is a scheme": false, "ftp or www.example.com": false,
	} {
		text, err := json.Marshal(description)
		if err != nil {
			t.Fatal(err)
		}
		got := verdicts(t, filter(t, nil), strings.Replace(aGoal(""), `"tidy up"`, string(text), 1), Caller{}, nil)
		if (spoke(got[0]) == "SR-006 warn") != warned || !got[0].Allowed {
			t.Errorf("%q: %q", description, spoke(got[0]))
		}
	}
}

// TestEvadePriorities: what is no word and no whole number is none, and what is
// none is never judged.
func TestEvadePriorities(t *testing.T) {
	for _, p := range []string{"0", "0.0", "-0", "-0.0", "0e999", "0E-3", "1e-400", `"critical"`, `"CRITICAL"`, `"Critical"`} {
		if got := verdicts(t, filter(t, nil), goalOf("d", p, "x", ""), Caller{}, nil); spoke(got[0]) != "SR-002 block" {
			t.Errorf("%s: %q", p, spoke(got[0]))
		}
	}
	for _, p := range []string{`"0"`, `"1"`, `"critical "`, `"critical\u200b"`, `"ＣＲＩＴＩＣＡＬ"`, "true", "false", "null", "[]", "{}", `""`, "5", "-1", "0.5", "1e308"} {
		if s, err := read(t, goalOf("d", p, "x", "")); err == nil {
			t.Errorf("%s is read as %s", p, s.Goal.Priority)
		}
	}
}

// TestEvadeGraphs: sub-tasks count, wherever in a submission they stand, and
// none waits for itself.
func TestEvadeGraphs(t *testing.T) {
	graph := func(n, beside int) string {
		return `{"graph":{"goal_id":"g","sub_tasks":` + tasksOf("t", n) + `},"sub_tasks":` + tasksOf("x", beside) + `}`
	}
	for _, c := range []struct {
		name, text string
		allowed    bool
	}{
		{"alone at the bound", `{"sub_tasks":` + tasksOf("t", 128) + `}`, true},
		{"alone above it", `{"sub_tasks":` + tasksOf("t", 129) + `}`, false},
		{"beside a goal", strings.Replace(aGoal(""), `}}`, `},"sub_tasks":`+tasksOf("t", 5000)+`}`, 1), false},
		{"beside a graph at the bound", graph(127, 1), true},
		{"beside a graph above it", graph(128, 1), false},
		{"beside an empty graph", graph(0, 129), false},
		{"in a payload", `{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":[],"payload":{"sub_tasks":` + tasksOf("t", 129) + `}}]}}`, true},
	} {
		allowed, spoken := true, ""
		for _, v := range verdicts(t, filter(t, nil), c.text, Caller{}, nil) {
			allowed = allowed && v.Allowed
			if !v.Allowed {
				spoken += string(v.SubjectType) + " " + spoke(v)
			}
		}
		if allowed != c.allowed || !allowed && spoken != "graph SR-005 block" {
			t.Errorf("%s: allowed is %v, %s", c.name, allowed, spoken)
		}
	}
	for _, text := range []string{
		`{"sub_tasks":[]}`,
		`{"goal":null}`,
		`{"sub_tasks":[{"id":"t","required_caps":[],"depends_on":["t"]}]}`,
		`{"sub_tasks":[{"id":"t","required_caps":[],"depends_on":["u"]},{"id":"u","required_caps":[],"depends_on":["t"]}]}`,
		`{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":[],"depends_on":["b"]}]},"sub_tasks":[{"id":"b","required_caps":[]}]}`,
		`{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":[]}]},"sub_tasks":[{"id":"a","required_caps":[]}]}`,
		`{"graph":{"goal_id":"g","sub_tasks":[]},"sub_tasks":[{"id":"a","goal_id":"h","required_caps":[]}]}`,
		`{"sub_tasks":[{"id":"t","required_caps":["local:x"],"capability_required":null}]}`,
	} {
		if _, err := read(t, text); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	if _, err := read(t, `{"sub_tasks":[{"id":"t","required_caps":[],"depends_on":["of another submission"]}]}`); err != nil {
		t.Error(err)
	}
}

// TestWeakened: a configuration that lets pass what the specification refuses is
// announced, one that merely writes it otherwise is not.
func TestWeakened(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		says   []string
	}{
		"the defaults":    {func(*Config) {}, nil},
		"more is blocked": {func(c *Config) { c.BlockedCapabilities = []string{"Net:*", "exec:*"} }, nil},
		"written apart": {func(c *Config) {
			c.DeniedTypes = []string{"SelfModifyRuntime", "disable safety filter", "exfiltrate-data", "x"}
		}, nil},
		"no capability":   {func(c *Config) { c.BlockedCapabilities = nil }, []string{"SR-003 lets network:external", "SR-003 lets exec:arbitrary"}},
		"one is left out": {func(c *Config) { c.BlockedCapabilities = []string{"exec:arbitrary", "network:internal"} }, []string{"SR-003 lets network:external"}},
		"a type left out": {func(c *Config) { c.DeniedTypes = c.DeniedTypes[:2] }, []string{"SR-007 admits goals of the type exfiltrate_data"}},
		"any priority":    {func(c *Config) { c.AutoEscalate = Critical }, []string{"SR-002 lets every priority"}},
	} {
		got := filter(t, c.change).Weakened()
		if len(got) != len(c.says) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.says[i]) {
				t.Errorf("%s: %q", name, got[i])
			}
		}
	}
}

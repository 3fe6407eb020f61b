package ruletest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The opinions that a case can expect.
const (
	allow     = "allow"
	hold      = "hold"
	deny      = "deny"
	malformed = "malformed"
)

// want is the opinion that is expected; a nil rules expects nothing of them.
type want struct {
	verdict string
	rules   []string
	says    string
}

// got is the opinion that there was.
type got struct {
	verdict string
	rules   []string
	says    []string
}

func (d *document) wanted(n *yaml.Node, m map[string]*yaml.Node) (want, error) {
	w := want{}
	v := m["want"]
	if v == nil {
		return w, d.wrong(n.Line, "the case expects nothing", "want: allow, hold, deny or malformed")
	}
	if w.verdict = v.Value; !slices.Contains([]string{allow, hold, deny, malformed}, w.verdict) {
		return w, d.wrong(v.Line, "want is none of allow, hold, deny and malformed", "")
	}
	var err error
	if m["rules"] != nil {
		if w.rules, err = d.texts(m["rules"], "rules"); err != nil {
			return w, err
		}
	}
	if m["says"] != nil {
		w.says, err = d.text(m["says"], "says")
	}
	return w, err
}

func (w *want) met(g got) bool {
	return w.verdict == g.verdict && (w.rules == nil || slices.Equal(w.rules, g.rules)) &&
		(w.says == "" || slices.ContainsFunc(g.says, func(s string) bool { return strings.Contains(s, w.says) }))
}

// String says it as String of got does.
func (w want) String() string {
	out := w.verdict
	if w.rules != nil {
		out += by(w.rules)
	}
	if w.says != "" {
		out += `, saying "` + w.says + `"`
	}
	return out
}

// String says it in words.
func (g got) String() string {
	out := g.verdict
	if g.verdict != malformed {
		out += by(g.rules)
	}
	if len(g.says) > 0 {
		out += `, saying "` + strings.Join(g.says, `", "`) + `"`
	}
	return out
}

func by(rules []string) string {
	if len(rules) == 0 {
		return "; no rule speaks"
	}
	return " by " + strings.Join(rules, ", ")
}

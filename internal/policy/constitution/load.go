package constitution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Source is one rules file: its name as people should see it, and its text.
type Source struct {
	Name string
	Text []byte
}

// Info describes one rule.
type Info struct {
	ID       string `json:"id"`
	On       On     `json:"on"`
	Boundary string `json:"boundary"`
	// Where is "file:line".
	Where    string `json:"where"`
	When     string `json:"when"`
	Severity string `json:"severity"`
	Mode     string `json:"mode"`
	OnError  string `json:"on_error"`
	// Label is the file's own `version`, for people.
	Label string `json:"label,omitempty"`
	// Version is the SHA-256 of everything the rule says, 64 hex digits: a
	// rule that says something else has another version (spec 003 1.9,
	// invariant 4).
	Version string `json:"version"`
	// Cost is the estimate on an ordinary payload, in CEL units.
	Cost uint64 `json:"cost"`
	// Past are the past functions that the rule asks.
	Past []PastInfo `json:"past,omitempty"`
	// Facts are the facts that it names.
	Facts []string `json:"facts,omitempty"`
}

// Report is what Check finds in files that load.
type Report struct {
	Rules []Info `json:"rules"`
	// Warnings are sentences of the form "file:line: ...".
	Warnings []string `json:"warnings,omitempty"`
	Version  string   `json:"version"`
}

// maxErrors bounds how many errors one Load reports.
const maxErrors = 100

// Load reads rules files and compiles every rule. It reports everything that
// is wrong, joined (errors.Join) and in the files' order; each part is a
// *holdfast.Error of KindPredicateParse whose Rule is "file:line:col". There
// is either a whole set or none. No files make a set without rules.
//
// Arguments are typed from the schemas of known, which are the boundaries that
// are listed: a rule that names a member which none of its boundaries has, or
// compares what can never be equal, is an error like any other.
func Load(files []Source, known ...Boundary) (*Set, error) {
	return Setting{Boundaries: known}.Load(files)
}

// Load is the package's Load by a setting.
func (by Setting) Load(files []Source) (*Set, error) {
	lang, err := newLanguage()
	if err != nil {
		return nil, err
	}
	listed, err := ready(by.Boundaries)
	if err != nil {
		return nil, err
	}
	facts, err := declare(by.Facts)
	if err != nil {
		return nil, err
	}
	l := loader{lang: lang, known: listed, declared: facts, set: &Set{loaded: true, by: map[On][]*rule{}, named: map[string]*rule{}}}
	for i, src := range files {
		l.file(i, src)
	}
	if err := l.err(); err != nil {
		return nil, err
	}
	l.set.version = l.set.hash()
	return l.set, nil
}

// Check is Load for `holdfast rules check`: what was loaded, what is allowed but
// weakens, and what will most likely never be asked.
func Check(files []Source, known ...Boundary) (Report, error) {
	return Setting{Boundaries: known}.Check(files)
}

type loader struct {
	lang     *language
	known    []known
	declared declared
	set      *Set
	errs     []located
}

func (l *loader) file(index int, src Source) {
	f := &file{name: src.Name}
	for i, n := range f.parse(src.Text) {
		if len(l.set.rules) >= MaxRules {
			f.failAt(n, fmt.Sprintf("more than %d rules", MaxRules), "join rules that ask the same")
			break
		}
		if len(f.errs) > maxErrors {
			break
		}
		l.rule(f, n, i)
	}
	for _, e := range f.errs {
		e.file = index
		l.errs = append(l.errs, e)
	}
}

func (l *loader) err() error {
	sort.SliceStable(l.errs, func(i, j int) bool {
		a, b := l.errs[i], l.errs[j]
		if a.file != b.file {
			return a.file < b.file
		}
		return a.line < b.line || a.line == b.line && a.col < b.col
	})
	var all []error
	for i, e := range l.errs {
		if i == maxErrors {
			all = append(all, fmt.Errorf("and %d more", len(l.errs)-maxErrors))
			break
		}
		all = append(all, e.err)
	}
	return errors.Join(all...)
}

func ruleKeys() []string {
	return []string{"id", "on", "boundary", "when", "severity", "message", "hint", "on_error", "mode", "version"}
}

// rule reads one rule and adds it to the set if nothing is wrong with it.
func (l *loader) rule(f *file, n *yaml.Node, index int) {
	before := len(f.errs)
	m, ok := f.members(n, fmt.Sprintf("rule %d", index+1), ruleKeys())
	if !ok {
		return
	}
	for _, key := range []string{"id", "on", "when", "message"} {
		if m[key] == nil {
			f.failAt(n, fmt.Sprintf("rule %d has no %q", index+1, key), "")
		}
	}
	r := &rule{
		info: Info{
			ID:       f.id(m),
			On:       On(f.choice(m, "on", "", "request", "output", "goal", "subtask", "graph", "spawn")),
			Boundary: f.text(m, "boundary", "*"),
			Where:    fmt.Sprintf("%s:%d", f.name, n.Line),
			Severity: f.choice(m, "severity", SeverityBlock, SeverityInfo, SeverityWarn, SeverityBlock, SeverityCritical, SeverityHold),
			Mode:     f.choice(m, "mode", "enforce", "enforce", "observe"),
			OnError:  f.choice(m, "on_error", "deny", "deny", "pass"),
			Label:    f.text(m, "version", ""),
		},
		message: f.text(m, "message", ""),
		hint:    f.text(m, "hint", ""),
	}
	l.checkRule(f, m, r)
	l.expression(f, m["when"], r)
	if len(f.errs) > before {
		return
	}
	r.finish()
	l.set.add(r)
}

// checkRule checks what members say together.
func (l *loader) checkRule(f *file, m map[string]*yaml.Node, r *rule) {
	if earlier := l.set.named[r.info.ID]; earlier != nil {
		f.failAt(m["id"], fmt.Sprintf("the id %q is taken", r.info.ID), "it is at "+earlier.info.Where)
	}
	if _, taken := builtin(r.info.ID); taken {
		f.failAt(m["id"], fmt.Sprintf("the id %q is a built-in predicate's", r.info.ID), "choose another")
	}
	if strings.Contains(strings.TrimSuffix(r.info.Boundary, "*"), "*") {
		f.failAt(m["boundary"], fmt.Sprintf("%q has a * that is not at its end", clip(r.info.Boundary)), "an exact name, or a prefix and one * at the end")
	}
	if !strings.Contains(strings.TrimSuffix(r.info.Boundary, "*"), "*") && !boundaryPattern(r.info.Boundary) {
		f.failAt(m["boundary"], fmt.Sprintf("%q is no boundary", clip(r.info.Boundary)), "parts with / between them, and nothing before the first or after the last: mcp/bank/pay, or mcp/*")
	}
	if r.prefix, r.glob = strings.CutSuffix(r.info.Boundary, "*"); r.info.On.goals() && !r.matches(GoalBoundary) {
		f.failAt(m["boundary"], fmt.Sprintf("a rule on %s is asked at %s alone", r.info.On, GoalBoundary), "leave `boundary` out")
	}
	if r.info.OnError == "pass" && r.info.On != "" && !r.info.On.goals() {
		f.failAt(m["on_error"], fmt.Sprintf("a rule on %s cannot pass on error", r.info.On), "only rules on goal, subtask or graph can (D3); test with has() what may be missing")
	}
	for _, key := range []string{"message", "hint"} {
		if n := m[key]; n != nil && strings.Contains(n.Value, "{{") {
			f.failAt(n, fmt.Sprintf("%q holds {{", key), "texts are literal; nothing is filled in")
		}
	}
}

func (l *loader) expression(f *file, n *yaml.Node, r *rule) {
	if n == nil {
		return
	}
	source := f.text(map[string]*yaml.Node{"when": n}, "when", "")
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return
	}
	if strings.TrimSpace(source) == "" {
		f.failAt(n, `"when" is empty`, "write a condition that is true for a violation")
		return
	}
	e, pasts, problems := l.lang.compile(r.info.On, source)
	for _, p := range problems {
		line, col := f.place(n, p.line, p.col)
		f.fail(line, col, p.why, p.hint)
	}
	if e == nil {
		return
	}
	for _, p := range append(l.misfits(r, e), l.facts(r, e)...) {
		line, col := f.place(n, p.line, p.col)
		f.fail(line, col, p.why, p.hint)
	}
	r.expr = e
	r.info.When, r.info.Cost = source, e.cost
	l.pasts(f, n, r, pasts)
}

// pasts gives a rule its past functions, with their places in the file.
func (l *loader) pasts(f *file, n *yaml.Node, r *rule, pasts []*Past) {
	for _, p := range pasts {
		for _, wrong := range l.pastMisfits(r, p) {
			line, col := f.place(n, wrong.line, wrong.col)
			f.fail(line, col, wrong.why, wrong.hint)
		}
		line, col := f.place(n, p.line, p.col)
		p.Rule, p.Where = r.info.ID, fmt.Sprintf("%s:%d:%d", f.name, line, col)
		r.info.Cost += p.Cost
		r.info.Past = append(r.info.Past, PastInfo{Text: p.Text, Where: p.Where, Aggregate: p.ID, Cost: p.Cost + PastCost})
	}
	r.pasts = pasts
}

// finish works out what judging needs.
func (r *rule) finish() {
	r.prefix, r.glob = strings.CutSuffix(r.info.Boundary, "*")
	r.info.Version = r.text().Version()
}

// digest hashes texts so that no two lists of texts share a form.
func digest(parts ...string) string {
	b, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// goals says whether the kind belongs to the SafetyFilter (D47).
func (on On) goals() bool { return on == OnGoal || on == OnSubtask || on == OnGraph }

// known says whether there is such a kind of rule.
func (on On) known() bool { return on == OnRequest || on == OnOutput || on == OnSpawn || on.goals() }

package constitution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
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

type loader struct {
	lang     *language
	known    []known
	declared declared
	set      *Set
	errs     []rulefile.Located
}

func (l *loader) file(index int, src Source) {
	f := &rulefile.File{Name: src.Name}
	for i, n := range f.Parse(src.Text) {
		if len(l.set.rules) >= MaxRules {
			f.FailAt(n, fmt.Sprintf("more than %d rules", MaxRules), "join rules that ask the same")
			break
		}
		if len(f.Errs) > maxErrors {
			break
		}
		l.rule(f, n, i)
	}
	for _, e := range f.Errs {
		e.File = index
		l.errs = append(l.errs, e)
	}
}

func (l *loader) err() error {
	sort.SliceStable(l.errs, func(i, j int) bool {
		a, b := l.errs[i], l.errs[j]
		if a.File != b.File {
			return a.File < b.File
		}
		return a.Line < b.Line || a.Line == b.Line && a.Col < b.Col
	})
	var all []error
	for i, e := range l.errs {
		if i == maxErrors {
			all = append(all, fmt.Errorf("and %d more", len(l.errs)-maxErrors))
			break
		}
		all = append(all, e.Err)
	}
	return errors.Join(all...)
}

func ruleKeys() []string {
	return []string{"id", "on", "boundary", "when", "severity", "message", "hint", "on_error", "mode", "version"}
}

// rule reads one rule and adds it to the set if nothing is wrong with it.
func (l *loader) rule(f *rulefile.File, n *yaml.Node, index int) {
	before := len(f.Errs)
	m, ok := f.Members(n, fmt.Sprintf("rule %d", index+1), ruleKeys())
	if !ok {
		return
	}
	for _, key := range []string{"id", "on", "when", "message"} {
		if m[key] == nil {
			f.FailAt(n, fmt.Sprintf("rule %d has no %q", index+1, key), "")
		}
	}
	r := &rule{
		info: Info{
			ID:       f.Id(m),
			On:       On(f.Choice(m, "on", "", "request", "output", "goal", "subtask", "graph", "spawn")),
			Boundary: f.Text(m, "boundary", "*"),
			Where:    fmt.Sprintf("%s:%d", f.Name, n.Line),
			Severity: f.Choice(m, "severity", SeverityBlock, SeverityInfo, SeverityWarn, SeverityBlock,
				SeverityCritical, SeverityHold),
			Mode:    f.Choice(m, "mode", "enforce", "enforce", "observe"),
			OnError: f.Choice(m, "on_error", "deny", "deny", "pass"),
			Label:   f.Text(m, "version", ""),
		},
		message: f.Text(m, "message", ""),
		hint:    f.Text(m, "hint", ""),
	}
	l.checkRule(f, m, r)
	l.expression(f, m["when"], r)
	if len(f.Errs) > before {
		return
	}
	r.finish()
	l.set.add(r)
}

// checkRule checks what members say together.
func (l *loader) checkRule(f *rulefile.File, m map[string]*yaml.Node, r *rule) {
	if earlier := l.set.named[r.info.ID]; earlier != nil {
		f.FailAt(m["id"], fmt.Sprintf("the id %q is taken", r.info.ID), "it is at "+earlier.info.Where)
	}
	if _, taken := builtin(r.info.ID); taken {
		f.FailAt(m["id"], fmt.Sprintf("the id %q is a built-in predicate's", r.info.ID), "choose another")
	}
	if strings.Contains(strings.TrimSuffix(r.info.Boundary, "*"), "*") {
		f.FailAt(m["boundary"], fmt.Sprintf("%q has a * that is not at its end", rulefile.Clip(r.info.Boundary)),
			"an exact name, or a prefix and one * at the end")
	}
	if !strings.Contains(strings.TrimSuffix(r.info.Boundary, "*"), "*") && !boundaryPattern(r.info.Boundary) {
		f.FailAt(m["boundary"], fmt.Sprintf("%q is no boundary", rulefile.Clip(r.info.Boundary)),
			"parts with / between them, and nothing before the first or after the last: mcp/bank/pay, or mcp/*")
	}
	if r.prefix, r.glob = strings.CutSuffix(r.info.Boundary, "*"); r.info.On.goals() && !r.matches(GoalBoundary) {
		f.FailAt(m["boundary"], fmt.Sprintf("a rule on %s is asked at %s alone", r.info.On, GoalBoundary),
			"leave `boundary` out")
	}
	if r.info.OnError == "pass" && r.info.On != "" && !r.info.On.goals() {
		f.FailAt(m["on_error"], fmt.Sprintf("a rule on %s cannot pass on error", r.info.On),
			"only rules on goal, subtask or graph can (D3); test with has() what may be missing")
	}
	for _, key := range []string{"message", "hint"} {
		if n := m[key]; n != nil && strings.Contains(n.Value, "{{") {
			f.FailAt(n, fmt.Sprintf("%q holds {{", key), "texts are literal; nothing is filled in")
		}
	}
}

func (l *loader) expression(f *rulefile.File, n *yaml.Node, r *rule) {
	if n == nil {
		return
	}
	source := f.Text(map[string]*yaml.Node{"when": n}, "when", "")
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return
	}
	if strings.TrimSpace(source) == "" {
		f.FailAt(n, `"when" is empty`, "write a condition that is true for a violation")
		return
	}
	e, pasts, problems := l.lang.compile(r.info.On, source)
	for _, p := range problems {
		line, col := f.Place(n, p.line, p.col)
		f.Fail(line, col, p.why, p.hint)
	}
	if e == nil {
		return
	}
	for _, p := range append(l.misfits(r, e), l.facts(r, e)...) {
		line, col := f.Place(n, p.line, p.col)
		f.Fail(line, col, p.why, p.hint)
	}
	r.expr = e
	r.info.When, r.info.Cost = source, e.cost
	l.pasts(f, n, r, pasts)
}

// pasts gives a rule its past functions, with their places in the file.
func (l *loader) pasts(f *rulefile.File, n *yaml.Node, r *rule, pasts []*Past) {
	for _, p := range pasts {
		for _, wrong := range l.pastMisfits(r, p) {
			line, col := f.Place(n, wrong.line, wrong.col)
			f.Fail(line, col, wrong.why, wrong.hint)
		}
		line, col := f.Place(n, p.line, p.col)
		p.Rule, p.Where = r.info.ID, fmt.Sprintf("%s:%d:%d", f.Name, line, col)
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

package goalrule

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// Rules are the rules that somebody wrote. A nil Rules has none.
type Rules interface {
	Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding
}

// Rule describes a built-in rule.
type Rule struct {
	ID          string
	On          SubjectType
	Severity    Severity
	Description string
}

// BuiltIn lists the constitutional rules, SR-001 to SR-007.
func BuiltIn() []Rule {
	return []Rule{
		{"SR-001", SubjectGoal, SeverityBlock, "the description is longer than max_goal_description_len"},
		{"SR-002", SubjectGoal, SeverityBlock, "the priority is above max_priority_auto_escalate, and allow_critical does not stand"},
		{"SR-003", SubjectSubTask, SeverityBlock, "a blocked capability is needed"},
		{"SR-004", SubjectSubTask, SeverityWarn, "a capability has none of the allowed prefixes"},
		{"SR-005", SubjectGraph, SeverityBlock, "the graph has more than max_subtasks_per_graph sub-tasks"},
		{"SR-006", SubjectGoal, SeverityWarn, "the description holds a URL"},
		{"SR-007", SubjectGoal, SeverityCritical, "the type of goal is one that nobody may have"},
	}
}

// Filter is the SafetyFilter: the built-in rules with their configuration. It
// never changes, and many goroutines may use it. The zero Filter refuses
// everything.
type Filter struct {
	limits *limits
	url    *regexp.Regexp
}

// New makes a filter. The error names the setting that is wrong.
func New(c Config) (*Filter, error) {
	l, err := c.ready()
	if err != nil {
		return nil, err
	}
	url, err := regexp.Compile(`https?:[/\\]`) // as browsers read one
	if err != nil {
		return nil, err
	}
	return &Filter{limits: l, url: url}, nil
}

// PausesOnCritical says whether a critical violation pauses goals.
func (f *Filter) PausesOnCritical() bool { return f.limits == nil || f.limits.PauseOnCritical }

// Caller is what the filter knows of who asks. It is the token's, never the
// submission's.
type Caller struct {
	// MayBeCritical says that the caller holds that permission.
	MayBeCritical bool
	// Facts are what rules may see beside the subject.
	Facts constitution.Facts
}

// Check judges every part of a submission: the goal, each sub-task, the graph.
// rules may be nil. clock measures how long each took; the verdicts are dated by
// the caller's Facts.Now.
func (f *Filter) Check(ctx context.Context, s *Submission, who Caller, rules Rules, clock func() time.Time) []Verdict {
	c := &check{f: f, ctx: ctx, who: who, rules: rules, clock: clock}
	if s.Goal != nil {
		c.judge(SubjectGoal, s.Goal.ID, s.Goal, func() { c.goal(s.Goal) })
	}
	for i := range s.SubTasks {
		c.judge(SubjectSubTask, s.SubTasks[i].ID, &s.SubTasks[i], func() { c.task(&s.SubTasks[i]) })
	}
	if s.Graph == nil && c.f.limits != nil && len(s.SubTasks) > c.f.limits.MaxSubTasks {
		g := s.asGraph()
		c.judge(SubjectGraph, g.Goal, g, func() { c.graph(len(g.SubTasks)) })
	}
	if g := s.Graph; g != nil {
		c.judge(SubjectGraph, g.Goal, g, func() { c.graph(len(g.SubTasks) + len(s.SubTasks)) })
		for i := range g.SubTasks {
			c.judge(SubjectSubTask, g.SubTasks[i].ID, &g.SubTasks[i], func() { c.task(&g.SubTasks[i]) })
		}
	}
	return c.out
}

// check is one call of Check.
type check struct {
	f     *Filter
	ctx   context.Context
	who   Caller
	rules Rules
	clock func() time.Time
	out   []Verdict
	now   Verdict        // of the subject that is judged
	seen  map[string]int // how often each built-in rule spoke of it
}

// maxAlike is how many violations of one built-in rule a verdict names one by
// one: an agent decides how many capabilities it lists.
const maxAlike = 32

func (c *check) judge(kind SubjectType, id string, subject seen, built func()) {
	start := c.clock()
	c.now = Verdict{Subject: id, SubjectType: kind, EvaluatedAt: c.who.Facts.Now, Violations: []Violation{}}
	c.seen = map[string]int{}
	if c.f.limits == nil {
		c.hit("SR-000", SeverityBlock, "the filter was never made ready", "")
	} else {
		built()
	}
	c.sayHowMany()
	c.written(kind, subject)
	c.now.Allowed = c.now.Worst() == "" && !c.now.Held()
	c.now.Took = c.clock().Sub(start)
	c.out = append(c.out, c.now)
}

// sayHowMany tells of each rule's violations that are not named.
func (c *check) sayHowMany() {
	for i := range c.now.Violations {
		v := &c.now.Violations[i]
		if more := c.seen[v.Rule] - maxAlike; more > 0 {
			v.Message += fmt.Sprintf(" (and %d more like the %d that are named)", more, maxAlike)
			delete(c.seen, v.Rule)
		}
	}
}

func (c *check) hit(rule string, s Severity, message, hint string) {
	if c.seen[rule]++; c.seen[rule] > maxAlike {
		return
	}
	c.now.Violations = append(c.now.Violations, Violation{Rule: rule, Severity: s, Subject: c.now.Subject, SubjectType: c.now.SubjectType,
		Message: message, Hint: hint, At: c.now.EvaluatedAt})
}

func (c *check) goal(g *Goal) {
	l := c.f.limits
	if n := utf8.RuneCountInString(g.Description); n > l.MaxDescription {
		c.hit("SR-001", SeverityBlock, fmt.Sprintf("the description has %d characters, more than %d", n, l.MaxDescription), "say it shorter, or name a document")
	}
	if g.Priority < l.AutoEscalate && !(g.AllowCritical && c.who.MayBeCritical) {
		why := "the goal does not say allow_critical"
		if g.AllowCritical {
			why = "allow_critical does not count without the permission " + MayBeCritical
		}
		c.hit("SR-002", SeverityBlock, fmt.Sprintf("the priority is %s, and %s", g.Priority, why), fmt.Sprintf("ask with priority %s, or as somebody who holds %s", l.AutoEscalate, MayBeCritical))
	}
	if c.f.url.MatchString(plainText(g.Description)) || c.f.url.MatchString(plainText(unbroken(g.Description))) {
		c.hit("SR-006", SeverityWarn, "the description holds a URL", "data may be meant to leave by it")
	}
	switch plain := plainType(g.Type); {
	case l.denied[joined(plain)]:
		c.hit("SR-007", SeverityCritical, "goals of the type "+plain+" are never admitted", "")
	case !legible(plain):
		c.hit("SR-007", SeverityBlock, fmt.Sprintf("the type %q cannot be read", excerpt.Of(g.Type, 64)), "write it in plain letters and digits")
	}
}

// unbroken is a text without the line ends and tabs that browsers take out of an
// address.
func unbroken(s string) string {
	if !strings.ContainsAny(s, "\t\n\r") {
		return ""
	}
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s)
}

func (c *check) task(t *SubTask) {
	for _, s := range t.Capabilities {
		p, err := ParseCapability(s)
		if err != nil {
			c.hit("SR-003", SeverityBlock, fmt.Sprintf("the capability %q cannot be read: %v", excerpt.Of(s, 64), err), "write it as scheme:name in plain letters")
			continue
		}
		pieces := p.pieces()
		for _, no := range c.f.limits.blocked {
			if takesIn(pieces, no.pieces) {
				c.hit("SR-003", SeverityBlock, fmt.Sprintf("the capability %s is blocked (%s)", p, no.name), "")
			}
		}
		if !c.f.limits.schemes[p.Scheme()] {
			c.hit("SR-004", SeverityWarn, fmt.Sprintf("the capability %s has none of the allowed prefixes", p), "")
		}
	}
}

// graph judges a graph by all the sub-tasks of its submission: those that stand
// beside it are steps of the same goal.
func (c *check) graph(n int) {
	if most := c.f.limits.MaxSubTasks; n > most {
		c.hit("SR-005", SeverityBlock, fmt.Sprintf("the graph has %d sub-tasks, more than %d", n, most), "make several goals of it")
	}
}

// written asks the rules that somebody wrote about the subject.
func (c *check) written(kind SubjectType, subject seen) {
	if c.rules == nil {
		return
	}
	facts := c.who.Facts
	facts.Subject = subject.tree()
	for _, found := range c.rules.Judge(c.ctx, constitution.On(kind), facts) {
		c.now.Violations = append(c.now.Violations, c.of(found))
	}
}

// of is a finding as a violation. A rule that failed refuses, whatever its own
// severity, but for the weakenings that are asked for by name (D3).
func (c *check) of(found constitution.Finding) Violation {
	v := Violation{Rule: found.Rule, Severity: Severity(found.Severity), Subject: c.now.Subject, SubjectType: c.now.SubjectType,
		Message: strings.TrimSpace(found.Message), Hint: found.Hint, At: c.now.EvaluatedAt, Where: found.Where, Version: found.Version, Observed: found.Observed, Passed: found.Passed}
	if found.Err != nil && !v.Observed && !v.Passed && !v.Severity.refuses() {
		v.Severity = SeverityBlock
	}
	return v
}

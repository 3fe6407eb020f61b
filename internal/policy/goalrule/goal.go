// Package goalrule judges what agents set out to do: goals, sub-tasks and graphs of
// them (spec 004, SafetyFilter; D47). It is pure: a submission and a
// configuration in, verdicts out. Where they are kept, and what a critical
// violation pauses, is the kernel's.
package goalrule

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// Boundary is where goals are admitted.
const Boundary = constitution.GoalBoundary

// MayBeCritical is the permission by which the allow_critical of a goal counts.
// Without it the member is the agent's own word, which allows nothing.
const MayBeCritical = "goal:critical"

// Priority is how urgent a goal is. The numbers are the specification's; a goal
// names its priority by the number or by the word, in lower case or upper.
type Priority int8

// The priorities, the most urgent first.
const (
	Critical Priority = iota
	High
	Normal
	Low
	Idle
)

// priorities are the words, by number.
func priorities() []string { return []string{"critical", "high", "normal", "low", "idle"} }

// String returns critical, high, normal, low or idle; anything else is critical.
func (p Priority) String() string {
	if words := priorities(); p >= Critical && int(p) < len(words) {
		return words[p]
	}
	return "critical"
}

// MarshalText writes the word of String.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a word that String writes; on an error it is Critical.
func (p *Priority) UnmarshalText(b []byte) error {
	for i, word := range priorities() {
		if strings.EqualFold(word, string(b)) {
			*p = Priority(i)
			return nil
		}
	}
	*p = Critical
	return fmt.Errorf("unknown priority (critical, high, normal, low or idle, or 0 to 4)")
}

// Goal is what an agent sets out to do (spec 004 and its Phase 10).
type Goal struct {
	ID          string   `json:"goal_id"`
	Description string   `json:"description"`
	Priority    Priority `json:"priority"`
	// Type is compared in its plain form: lower case, words joined by _.
	Type string `json:"goal_type"`
	// AllowCritical counts where the caller holds MayBeCritical.
	AllowCritical bool     `json:"allow_critical,omitempty"`
	Created       int64    `json:"created_ms,omitempty"`  // unix milliseconds
	Deadline      int64    `json:"deadline_ms,omitempty"` // unix milliseconds, 0 is none
	Tags          []string `json:"tags,omitempty"`
	Parent        string   `json:"parent_id,omitempty"`
}

// SubTask is one step of a goal.
type SubTask struct {
	ID   string `json:"id"`
	Goal string `json:"goal_id,omitempty"`
	Name string `json:"name,omitempty"`
	// Capabilities are what it needs: required_caps and capability_required.
	Capabilities []string `json:"required_caps"`
	DependsOn    []string `json:"depends_on,omitempty"`
	Priority     int64    `json:"priority,omitempty"`   // 0 to 100
	Timeout      int64    `json:"timeout_ms,omitempty"` // milliseconds
	// Payload is what it is given: any JSON tree.
	Payload any `json:"payload,omitempty"`
}

// Graph is how the sub-tasks of one goal hang together.
type Graph struct {
	Goal     string    `json:"goal_id"`
	SubTasks []SubTask `json:"sub_tasks"`
	Created  int64     `json:"created_at_ms,omitempty"`
	Strategy string    `json:"strategy_used,omitempty"`
}

// Submission is what one crossing of goal/admit asks: a goal, sub-tasks, a graph,
// or several of them.
type Submission struct {
	Goal     *Goal
	SubTasks []SubTask
	Graph    *Graph
}

// asGraph is the sub-tasks that stand alone as the graph that they are.
func (s *Submission) asGraph() *Graph {
	g := &Graph{SubTasks: s.SubTasks}
	if s.Goal != nil {
		g.Goal = s.Goal.ID
	} else if len(s.SubTasks) > 0 {
		g.Goal = s.SubTasks[0].Goal
	}
	return g
}

// Bounds of a submission.
const (
	MaxName     = 256    // bytes of an id, a name, a tag or a capability
	MaxSubTasks = 10_000 // of one submission; the filter's own limit is lower
	maxList     = 256    // tags, capabilities or dependencies of one member
	maxText     = 1 << 20
)

// Severity is how bad a violation is (spec 004, ViolationSeverity).
type Severity string

// The severities: info is recorded, warn recorded and flagged, hold asks a
// person (only of rules that somebody wrote), block refuses, critical refuses,
// alerts and pauses.
const (
	SeverityInfo     Severity = "info"
	SeverityWarn     Severity = "warn"
	SeverityHold     Severity = "hold"
	SeverityBlock    Severity = "block"
	SeverityCritical Severity = "critical"
)

// refuses says whether the severity refuses its subject. One that nobody knows
// does.
func (s Severity) refuses() bool { return s != SeverityInfo && s != SeverityWarn && s != SeverityHold }

// SubjectType is what a verdict is about.
type SubjectType string

// What can be judged.
const (
	SubjectGoal    SubjectType = "goal"
	SubjectSubTask SubjectType = "subtask"
	SubjectGraph   SubjectType = "graph"
)

// Violation is one rule that spoke (spec 004, SafetyViolation).
type Violation struct {
	Rule        string      `json:"rule_id"`
	Severity    Severity    `json:"severity"`
	Subject     string      `json:"subject_id"`
	SubjectType SubjectType `json:"subject_type"`
	Message     string      `json:"message"`
	Hint        string      `json:"hint,omitempty"`
	At          time.Time   `json:"timestamp"`
	// Where is "file:line" of a rule that somebody wrote, Version what it said
	// (constitution.Info); both are empty of a built-in one.
	Where   string `json:"where,omitempty"`
	Version string `json:"version,omitempty"`
	// Observed says that the rule only observes; Passed that it failed and says
	// of itself that it passes then. Neither refuses.
	Observed bool `json:"observed,omitempty"`
	Passed   bool `json:"passed,omitempty"`
}

// Holds says whether the violation puts its subject to a person.
func (v *Violation) Holds() bool { return !v.Observed && !v.Passed && v.Severity == SeverityHold }

// Refuses says whether the violation refuses its subject.
func (v *Violation) Refuses() bool { return !v.Observed && !v.Passed && v.Severity.refuses() }

// Verdict is what the filter says of one subject (spec 004, SafetyVerdict). The
// zero Verdict refuses.
type Verdict struct {
	Subject     string      `json:"subject_id"`
	SubjectType SubjectType `json:"subject_type"`
	Allowed     bool        `json:"allowed"`
	Violations  []Violation `json:"violations"`
	EvaluatedAt time.Time   `json:"evaluated_at"`
	// Took is how long judging the subject took.
	Took time.Duration `json:"-"`
}

// Held says whether a rule puts the subject to a person.
func (v *Verdict) Held() bool {
	return slices.ContainsFunc(v.Violations, func(o Violation) bool { return o.Holds() })
}

// Passes says whether the subject was let through, given whether its submission
// was: a person may have admitted what a rule put to one, and nobody admits what
// a rule refuses.
func (v *Verdict) Passes(admitted bool) bool { return v.Allowed || admitted && v.Worst() == "" }

// Worst is the gravest severity among the violations that refuse, or "".
func (v *Verdict) Worst() Severity {
	var worst Severity
	for i := range v.Violations {
		switch o := &v.Violations[i]; {
		case !o.Refuses():
		case o.Severity == SeverityCritical:
			return SeverityCritical
		default:
			worst = o.Severity
		}
	}
	return worst
}

// whole reads a JSON number that is whole and fits 64 bits.
func whole(n json.Number) (int64, bool) {
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

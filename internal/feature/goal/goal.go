// Package goal has the SafetyFilter (spec 004, D47) evaluate what is submitted at goal/admit.
// A critical violation pauses the tenant's goals in the transaction that records it: from then
// on every goal is refused, and everything else continues, until a person has acknowledged
// each critical violation and resumed.
package goal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Name is the feature's, and that of its section of a policy, a *goalrule.Filter.
const Name = "goal"

// Goals is the feature.
type Goals struct{ host kernel.Host }

// New returns the feature.
func New(h kernel.Host) kernel.Feature { return &Goals{h} }

// FromKernel returns the feature of a kernel that has it.
func FromKernel(k *kernel.Kernel) *Goals { return k.Feature(Name).(*Goals) }

// Spec implements kernel.Feature.
func (*Goals) Spec() kernel.Spec {
	return kernel.Spec{Name: Name, Tables: Tables(), Gates: []holdfast.Gate{holdfast.K1, holdfast.K8}}
}

// prepared is what governs goals in one policy.
type prepared struct {
	filter *goalrule.Filter
	rules  kernel.Rules
}

// Prepare implements kernel.Preparer. Without a section the filter is the specification's.
func (*Goals) Prepare(section any, p *kernel.Policy) (any, error) {
	filter, ok := section.(*goalrule.Filter)
	if !ok {
		var err error
		if filter, err = goalrule.New(goalrule.Defaults()); err != nil {
			return nil, err
		}
	}
	return prepared{filter, p.Rules}, nil
}

// Join implements kernel.Joiner. The pause is read so that one that is damaged denies; what
// refuses while goals are paused is the stop.
func (g *Goals) Join(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
	if v.Boundary != goalrule.Boundary || v.Doc == nil {
		return nil, nil
	}
	if _, _, err := goalsPauses.Find(r, v.Who.Tenant); err != nil {
		return nil, err
	}
	p := &part{goals: g, by: v.Prepared.(prepared), who: *v.Who}
	p.submission, p.malformed = goalrule.Read(v.Doc.Value())
	return p, nil
}

// part takes part in the crossing of one submission.
type part struct {
	goals      *Goals
	by         prepared
	who        holdfast.Identity
	submission *goalrule.Submission // nil if malformed
	malformed  error
	verdicts   []goalrule.Verdict
	known
}

// known is what records have of a submission.
type known struct {
	// Opinion is what was thought of it at its gate; of K1 only a denial.
	Opinion holdfast.Opinion `json:"opinion"`
	// Critical is the violation for which goals are paused, or nil.
	Critical *CriticalViolation `json:"critical,omitempty"`
}

// maxRecorded bounds each text of a record, in bytes.
const maxRecorded = 128

// Record implements kernel.Recorder.
func (p *part) Record() any {
	k := p.known
	k.Opinion.Why = p.goals.host.Quote(k.Opinion.Why, maxRecorded)
	k.Opinion.Hint = p.goals.host.Quote(k.Opinion.Hint, maxRecorded)
	k.Opinion.Rule = p.goals.host.Quote(k.Opinion.Rule, maxRecorded)
	return k
}

// Recall implements kernel.Recaller.
func (*Goals) Recall(record json.RawMessage) (kernel.Part, error) {
	var p recalled
	return p, json.Unmarshal(record, &p)
}

// recalled is a part of its record alone.
type recalled known

// Evaluate implements kernel.Part.
func (p recalled) Evaluate(_ context.Context, g holdfast.Gate, _ *kernel.View) holdfast.Opinion {
	if g != p.Opinion.Gate {
		return holdfast.Opinion{Verdict: holdfast.Allow}
	}
	return p.Opinion
}

// RuleKinds implements kernel.FactUser.
func (p *part) RuleKinds() []constitution.On {
	if p.submission == nil {
		return nil
	}
	return []constitution.On{constitution.OnGoal, constitution.OnSubtask, constitution.OnGraph}
}

// Note implements kernel.Noter: the verdicts as callers read them.
func (p *part) Note() json.RawMessage {
	if len(p.verdicts) == 0 {
		return nil
	}
	b, err := json.Marshal(p.verdicts)
	if err != nil {
		return nil
	}
	return b
}

// Evaluate implements kernel.Part: K1 refuses a malformed submission, K8 asks the filter and
// every rule on goals, sub-tasks and graphs.
func (p *part) Evaluate(ctx context.Context, g holdfast.Gate, v *kernel.View) holdfast.Opinion {
	op := holdfast.Opinion{Gate: g, Verdict: holdfast.Allow}
	switch {
	case g == holdfast.K1 && p.malformed != nil:
		op = holdfast.Opinion{Gate: g, Verdict: holdfast.Deny, Kind: holdfast.KindValidation, State: "INVALID",
			Why: "the check failed", Hint: "the log has the cause"}
		var e *holdfast.Error
		if errors.As(p.malformed, &e) {
			op.Why, op.Hint, op.Rule = e.Why, e.Hint, e.Rule
		}
	case g == holdfast.K8 && p.submission != nil:
		caller := goalrule.Caller{MayBeCritical: v.Granted.Has(goalrule.MayBeCritical), Facts: *v.Facts}
		p.verdicts = p.by.filter.Check(ctx, p.submission, caller, p.by.rules, p.goals.host.Now)
		if ctx.Err() != nil {
			op.Verdict, op.Kind, op.Why = holdfast.Deny, holdfast.KindTimeout, "the rules took too long"
			break
		}
		var worst *goalrule.Violation
		if op, worst = opinionOf(p.verdicts); worst != nil && p.by.filter.PausesOnCritical() {
			p.Critical = &CriticalViolation{Rule: worst.Rule, Subject: p.goals.host.Quote(worst.Subject, maxRecorded),
				Message: p.goals.host.Quote(worst.Message, maxRecorded)}
		}
	}
	if op.Verdict != holdfast.Allow || g == holdfast.K8 {
		p.Opinion = op
	}
	return op
}

// OnBegin implements kernel.BeginHook.
func (g *Goals) OnBegin(tx kernel.FeatureTx, p kernel.Part, b *ledger.Begin) error {
	return g.recordVerdicts(tx, p.(*part), b.ID, b.Timestamp, true)
}

// WantsEntry implements kernel.EntryFilter: what was admitted is recorded by its begin.
func (*Goals) WantsEntry(e *ledger.Entry) bool {
	return e.BeginSeq == nil && strings.HasPrefix(e.Boundary, "goal/")
}

// OnEntry implements kernel.EntryHook.
func (g *Goals) OnEntry(tx kernel.FeatureTx, p kernel.Part, e *ledger.Entry) error {
	if p, ok := p.(*part); ok && p != nil {
		return g.recordVerdicts(tx, p, e.ID, e.Timestamp, false)
	}
	for _, f := range e.Facts.Features {
		var k known
		if f.Name != Name || json.Unmarshal([]byte(f.Text), &k) != nil || k.Critical == nil {
			continue
		}
		c := *k.Critical
		c.ID, c.Crossing, c.Agent, c.At = e.ID+".1", e.ID, e.Agent, e.Timestamp
		return pauseGoals(tx, e.TenantID, e.Caller, e.Agent, []CriticalViolation{c})
	}
	return nil
}

// recordVerdicts records the verdicts on a submission that is admitted or refused in this
// transaction, and pauses if one is critical.
func (g *Goals) recordVerdicts(tx kernel.FeatureTx, p *part, crossing string, at time.Time, admitted bool) error {
	if len(p.verdicts) == 0 {
		return nil
	}
	err := tx.Event(kernel.Event{Tenant: p.who.Tenant, Crossing: crossing, Name: eventGoalJudged, Who: p.who.Principal,
		Subject: p.verdicts[0].Subject, Data: verdictsData(p.verdicts, admitted)})
	if err != nil {
		return err
	}
	tx.After(func() { g.host.Observer().GoalsJudged(p.verdicts, admitted) })
	found := g.listCriticals(p, crossing, at)
	if len(found) == 0 || !p.by.filter.PausesOnCritical() {
		return nil
	}
	return pauseGoals(tx, p.who.Tenant, p.who.Principal, p.who.Agent, found)
}

// listCriticals returns the violations of a submission that pause.
func (g *Goals) listCriticals(p *part, crossing string, at time.Time) []CriticalViolation {
	var out []CriticalViolation
	for i := range p.verdicts {
		for n := range p.verdicts[i].Violations {
			o := &p.verdicts[i].Violations[n]
			if !o.Refuses() || o.Severity != goalrule.SeverityCritical {
				continue
			}
			out = append(out, CriticalViolation{ID: fmt.Sprintf("%s.%d", crossing, len(out)+1), Crossing: crossing,
				Agent: p.who.Agent, Rule: o.Rule, Subject: g.host.Quote(o.Subject, maxSubject),
				Message: g.host.Quote(o.Message, 256), At: at})
			if len(out) == maxOpen {
				return out
			}
		}
	}
	return out
}

// opinionOf returns K8's opinion of the verdicts on a submission, and the critical
// violation that it is about, or nil.
func opinionOf(verdicts []goalrule.Verdict) (holdfast.Opinion, *goalrule.Violation) {
	var worst *goalrule.Violation
	held, refused := "", 0
	for i := range verdicts {
		v := &verdicts[i]
		for n := range v.Violations {
			o := &v.Violations[n]
			switch {
			case o.Refuses():
				refused++
				if worst == nil ||
					worst.Severity != goalrule.SeverityCritical && o.Severity == goalrule.SeverityCritical {
					worst = o
				}
			case o.Holds() && held == "":
				held = o.Message
			}
		}
	}
	op := holdfast.Opinion{Gate: holdfast.K8, Verdict: holdfast.Allow}
	switch {
	case worst != nil:
		op.Verdict, op.Kind, op.State, op.Rule = holdfast.Deny, holdfast.KindRule, "FAIL", ruleOf(worst)
		op.Why = fmt.Sprintf("%s %s: %s", worst.SubjectType, excerpt.Of(worst.Subject, 64), worst.Message)
		op.Hint = worst.Hint
		if refused > 1 {
			op.Why += fmt.Sprintf(" (and %d more)", refused-1)
		}
	case held != "":
		op.Verdict, op.Rule, op.Why = holdfast.Hold, "rules on goals", held
	}
	if worst != nil && worst.Severity != goalrule.SeverityCritical {
		worst = nil
	}
	return op, worst
}

func ruleOf(v *goalrule.Violation) string {
	if v.Where != "" {
		return v.Rule + " (" + v.Where + ")"
	}
	return v.Rule + " (built in)"
}

// verdictsData returns the verdicts as the ledger keeps them. What was put to a person is
// refused, unless the person had it admitted.
func verdictsData(verdicts []goalrule.Verdict, admitted bool) map[string]any {
	all := []goalrule.Violation{}
	var refused []string
	for i := range verdicts {
		v := &verdicts[i]
		all = append(all, v.Violations...)
		if !v.Passes(admitted) && len(refused) < maxViolations {
			refused = append(refused, string(v.SubjectType)+" "+v.Subject)
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return grave(&all[a]) > grave(&all[b]) })
	return map[string]any{"subjects": len(verdicts), "refused": refused, "allowed": admitted, "violation_count": len(all),
		"violations": all[:min(len(all), maxViolations)]}
}

func grave(v *goalrule.Violation) int {
	return slices.Index([]goalrule.Severity{
		goalrule.SeverityInfo, goalrule.SeverityWarn, goalrule.SeverityHold,
		goalrule.SeverityBlock, goalrule.SeverityCritical,
	}, v.Severity)
}

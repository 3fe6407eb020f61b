package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/past"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The SafetyFilter (spec 004, D47) is what K8 asks at goal/admit. A critical
// violation pauses the tenant's goals in the transaction that records it: from
// then on every goal is refused, and everything else goes on, until a person has
// acknowledged each critical violation and resumed.

// What the ledger and the log call it.
const (
	eventGoalJudged  = "goal_judged"
	eventGoalsPaused = "goals_paused"
	eventGoalAcked   = "goal_violation_acknowledged"
	eventGoalsResume = "goals_resumed"
)

// Bounds of what is kept of one submission. Of more violations the worst are
// kept, and how many there were.
const (
	maxViolations = 64
	maxOpen       = 256 // critical violations that wait to be acknowledged
)

// CriticalViolation is one that a person must acknowledge.
type CriticalViolation struct {
	// ID is the crossing's, with the violation's number.
	ID       string    `json:"id"`
	Crossing string    `json:"crossing"`
	Agent    string    `json:"agent"`
	Rule     string    `json:"rule_id"`
	Subject  string    `json:"subject_id"`
	Message  string    `json:"message"`
	At       time.Time `json:"timestamp"`
	// By is who acknowledged it, empty while it waits.
	By string `json:"acknowledged_by,omitempty"`
	// Acked is when.
	Acked time.Time `json:"acknowledged_at,omitzero"`
}

// GoalsPause is whether a tenant's goals are paused, and why.
type GoalsPause struct {
	Paused bool      `json:"paused"`
	Since  time.Time `json:"since,omitzero"`
	// Violations are those of this pause, acknowledged or not.
	Violations []CriticalViolation `json:"violations,omitempty"`
}

// Waiting is how many of them nobody has acknowledged.
func (p *GoalsPause) Waiting() int {
	n := 0
	for i := range p.Violations {
		if p.Violations[i].By == "" {
			n++
		}
	}
	return n
}

// last is when the pause last became what it is: a person who says that goals go
// on must have seen that.
func (p *GoalsPause) last() time.Time {
	at := p.Since
	for i := range p.Violations {
		for _, t := range []time.Time{p.Violations[i].At, p.Violations[i].Acked} {
			if t.After(at) {
				at = t
			}
		}
	}
	return at
}

// readPause returns a tenant's pause and its version. A damaged pause is an error, and so a
// denial.
func readPause(tx Tx, tenant string) (GoalsPause, int64, error) { return goalsPauses.Find(tx, tenant) }

// readGoals makes a submission of the payload, where it is one.
func (j *judgement) readGoals() {
	if j.req.Boundary == goalrule.Boundary && j.doc != nil {
		j.submission, j.goalErr = goalrule.Read(j.doc.Value())
	}
}

// unacknowledged says how many critical violations wait for a person.
func unacknowledged(n int) string {
	switch n {
	case 0:
		return "each critical violation is acknowledged, and nobody has resumed"
	case 1:
		return "1 critical violation is not acknowledged"
	}
	return fmt.Sprintf("%d critical violations are not acknowledged", n)
}

// goalsPaused is the refusal of a goal while goals are paused.
func goalsPaused(p *GoalsPause) holdfast.Opinion {
	op := deny(holdfast.GateHalt, holdfast.KindGoalsPaused, fmt.Sprintf("goals are paused since %s: %s", stamp(p.Since), unacknowledged(p.Waiting())),
		"a person acknowledges each with `holdfast goal ack ID`, then lifts the pause with `holdfast goal resume`; `holdfast goal status` lists them")
	op.State = "PAUSED"
	return op
}

// judgeGoals asks the filter and every rule on goals, sub-tasks and graphs.
func (j *judgement) judgeGoals(ctx context.Context) {
	caller := goalrule.Caller{MayBeCritical: j.granted.Has(goalrule.MayBeCritical), Facts: j.facts()}
	j.verdicts = j.pol.goals.Check(ctx, j.submission, caller, j.pol.Rules, j.k.now)
}

// stillAdmitted looks once more whether goals are paused: another submission may
// have paused them since.
func stillAdmitted(tx Tx, j *judgement) error {
	if j.submission == nil {
		return nil
	}
	p, _, err := readPause(tx, j.who.Tenant)
	if err == nil && p.Paused {
		return &errRefused{goalsPaused(&p)}
	}
	return err
}

// goalOpinion is K8's opinion of a submission, or nil where the filter has
// nothing against it.
func (j *judgement) goalOpinion() *holdfast.Opinion {
	var worst *goalrule.Violation
	held, refused := "", 0
	for i := range j.verdicts {
		v := &j.verdicts[i]
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
	if worst != nil {
		op := deny(holdfast.K8, holdfast.KindRule, fmt.Sprintf("%s %s: %s", worst.SubjectType, excerpt.Of(worst.Subject, 64), worst.Message), worst.Hint)
		op.State, op.Rule = "FAIL", goalRule(worst)
		if refused > 1 {
			op.Why += fmt.Sprintf(" (and %d more)", refused-1)
		}
		return &op
	}
	if held != "" && j.replay == nil {
		op := askPerson(holdfast.K8, "rules on goals", held)
		return &op
	}
	return nil
}

func goalRule(v *goalrule.Violation) string {
	if v.Where != "" {
		return v.Rule + " (" + v.Where + ")"
	}
	return v.Rule + " (built in)"
}

// criticals are the violations of a submission that pause.
func (j *judgement) criticals() []CriticalViolation {
	var out []CriticalViolation
	for i := range j.verdicts {
		for n := range j.verdicts[i].Violations {
			o := &j.verdicts[i].Violations[n]
			if !o.Refuses() || o.Severity != goalrule.SeverityCritical {
				continue
			}
			out = append(out, CriticalViolation{ID: fmt.Sprintf("%s.%d", j.id, len(out)+1), Crossing: j.id, Agent: j.who.Agent, Rule: o.Rule,
				Subject: string(j.k.mask(o.Subject)), Message: j.k.quote(o.Message, 256), At: j.at})
			if len(out) == maxOpen {
				return out
			}
		}
	}
	return out
}

// goalsJudged records the verdicts on a submission that is admitted or refused
// in this transaction, and pauses where one is critical. A crash before the
// commit leaves the submission unmade.
func (k *Kernel) goalsJudged(tx Tx, j *judgement, admitted bool) error {
	if len(j.verdicts) == 0 {
		return nil
	}
	if err := k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventGoalJudged, Who: j.who.Principal, Subject: j.verdicts[0].Subject,
		Data: judgedData(j, admitted)}); err != nil {
		return err
	}
	j.paused = nil
	found := j.criticals()
	if len(found) == 0 || !j.pol.goals.PausesOnCritical() {
		return nil
	}
	p, version, err := readPause(tx, j.who.Tenant)
	if err != nil {
		return err
	}
	if !p.Paused {
		p = GoalsPause{Paused: true, Since: j.at}
	}
	p.Violations = append(p.Violations, found...)
	p.Violations = p.Violations[:min(len(p.Violations), maxOpen)]
	if err := goalsPauses.Put(tx, j.who.Tenant, p, version); err != nil {
		return err
	}
	j.paused = found
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventGoalsPaused, Who: j.who.Principal, Subject: j.who.Agent,
		Data: map[string]any{"level": "CRITICAL", "violations": found}})
}

// judgedData is what the ledger keeps of the verdicts. What was put to a person
// is refused, unless the person had it admitted.
func judgedData(j *judgement, admitted bool) map[string]any {
	all := []goalrule.Violation{}
	var refused []string
	for i := range j.verdicts {
		v := &j.verdicts[i]
		all = append(all, v.Violations...)
		if !v.Passes(admitted) && len(refused) < maxViolations {
			refused = append(refused, string(v.SubjectType)+" "+v.Subject)
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return grave(&all[a]) > grave(&all[b]) })
	return map[string]any{"subjects": len(j.verdicts), "refused": refused, "allowed": admitted, "violation_count": len(all),
		"violations": all[:min(len(all), maxViolations)]}
}

func grave(v *goalrule.Violation) int {
	return slices.Index([]goalrule.Severity{
		goalrule.SeverityInfo, goalrule.SeverityWarn, goalrule.SeverityHold,
		goalrule.SeverityBlock, goalrule.SeverityCritical,
	}, v.Severity)
}

// tellGoals tells people of a pause, and the caller of the verdicts, once they
// are durable.
func (c *crossing) tellGoals(admitted bool) {
	j := c.j
	if len(j.verdicts) == 0 {
		return
	}
	c.k.observer.GoalsJudged(j.verdicts, admitted)
	if len(j.paused) > 0 {
		c.k.notify(Notice{Level: "critical", Event: eventGoalsPaused, Tenant: j.who.Tenant, Agent: j.who.Agent, Boundary: goalrule.Boundary, Crossing: j.id,
			Why: "goals are paused: " + j.paused[0].Rule + ": " + j.paused[0].Message})
	}
}

// PausedGoals is one tenant whose goals are paused.
type PausedGoals struct {
	Tenant string    `json:"tenant_id"`
	Since  time.Time `json:"since,omitzero"`
	// Waiting is how many critical violations nobody has acknowledged.
	Waiting int `json:"violations_waiting"`
	// Unread says that the pause cannot be read, so that goals are refused.
	Unread bool `json:"unreadable,omitempty"`
}

// PausedGoalsIn lists the tenants whose goals are paused, in the order of their
// names; a pause that cannot be read is one. An error is the store's.
func PausedGoalsIn(tx Tx) ([]PausedGoals, error) {
	heads, err := tx.Heads()
	if err != nil {
		return nil, err
	}
	var out []PausedGoals
	for _, h := range heads {
		p, _, err := readPause(tx, h.Tenant)
		if damaged := (*table.DamagedError)(nil); errors.As(err, &damaged) {
			out = append(out, PausedGoals{Tenant: h.Tenant, Unread: true})
		} else if err != nil {
			return nil, err
		} else if p.Paused {
			out = append(out, PausedGoals{Tenant: h.Tenant, Since: p.Since, Waiting: p.Waiting()})
		}
	}
	slices.SortFunc(out, func(a, b PausedGoals) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return out, nil
}

// verdictsJSON is the verdicts as callers read them.
func (j *judgement) verdictsJSON() json.RawMessage {
	if len(j.verdicts) == 0 {
		return nil
	}
	b, err := json.Marshal(j.verdicts)
	if err != nil {
		return nil
	}
	return b
}

// Goals says whether a tenant's goals are paused, and what waits.
func (k *Kernel) Goals(ctx context.Context, tenant string) (GoalsPause, error) {
	var p GoalsPause
	err := k.store.View(ctx, func(tx Tx) (err error) {
		p, _, err = readPause(tx, reasonOr(tenant, holdfast.Local))
		return err
	})
	return p, err
}

// AckGoal acknowledges one critical violation on a person's word: the
// statement's Subject is the violation's id. Errors are NotFoundError, and
// ConflictError where somebody has acknowledged it already.
func (k *Kernel) AckGoal(tenant string, signed operator.Signed) (GoalsPause, error) {
	var p GoalsPause
	_, err := k.runSigned(signed, operator.AckGoal, func(tx *scope, s operator.Statement,
		_ operator.Public) (err error) {
		if err := sameTenant(s, tenant); err != nil {
			return err
		}
		of := reasonOr(tenant, holdfast.Local)
		var version int64
		if p, version, err = readPause(tx, of); err != nil {
			return err
		}
		i := slices.IndexFunc(p.Violations, func(v CriticalViolation) bool { return v.ID == s.Subject })
		switch {
		case i < 0:
			return &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("no critical violation %q waits", excerpt.Of(s.Subject, 64)), Hint: "`holdfast goal status` lists them"}
		case p.Violations[i].By != "":
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "it was acknowledged by " + p.Violations[i].By + " already"}
		}
		p.Violations[i].By, p.Violations[i].Acked = s.Reviewer, k.now()
		if err := goalsPauses.Put(tx, of, p, version); err != nil {
			return err
		}
		return k.event(tx, Event{Tenant: of, Crossing: p.Violations[i].Crossing, Name: eventGoalAcked, Who: s.Reviewer, Subject: s.Subject, Data: said(s, signed)})
	})
	return p, err
}

// ResumeGoals lets goals be admitted again, on a person's word; the statement's
// Subject is "goals". While a critical violation is not acknowledged it is a
// ConflictError.
func (k *Kernel) ResumeGoals(tenant string, signed operator.Signed) error {
	_, err := k.runSigned(signed, operator.ResumeGoals, func(tx *scope, s operator.Statement, _ operator.Public) error {
		if err := sameTenant(s, tenant); err != nil {
			return err
		}
		of := reasonOr(tenant, holdfast.Local)
		p, version, err := readPause(tx, of)
		if err != nil {
			return err
		}
		switch n := p.Waiting(); {
		case !p.Paused:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "goals are not paused"}
		case n > 0:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: unacknowledged(n), Hint: "`holdfast goal status` lists them; acknowledge each with `holdfast goal ack ID`"}
		}
		if err := k.saidSince(s, p.last()); err != nil {
			return err
		}
		if err := goalsPauses.Put(tx, of, GoalsPause{}, version); err != nil {
			return err
		}
		data := said(s, signed)
		data["violations"] = len(p.Violations)
		return k.event(tx, Event{Tenant: of, Name: eventGoalsResume, Who: s.Reviewer, Subject: "goals", Data: data})
	})
	if err == nil {
		k.notify(Notice{Level: "warning", Event: eventGoalsResume, Tenant: reasonOr(tenant, holdfast.Local), Why: "goals go on"})
	}
	return err
}

// JudgedGoals is one submission as the ledger keeps it.
type JudgedGoals struct {
	Crossing   string               `json:"crossing"`
	At         time.Time            `json:"timestamp"`
	Who        string               `json:"who"`
	Allowed    bool                 `json:"allowed"`
	Count      int                  `json:"violation_count"`
	Violations []goalrule.Violation `json:"violations"`
}

// ViolationsSince lists the submissions of a tenant that violated anything since
// a time, oldest first, at most limit of the newest; the time itself is within
// (spec 004, violations_since).
func (k *Kernel) ViolationsSince(ctx context.Context, tenant string, since time.Time, limit int) ([]JudgedGoals, error) {
	out := []JudgedGoals{}
	tenant = reasonOr(tenant, holdfast.Local)
	err := k.store.View(ctx, func(tx Tx) error {
		size, err := sizeOf(tx, tenant)
		if err != nil {
			return err
		}
		from, err := past.FirstSince(tx, tenant, size, since)
		if err != nil {
			return err
		}
		return tx.Leaves(tenant, from, size, func(l ledger.Stored) error {
			got, ok, err := judgedGoals(&l)
			if err != nil || !ok || got.Count == 0 || got.At.Before(since) {
				return err
			}
			out = append(out, got)
			if len(out) > limit {
				out = out[1:]
			}
			return ctx.Err()
		})
	})
	return out, err
}

func judgedGoals(l *ledger.Stored) (JudgedGoals, bool, error) {
	if l.Kind != ledger.KindEvent {
		return JudgedGoals{}, false, nil
	}
	e, err := ledger.ParseEvent(l.Record)
	if err != nil || e.Name != eventGoalJudged {
		return JudgedGoals{}, false, err
	}
	got := JudgedGoals{Crossing: e.Crossing, At: e.Timestamp, Who: e.Who}
	return got, true, json.Unmarshal(e.Data, &got)
}

// sizeOf is how many leaves a tenant has.
func sizeOf(tx Tx, tenant string) (int64, error) {
	heads, err := tx.Heads()
	if err != nil {
		return 0, err
	}
	for _, h := range heads {
		if h.Tenant == tenant {
			return h.Size, nil
		}
	}
	return 0, nil
}

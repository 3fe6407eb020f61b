package goal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/past"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

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
	maxSubject    = 4096
)

var goalsPauses = table.New[string, Pause]("goals_pause", table.Options{Key: "tenant", Gates: true})

// Tables returns the tables of the feature.
func Tables() []*table.Def { return []*table.Def{goalsPauses.Def()} }

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

// Pause is whether a tenant's goals are paused, and why. Requests are refused by a stop at
// goalrule.Boundary, which exists while Paused is true.
type Pause struct {
	Paused bool      `json:"paused"`
	Since  time.Time `json:"since,omitzero"`
	// Violations are those of this pause, acknowledged or not.
	Violations []CriticalViolation `json:"violations,omitempty"`
}

// Waiting returns the number of those that are not acknowledged.
func (p *Pause) Waiting() int {
	n := 0
	for i := range p.Violations {
		if p.Violations[i].By == "" {
			n++
		}
	}
	return n
}

// lastChange returns when the pause last became what it is: a person who lifts it must have
// seen that.
func (p *Pause) lastChange() time.Time {
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

// unacknowledged describes what keeps goals paused while n critical violations wait.
func unacknowledged(n int) string {
	switch n {
	case 0:
		return "each critical violation is acknowledged, and nobody has resumed"
	case 1:
		return "1 critical violation is not acknowledged"
	}
	return fmt.Sprintf("%d critical violations are not acknowledged", n)
}

// pauseGoals pauses the tenant's goals, or adds to the violations of the pause.
func pauseGoals(tx kernel.FeatureTx, tenant, who, agent string, found []CriticalViolation) error {
	p, version, err := goalsPauses.Find(tx, tenant)
	if err != nil {
		return err
	}
	if !p.Paused {
		p = Pause{Paused: true, Since: found[0].At}
	}
	p.Violations = append(p.Violations, found...)
	p.Violations = p.Violations[:min(len(p.Violations), maxOpen)]
	if err := goalsPauses.Put(tx, tenant, p, version); err != nil {
		return err
	}
	if err := putStop(tx, tenant, &p); err != nil {
		return err
	}
	tx.Notify(kernel.Notice{Level: "critical", Event: eventGoalsPaused, Tenant: tenant, Agent: agent,
		Boundary: goalrule.Boundary, Crossing: found[0].Crossing,
		Why: "goals are paused: " + found[0].Rule + ": " + found[0].Message})
	return tx.Event(kernel.Event{Tenant: tenant, Crossing: found[0].Crossing, Name: eventGoalsPaused, Who: who,
		Subject: agent, Data: map[string]any{"level": "CRITICAL", "violations": found}})
}

// putStop has the tenant's goals refused, for what the pause is now.
func putStop(tx kernel.FeatureTx, tenant string, p *Pause) error {
	why := fmt.Sprintf("goals are paused since %s: %s", p.Since.UTC().Format("2006-01-02T15:04:05Z"), unacknowledged(p.Waiting()))
	stops, err := kernel.FindStops(tx, tenant, Name)
	if err != nil {
		return err
	}
	if len(stops) > 0 {
		return tx.Reword(tenant, stops[0].ID, why)
	}
	_, err = tx.Stop(kernel.Stop{Tenant: tenant, Boundary: goalrule.Boundary, Cause: "goals_paused", Why: why,
		Recorded: true, Refusal: &kernel.Refusal{Kind: holdfast.KindGoalsPaused, State: "PAUSED",
			Hint: "a person acknowledges each with `holdfast goal ack ID`, then lifts the pause with `holdfast goal resume`; `holdfast goal status` lists them"}})
	return err
}

// OnStart implements kernel.Starter: a pause that was written before there were stops gets
// its own. A damaged pause refuses every goal by itself.
func (g *Goals) OnStart(tx kernel.FeatureTx) error {
	paused, err := ListPaused(tx)
	for i := 0; i < len(paused) && err == nil; i++ {
		if paused[i].Unread {
			continue
		}
		var p Pause
		if p, _, err = goalsPauses.Find(tx, paused[i].Tenant); err == nil {
			err = putStop(tx, paused[i].Tenant, &p)
		}
	}
	return err
}

// Paused is one tenant whose goals are paused.
type Paused struct {
	Tenant string    `json:"tenant_id"`
	Since  time.Time `json:"since,omitzero"`
	// Waiting is the number of critical violations that are not acknowledged.
	Waiting int `json:"violations_waiting"`
	// Unread says that the pause cannot be read, so that goals are refused.
	Unread bool `json:"unreadable,omitempty"`
}

// ListPaused lists the tenants whose goals are paused, in the order of their
// names; a pause that cannot be read is one. An error is the store's.
func ListPaused(tx kernel.Reader) ([]Paused, error) {
	heads, err := tx.Heads()
	if err != nil {
		return nil, err
	}
	var out []Paused
	for _, h := range heads {
		p, _, err := goalsPauses.Find(tx, h.Tenant)
		if damaged := (*table.DamagedError)(nil); errors.As(err, &damaged) {
			out = append(out, Paused{Tenant: h.Tenant, Unread: true})
		} else if err != nil {
			return nil, err
		} else if p.Paused {
			out = append(out, Paused{Tenant: h.Tenant, Since: p.Since, Waiting: p.Waiting()})
		}
	}
	slices.SortFunc(out, func(a, b Paused) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return out, nil
}

// Goals returns the pause of a tenant's goals, and what waits.
func (g *Goals) Goals(ctx context.Context, tenant string) (Pause, error) {
	var p Pause
	err := g.host.View(ctx, func(tx kernel.Reader) (err error) {
		p, _, err = goalsPauses.Find(tx, cmp.Or(tenant, holdfast.Local))
		return err
	})
	return p, err
}

// AckGoal acknowledges one critical violation on a person's word: the statement's Subject is
// the violation's id. Errors are NotFoundError, and ConflictError if it was acknowledged
// already.
func (g *Goals) AckGoal(tenant string, signed operator.Signed) (Pause, error) {
	var p Pause
	err := g.host.CommitSigned(signed, operator.AckGoal, func(tx kernel.FeatureTx, w *kernel.Word) error {
		if err := w.CheckTenant(tenant); err != nil {
			return err
		}
		of := cmp.Or(tenant, holdfast.Local)
		var version int64
		var err error
		if p, version, err = goalsPauses.Find(tx, of); err != nil {
			return err
		}
		i := slices.IndexFunc(p.Violations, func(v CriticalViolation) bool { return v.ID == w.Subject })
		switch {
		case i < 0:
			return &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("no critical violation %q waits",
				excerpt.Of(w.Subject, 64)), Hint: "`holdfast goal status` lists them"}
		case p.Violations[i].By != "":
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "it was acknowledged by " + p.Violations[i].By + " already"}
		}
		p.Violations[i].By, p.Violations[i].Acked = w.Reviewer, g.host.Now()
		if err := goalsPauses.Put(tx, of, p, version); err != nil {
			return err
		}
		if err := putStop(tx, of, &p); err != nil {
			return err
		}
		return tx.Event(kernel.Event{Tenant: of, Crossing: p.Violations[i].Crossing, Name: eventGoalAcked,
			Who: w.Reviewer, Subject: w.Subject, Data: w.Data()})
	})
	return p, err
}

// ResumeGoals lets goals be admitted again, on a person's word; the statement's Subject is
// "goals". While a critical violation is not acknowledged it is a ConflictError.
func (g *Goals) ResumeGoals(tenant string, signed operator.Signed) error {
	return g.host.CommitSigned(signed, operator.ResumeGoals, func(tx kernel.FeatureTx, w *kernel.Word) error {
		if err := w.CheckTenant(tenant); err != nil {
			return err
		}
		of := cmp.Or(tenant, holdfast.Local)
		p, version, err := goalsPauses.Find(tx, of)
		if err != nil {
			return err
		}
		switch n := p.Waiting(); {
		case !p.Paused:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "goals are not paused"}
		case n > 0:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: unacknowledged(n),
				Hint: "`holdfast goal status` lists them; acknowledge each with `holdfast goal ack ID`"}
		}
		if err := w.CheckSince(p.lastChange()); err != nil {
			return err
		}
		if err := goalsPauses.Put(tx, of, Pause{}, version); err != nil {
			return err
		}
		stops, err := kernel.FindStops(tx, of, Name)
		for i := 0; i < len(stops) && err == nil; i++ {
			err = tx.Lift(of, stops[i].ID)
		}
		if err != nil {
			return err
		}
		data := w.Data()
		data["violations"] = len(p.Violations)
		tx.Notify(kernel.Notice{Level: "warning", Event: eventGoalsResume, Tenant: of, Why: "goals go on"})
		return tx.Event(kernel.Event{Tenant: of, Name: eventGoalsResume, Who: w.Reviewer, Subject: "goals", Data: data})
	})
}

// Recorded is one submission as the ledger keeps it.
type Recorded struct {
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
func (g *Goals) ViolationsSince(ctx context.Context, tenant string, since time.Time, limit int) ([]Recorded, error) {
	out := []Recorded{}
	tenant = cmp.Or(tenant, holdfast.Local)
	err := g.host.View(ctx, func(tx kernel.Reader) error {
		size, err := sizeOf(tx, tenant)
		if err != nil {
			return err
		}
		from, err := past.FirstSince(tx, tenant, size, since)
		if err != nil {
			return err
		}
		return tx.Leaves(tenant, from, size, func(l ledger.Stored) error {
			got, ok, err := readRecorded(&l)
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

func readRecorded(l *ledger.Stored) (Recorded, bool, error) {
	if l.Kind != ledger.KindEvent {
		return Recorded{}, false, nil
	}
	e, err := ledger.ParseEvent(l.Record)
	if err != nil || e.Name != eventGoalJudged {
		return Recorded{}, false, err
	}
	got := Recorded{Crossing: e.Crossing, At: e.Timestamp, Who: e.Who}
	return got, true, json.Unmarshal(e.Data, &got)
}

// sizeOf returns the number of leaves of a tenant.
func sizeOf(tx kernel.Reader, tenant string) (int64, error) {
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

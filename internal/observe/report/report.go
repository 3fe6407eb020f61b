// Package report reads from the ledger how a day went, keeps the report of each day, and sends it.
package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/past"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

const (
	// reportBatch is how many leaves one view reads.
	reportBatch = 2000
	// askedBefore is how long before a day a question may have been put that waits in it: a
	// review's whole life, and some time for clocks.
	askedBefore = review.Lifetime + time.Hour
	// skew is how far beside its place in time a leaf may stand: a begin bears the
	// time that its crossing was made at, and gates take theirs.
	skew = 2 * time.Minute
	// ahead is how far the newest leaf may lie before the clock without being told.
	ahead = time.Minute
)

// errEnough ends a reading.
var errEnough = errors.New("enough")

// ReadDay reads how the day (UTC) that the instant day is in went, from the ledger
// alone: the same facts make the same report whenever it is asked for. now is the
// clock; a day that has not begun is a UsageError. Of a ledger that cannot be read
// the report says so, and is RED.
func ReadDay(ctx context.Context, s kernel.Store, day, now time.Time) (health.Report, error) {
	r := newDayReader(s, day)
	if now.Before(r.day.Start()) {
		return health.Report{}, &holdfast.Error{Kind: holdfast.KindUsage, Why: "the day " + day.UTC().Format(time.DateOnly) + " has not begun", Hint: "today is " + now.UTC().Format(time.DateOnly) + " (UTC)"}
	}
	if err := r.advance(ctx, now); err != nil {
		if ctx.Err() != nil {
			return health.Report{}, ctx.Err()
		}
		r.day.Unread(err.Error())
	}
	return r.day.Report(now), nil
}

// dayReader reads a day's leaves, each of them once. It is not safe for concurrent
// use.
type dayReader struct {
	s     kernel.Store
	day   *health.Day
	next  map[string]int64 // the leaf to read next, by tenant; none where it has not begun
	ended map[string]bool  // those whose day is over
}

func newDayReader(s kernel.Store, day time.Time) *dayReader {
	return &dayReader{s: s, day: health.NewDay(day), next: map[string]int64{}, ended: map[string]bool{}}
}

// advance reads what is there and was not read yet. Where it fails it goes on from
// there the next time.
func (r *dayReader) advance(ctx context.Context, now time.Time) error {
	var heads []ledger.Head
	if err := r.s.View(ctx, func(tx kernel.Tx) (err error) { heads, err = tx.Heads(); return err }); err != nil {
		return err
	}
	heads = slices.DeleteFunc(heads, func(h ledger.Head) bool { return h.Tenant == ledger.CheckpointsTenant })
	for _, h := range heads {
		if err := r.tenant(ctx, h, now); err != nil {
			return fmt.Errorf("tenant %s: %w", h.Tenant, err)
		}
	}
	return nil
}

func (r *dayReader) tenant(ctx context.Context, h ledger.Head, now time.Time) error {
	if r.ended[h.Tenant] {
		return nil
	}
	if _, begun := r.next[h.Tenant]; !begun {
		if err := r.begin(ctx, h, now); err != nil {
			return err
		}
	}
	err := r.leaves(ctx, h.Tenant, h.Size, func(l *ledger.Stored) error {
		if !l.At.Before(r.day.End()) && l.Kind != ledger.KindBegin {
			return errEnough
		}
		err := r.take(l)
		if err == nil {
			r.next[h.Tenant] = l.Seq + 1
		}
		return err
	})
	if errors.Is(err, errEnough) {
		r.ended[h.Tenant], err = true, nil
	}
	return err
}

// begin finds where to read from, and reads what the day begins with.
func (r *dayReader) begin(ctx context.Context, h ledger.Head, now time.Time) error {
	from, err := r.since(ctx, h, r.day.Start().Add(-askedBefore-skew))
	if err != nil {
		return err
	}
	if from == h.Size && h.Size == 0 {
		return nil
	}
	if err := r.first(ctx, h, now); err != nil {
		return err
	}
	if h.Tenant == holdfast.Local {
		if err := r.before(ctx, h.Tenant, from); err != nil {
			return err
		}
	}
	if err := r.oldQuestions(ctx, h.Tenant); err != nil {
		return err
	}
	r.next[h.Tenant] = from
	return nil
}

// first looks at the ends of a tenant's tree: what began only later has no day yet,
// and a clock that was set back makes the newest records those of another day.
func (r *dayReader) first(ctx context.Context, h ledger.Head, now time.Time) error {
	return r.s.View(ctx, func(tx kernel.Tx) error {
		oldest, err := tx.Leaf(h.Tenant, 0)
		if err != nil {
			return err
		}
		newest, err := tx.Leaf(h.Tenant, h.Size-1)
		if err != nil {
			return err
		}
		if oldest.At.Before(r.day.End()) {
			r.day.Tenant(h.Tenant)
		} else if h.Tenant == holdfast.Local {
			r.day.Doubt("nothing is recorded of that day: the ledger begins on " + oldest.At.UTC().Format(time.DateOnly))
		}
		if newest.At.After(now.Add(ahead)) {
			r.day.Doubt("the newest record is of " + newest.At.UTC().Format(time.RFC3339) + ", which is ahead of the clock: what was done since is counted on that day")
		}
		return nil
	})
}

// before looks backwards for the newest words on whether everything was halted, and
// on the settings in force.
func (r *dayReader) before(ctx context.Context, tenant string, to int64) error {
	var halted, settings *health.Event
	for ; to > 0 && (halted == nil || settings == nil); to -= min(to, reportBatch) {
		from := max(0, to-reportBatch)
		var h, s *health.Event
		err := r.s.View(ctx, func(tx kernel.Tx) error {
			return tx.Leaves(tenant, from, to, func(l ledger.Stored) error {
				if l.Kind != ledger.KindEvent {
					return nil
				}
				e, err := EventOf(&l)
				if err != nil {
					return err
				}
				if e.State() != nil {
					h = &e
				}
				if e.Settings != nil {
					s = &e
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if halted == nil {
			halted = h
		}
		if settings == nil {
			settings = s
		}
	}
	if halted == nil {
		r.day.Begins()
	} else {
		r.day.Before(health.Event{Tenant: tenant, Halted: halted.State()})
	}
	if settings != nil {
		r.day.Before(health.Event{Tenant: tenant, Settings: settings.Settings})
	}
	return nil
}

// oldQuestions are those that wait without an end, since before what is read: about
// an attempt to escape, and about a spent budget.
func (r *dayReader) oldQuestions(ctx context.Context, tenant string) error {
	const most = 1000 // of each state
	before, end := r.day.Start().Add(-askedBefore), r.day.End()
	return r.s.View(ctx, func(tx kernel.Tx) error {
		for _, state := range []review.State{review.Pending, review.Deferred, review.Approved, review.Used, review.Rejected, review.Changes, review.Voided} {
			rs, err := tx.Reviews(tenant, state, most)
			if err != nil {
				return err
			}
			for i := range rs {
				x := &rs[i]
				waits := state == review.Pending || state == review.Deferred || !x.Decided.Before(end)
				if x.About != "" && x.Expires.IsZero() && x.Created.Before(before) && waits {
					r.day.Waits(tenant, x.ID)
				}
			}
		}
		return nil
	})
}

// since is a leaf before which none is as young as t.
func (r *dayReader) since(ctx context.Context, h ledger.Head, t time.Time) (from int64, err error) {
	err = r.s.View(ctx, func(tx kernel.Tx) (err error) {
		from, err = past.FirstSince(tx, h.Tenant, h.Size, t)
		return err
	})
	return from, err
}

// ReadSince calls fn for each leaf of all tenants from t on, and for some before it.
func ReadSince(ctx context.Context, s kernel.Store, t time.Time, fn func(*ledger.Stored) error) error {
	var heads []ledger.Head
	if err := s.View(ctx, func(tx kernel.Tx) (err error) { heads, err = tx.Heads(); return err }); err != nil {
		return err
	}
	r := newDayReader(s, t)
	for _, h := range heads {
		if h.Tenant == ledger.CheckpointsTenant {
			continue
		}
		from, err := r.since(ctx, h, t.Add(-skew))
		if err != nil {
			return err
		}
		r.next[h.Tenant] = from
		if err := r.leaves(ctx, h.Tenant, h.Size, fn); err != nil {
			return err
		}
	}
	return nil
}

// leaves calls fn for each leaf from the next one on, in short views.
func (r *dayReader) leaves(ctx context.Context, tenant string, to int64, fn func(*ledger.Stored) error) error {
	for from := r.next[tenant]; from < to; from = min(to, from+reportBatch) {
		err := r.s.View(ctx, func(tx kernel.Tx) error {
			return tx.Leaves(tenant, from, min(to, from+reportBatch), func(l ledger.Stored) error { return fn(&l) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// take tells the day of a leaf.
func (r *dayReader) take(l *ledger.Stored) error {
	switch l.Kind {
	case ledger.KindEntry:
		if l.At.Before(r.day.Start()) {
			return nil
		}
		e, err := ledger.ParseEntry(l.Record)
		if err != nil {
			return fmt.Errorf("leaf %d: %w", l.Seq, err)
		}
		r.day.Crossed(crossingOf(e, r.day.Start()))
	case ledger.KindEvent:
		e, err := EventOf(l)
		if err != nil {
			return err
		}
		if l.At.Before(r.day.Start()) {
			r.day.Before(e)
		} else {
			r.day.Happened(e)
		}
	}
	return nil
}

// crossingOf is what a report counts of an entry.
func crossingOf(e *ledger.Entry, day time.Time) health.Crossing {
	c := health.Crossing{Tenant: e.TenantID, Boundary: e.Boundary, Began: e.BeginSeq != nil && !e.Unstarted, Done: e.Outcome == ledger.Done,
		Approved: e.Approved != nil && *e.Approved, Confidence: e.Confidence, Cost: story.CostOf(e)}
	for i := range e.Uses {
		u := &e.Uses[i]
		if u.Draw.Resource != holdfast.MoneyMicro || !isDaily(&u.Draw, day) {
			continue
		}
		c.Drew, c.Limit, c.Used = true, u.Draw.Limit, 0
		if u.Used != nil {
			c.Used = *u.Used
		}
	}
	return c
}

// isDaily says whether a draw is on the budget of its tenant for that day: as the
// budget judge writes a counter's key, TENANT/tenant/TENANT/RESOURCE/SECONDS.
func isDaily(d *ledger.Draw, start time.Time) bool {
	parts := strings.Split(d.Key, "/")
	return d.Window == start.Unix() && len(parts) == 5 && parts[1] == string(budget.Tenant) && parts[4] == "86400"
}

// EventOf returns what a report reads of an event.
func EventOf(l *ledger.Stored) (health.Event, error) {
	e, err := ledger.ParseEvent(l.Record)
	if err != nil {
		return health.Event{}, fmt.Errorf("leaf %d: %w", l.Seq, err)
	}
	var data struct {
		Signature, Decision        string
		Condition, Severity, Cause string
		Review, Crossing           string
		Times                      int64
		Settings                   *health.Settings
		Halted                     *bool
		Disabled                   bool
		Done                       *bool
	}
	if len(e.Data) > 0 {
		_ = json.Unmarshal(e.Data, &data) // of what has another form there is nothing to read
	}
	out := health.Event{Tenant: e.TenantID, Name: e.Name, Subject: e.Subject, Signature: data.Signature, Decision: data.Decision,
		Own: e.Who == "holdfast" || strings.HasPrefix(e.Who, "holdfast (") || data.Review != ""}
	if strings.HasPrefix(e.Subject, snapshot.BoundaryPrefix) && data.Crossing == "" &&
		(data.Done == nil || *data.Done) {
		out.Did = e.Subject
	}
	switch e.Name {
	case "anomaly_found":
		out.Condition, out.Severity, out.Cause, out.Times = data.Condition, data.Severity, data.Cause, data.Times
	case "started", "policy_changed", EventName:
		out.Settings, out.Halted, out.Disabled = data.Settings, data.Halted, data.Disabled
	}
	return out, nil
}

// EventName is what the ledger calls the report of a day.
const EventName = "health_reported"

// SettingsOf returns what the events of a policy say of it for reports.
func SettingsOf(p *kernel.Policy) *health.Settings {
	const most = 100
	s := &health.Settings{Budgets: map[string]int64{}, Watched: true}
	for i := range p.Limits {
		l := &p.Limits[i]
		if l.Scope != budget.Tenant || l.Resource != holdfast.MoneyMicro || l.Window != 24*time.Hour ||
			l.Boundary != "" {
			continue
		}
		of := l.Match
		if of == "*" {
			of = ""
		}
		if old, there := s.Budgets[of]; !there || l.Amount < old {
			s.Budgets[of] = l.Amount
		}
	}
	if len(s.Budgets) > most {
		s.Budgets = nil // then nothing is known of them
	}
	return s
}

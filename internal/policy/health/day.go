package health

import (
	"slices"
	"strings"
	"time"
)

// Crossing is what a report counts of one crossing's entry in the ledger.
type Crossing struct {
	Tenant, Boundary string
	// Began says that its act was started; Done that it came to what was asked.
	Began, Done bool
	// Approved says that a person answered for it, this time or by a rule that is
	// remembered.
	Approved bool
	// Confidence is the score that K7 judged by; nil where none was asked for.
	Confidence *float64
	// Cost is what it took, in millionths of a dollar.
	Cost int64
	// Limit and Used are of its draw on the day's budget of its tenant, where it
	// drew on that; Drew says so.
	Drew        bool
	Limit, Used int64
}

// Event is what a report reads of an event in the ledger.
type Event struct {
	Tenant, Name, Subject string
	// Own says that nobody asked for it: Holdfast did it, or it follows from a
	// person's answer that an event of its own tells of.
	Own bool
	// Signature is that of the person's statement that it carries out, empty
	// without one.
	Signature string
	// Did is the boundary at which something was done that nothing but this event
	// tells of: while everything is halted nothing crosses.
	Did string
	// Decision is how a review was decided.
	Decision string
	// Condition and Severity are of what was found out of the ordinary, Cause is the
	// condition that it is a consequence of, if any, and Times how often it was found.
	Condition, Severity, Cause string
	Times                      int64
	// Settings are what was in force from then on, nil where the event does not say.
	Settings *Settings
	// Halted is whether everything was halted, nil where the event does not say.
	Halted *bool
	// Disabled says that whoever wrote it was halted by HOLDFAST_ENABLED (D35): that is
	// of its process, and says nothing of the one after it.
	Disabled bool
}

// Settings are what a report must know of the configuration. Events of the policy
// and the daily one carry them, so that the ledger alone tells of any past day.
type Settings struct {
	// Budgets are the limits of a tenant's day in millionths of a dollar, by tenant;
	// that of "" is for whom none is named.
	Budgets map[string]int64 `json:"day_budgets,omitempty"`
	// Snapshots says that work trees are tracked, Watched that agents are watched
	// for what is out of the ordinary.
	Snapshots bool `json:"snapshots,omitempty"`
	Watched   bool `json:"watched,omitempty"`
}

// budget is the limit of a tenant's day.
func (s *Settings) budget(tenant string) Count {
	if s == nil {
		return Count{}
	}
	n, ok := s.Budgets[tenant]
	if !ok {
		if n, ok = s.Budgets[""]; !ok {
			return Count{}
		}
	}
	return of(n)
}

// Everything is the subject of events that are about all tenants.
const Everything = "everything"

// Names of boundaries that a report counts.
const (
	stepBoundary     = "agent/step"
	snapshotBoundary = "snapshot/take"
	rollbackBoundary = "snapshot/rollback"
	commitBoundary   = "snapshot/commit"
)

// own says whether a boundary is crossed by Holdfast for itself: what happens there
// is no agent's action.
func own(boundary string) bool {
	return strings.HasPrefix(boundary, "watch/") || strings.HasPrefix(boundary, "snapshot/")
}

// Day gathers what happened on one day (UTC). It is not safe for concurrent use.
type Day struct {
	start    time.Time
	settings *Settings
	tenants  map[string]*tally
	order    []string
	all      shared
}

// shared is what is about every tenant.
type shared struct {
	stops    int64
	halted   bool // now, as far as the events tell
	was      bool // at some time of the day
	unknown  bool // whether it was halted when the day began
	behind   bool // it is still being read
	critical []string
	unread   []string
	doubts   []string
}

// tally is what was counted of one tenant.
type tally struct {
	name                             string
	iterations, cost, executed       int64
	escalated                        int64
	scored                           int64
	score                            float64
	commits, rollbacks, took, failed int64
	missing, blocked, drew           bool
	limit, used                      int64
	said                             map[string]bool // signatures
	acts                             int64           // interventions without one
	queue                            map[string]bool // reviews that wait
	found                            map[pattern]int64
}

type pattern struct{ severity, condition string }

// NewDay begins the day that the instant is in (UTC).
func NewDay(at time.Time) *Day {
	y, m, d := at.UTC().Date()
	return &Day{start: time.Date(y, m, d, 0, 0, 0, 0, time.UTC), tenants: map[string]*tally{}, all: shared{unknown: true}}
}

// Start is when it begins, End when the next one does.
func (d *Day) Start() time.Time { return d.start }

// End is when the next day begins.
func (d *Day) End() time.Time { return d.start.AddDate(0, 0, 1) }

// Tenant makes room for a tenant, whether or not anything happened there.
func (d *Day) Tenant(name string) { d.of(name) }

func (d *Day) of(name string) *tally {
	t := d.tenants[name]
	if t == nil {
		t = &tally{name: name, said: map[string]bool{}, queue: map[string]bool{}, found: map[pattern]int64{}}
		d.tenants[name] = t
		d.order = append(d.order, name)
	}
	return t
}

// Crossed counts a crossing whose entry was written on the day:
//
//   - an iteration is one of agent/step that began (D41);
//   - an action that was auto-executed is one that began without a person's
//     approval; those of watch/ and snapshot/ are Holdfast's own and no action;
//   - the cost is what any took of money;
//   - the confidence is the mean of the scores that K7 judged by;
//   - commits, rollbacks and snapshots are those of snapshot/commit,
//     snapshot/rollback and snapshot/take that are done.
func (d *Day) Crossed(c Crossing) {
	t := d.of(c.Tenant)
	if c.Confidence != nil && *c.Confidence >= 0 && *c.Confidence <= 1 {
		t.scored++
		t.score += *c.Confidence
	}
	if c.Drew {
		t.drew, t.limit = true, c.Limit
		t.used = sum(t.used, max(c.Used, 0))
	}
	t.snapshots(&c)
	if !c.Began {
		return
	}
	t.cost = sum(t.cost, max(c.Cost, 0))
	if c.Boundary == stepBoundary {
		t.iterations++
	}
	if !c.Approved && !own(c.Boundary) {
		t.executed++
	}
}

func (t *tally) snapshots(c *Crossing) {
	switch c.Boundary {
	case commitBoundary:
		t.commits += count(c.Done)
	case rollbackBoundary:
		t.rollbacks += count(c.Done)
	case snapshotBoundary:
		t.took += count(c.Done)
		t.failed += count(c.Began && !c.Done)
	}
}

func count(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// Waits says that a question of a tenant's waits since long before the day.
func (d *Day) Waits(tenant, review string) { d.of(tenant).queue[review] = true }

// Unread notes what of the ledger could not be read, and why: nothing that was
// counted is a figure then.
func (d *Day) Unread(why string) { d.all.unread = note(d.all.unread, why) }

// Doubt notes what makes the report uncertain, as a whole sentence.
func (d *Day) Doubt(why string) { d.all.doubts = note(d.all.doubts, why) }

// Behind says that the ledger is still being read: nothing that was counted is a
// figure yet.
func (d *Day) Behind(is bool) { d.all.behind = is }

func note(list []string, one string) []string {
	if len(list) >= maxReasons || slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

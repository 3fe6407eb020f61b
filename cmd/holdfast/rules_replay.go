package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxDifferences bounds how many crossings a replay names; it counts all.
const maxDifferences = 1000

// different is one crossing of which other rules think otherwise.
type different struct {
	Crossing string    `json:"crossing"`
	At       time.Time `json:"at"`
	Boundary string    `json:"boundary"`
	Agent    string    `json:"agent"`
	// Would is deny or hold of what acted, allow of what a rule refused.
	Would string `json:"would"`
	Rule  string `json:"rule,omitempty"`
	Why   string `json:"why,omitempty"`
}

// replayed is what other rules make of what is recorded.
type replayed struct {
	Same    int `json:"same"`
	Refused int `json:"newly_refused"`
	Held    int `json:"newly_held"`
	Allowed int `json:"newly_allowed"`
	// Unknown has how many cannot be told, by why, and First the leaf of the
	// first of each.
	Unknown     map[string]int   `json:"unknown"`
	First       map[string]int64 `json:"unknown_first"`
	Differences []different      `json:"differences"`

	a     *app
	set   *constitution.Set
	h     *history.History
	pasts []*constitution.Past
	from  time.Time
	leaf  int64 // that is read
	// open are the crossings that began and have no entry yet, by their id.
	open map[string]*history.Ticket
}

func rulesReplayCommand() command {
	return command{name: "replay", about: "say what other rules would have made of what is recorded",
		run: rulesReplay, help: `
Judge what is recorded by other rules, and say what would have been different:
what acted and would be refused or held, and what a rule refused and none would be
asked of. What cannot be told is counted apart, with its first leaf: the ledger
keeps no payload of it, or a rule reads a member that is masked, or names a fact
that was not recorded, and no other refuses. It only reads.

    holdfast rules replay --rules FILE [--since 24h] [--json]

    $ holdfast rules replay --rules new.yaml --since 24h
`}
}

func rulesReplay(a *app, args []string) error {
	fs := a.flags("rules replay")
	var files repeated
	fs.Var(&files, "rules", "")
	since := fs.Duration("since", 24*time.Hour, "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if len(files) == 0 || *since <= 0 {
		return usage("`holdfast rules replay --rules new.yaml --since 24h`", "name the rules with --rules, and a --since above zero")
	}
	set, _, err := a.ruleSet(files)
	if err != nil {
		return err
	}
	now := time.Now()
	r := &replayed{Unknown: map[string]int{}, First: map[string]int64{}, open: map[string]*history.Ticket{}, Differences: []different{}, a: a, set: set, h: history.New(history.MaxEntries), from: now.Add(-*since)}
	start := r.from
	for _, p := range set.Pasts() {
		start = sooner(start, r.from.Add(-p.Window-history.Slack))
	}
	r.pasts, _ = r.h.Use(start, set.Pasts())
	for _, p := range r.pasts {
		r.h.Ready(p.ID)
	}
	if err := a.read(func(_ daemon.Paths, s kernel.Store) error { return r.all(s, start) }); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	r.draw()
	return nil
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// all reads the ledger once. What began before the stretch that is asked about
// is history for it.
func (r *replayed) all(s kernel.Store, start time.Time) error {
	size, err := r.a.size(s)
	if err != nil {
		return err
	}
	from, err := r.a.since(s, size, start)
	if err != nil {
		return err
	}
	p := r.a.newCounter(size - from)
	defer p.Clear()
	return r.a.leaves(s, r.a.tenant, from, size, func(l ledger.Stored) error {
		p.CountLeaf()
		r.leaf = l.Seq
		switch l.Kind {
		case ledger.KindBegin:
			b, err := ledger.ParseBegin(l.Record)
			if err != nil {
				return err
			}
			r.began(b, l.Part)
		case ledger.KindEntry:
			e, err := ledger.ParseEntry(l.Record)
			if err != nil {
				return err
			}
			if t := r.open[e.ID]; t != nil && e.Unstarted {
				t.Remove() // no history, as the kernel has it
			}
			delete(r.open, e.ID)
			r.refused(e)
		}
		return nil
	})
}

// began judges what acted.
func (r *replayed) began(b *ledger.Begin, part []byte) {
	f, unread := recordedFacts(b, part)
	g := gapOf(f.Payload, unread)
	f.Sights = r.set.See(r.a.ctx, f)
	for i := range f.Sights {
		if err := g.of(f.Sights[i].Past.Needs()); err != nil {
			f.Sights[i].Err = err
		}
	}
	t := r.h.Add(f.Now, b.TenantID, b.ID, f.Sights)
	r.open[b.ID] = t
	defer t.Confirm(b.Timestamp)
	if b.Timestamp.Before(r.from) {
		return
	}
	if !r.asks(b.Boundary) {
		r.Same++
		return
	}
	f.History = t
	// What a rule that cannot be told would say matters only where none that can
	// be told denies.
	var untold error
	for _, i := range r.set.Rules() {
		if i.On == constitution.OnRequest && judgesAt(&i, b.Boundary) {
			untold = errors.Join(untold, g.of(r.set.Needs(i.ID)))
		}
	}
	withFacts(&f, r.set.Facts(b.Boundary, constitution.OnRequest))
	d := different{Crossing: b.ID, At: b.Timestamp, Boundary: b.Boundary, Agent: b.Agent}
	for _, found := range r.set.Judge(r.a.ctx, constitution.OnRequest, f) {
		switch {
		case g.of(r.set.Needs(found.Rule)) != nil:
		case !found.Observed && errors.Is(found.Err, errFactNotKept):
			untold = errors.Join(untold, errFact)
		case found.Verdict != holdfast.Allow && errors.Is(found.Err, failure.ErrHistory):
			untold = errors.Join(untold, errHistory)
		case found.Verdict == holdfast.Deny && d.Would != "deny":
			d.Would, d.Rule, d.Why = "deny", found.Rule, found.Message
		case found.Verdict == holdfast.Hold && d.Would == "":
			d.Would, d.Rule, d.Why = "hold", found.Rule, found.Message
		}
	}
	if untold != nil && d.Would != "deny" {
		r.untold(flat(untold)[0].Error())
		return
	}
	r.count(d)
}

var (
	errHistory = errors.New("the history that a rule asks cannot be read")
	errFact    = errors.New("a fact that a rule names was not recorded")
)

// untold counts what cannot be told.
func (r *replayed) untold(why string) {
	if r.Unknown[why]++; r.Unknown[why] == 1 {
		r.First[why] = r.leaf
	}
}

// refused looks at what a rule refused: its payload is not kept, so that only
// where no rule is asked it is known that it would have passed K8.
func (r *replayed) refused(e *ledger.Entry) {
	if e.BeginSeq != nil || e.Gate == nil || *e.Gate != holdfast.K8 || e.Timestamp.Before(r.from) {
		return
	}
	if r.asks(e.Boundary) {
		r.untold("it was refused, and of that the ledger keeps no payload")
		return
	}
	r.count(different{Crossing: e.ID, At: e.Timestamp, Boundary: e.Boundary, Agent: e.Agent, Would: "allow", Why: "no rule is asked there"})
}

// asks says whether a rule judges requests at a boundary.
func (r *replayed) asks(boundary string) bool {
	for _, i := range r.set.Rules() {
		if i.On == constitution.OnRequest && judgesAt(&i, boundary) || len(i.Past) > 0 {
			return true
		}
	}
	return false
}

// judgesAt says whether a rule judges at a boundary.
func judgesAt(i *constitution.Info, boundary string) bool {
	prefix, glob := strings.CutSuffix(i.Boundary, "*")
	return boundary == prefix || glob && strings.HasPrefix(boundary, prefix)
}

func (r *replayed) count(d different) {
	switch d.Would {
	case "":
		r.Same++
		return
	case "deny":
		r.Refused++
	case "hold":
		r.Held++
	case "allow":
		r.Allowed++
	}
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, d)
	}
}

// draw shows the summary and the first differences.
func (r *replayed) draw() {
	unknown := 0
	for _, n := range r.Unknown {
		unknown += n
	}
	whole := max(1, r.Same+r.Refused+r.Held+r.Allowed+unknown)
	for _, row := range []struct {
		name string
		n    int
	}{{"the same", r.Same}, {"newly refused", r.Refused}, {"newly held", r.Held}, {"newly allowed", r.Allowed}, {"unknown", unknown}} {
		fmt.Fprintf(r.a.out, "%-14s %7d  %s\n", row.name, row.n, strings.Repeat("#", (row.n*40+whole-1)/whole))
	}
	for _, why := range slices.Sorted(maps.Keys(r.Unknown)) {
		fmt.Fprintf(r.a.out, "unknown: %d: %s, first at leaf %d\n", r.Unknown[why], clean(why), r.First[why])
	}
	for i, d := range r.Differences {
		if i == 20 {
			fmt.Fprintf(r.a.out, "and more: --json names them\n")
			break
		}
		fmt.Fprintf(r.a.out, "%s  %s  %s  %s  would be %s\n", d.At.UTC().Format(time.RFC3339), d.Crossing, clean(d.Boundary), clean(d.Agent), d.says())
	}
}

// says is what would become of the crossing, in words.
func (d *different) says() string {
	what := map[string]string{"deny": "refused", "hold": "held", "allow": "allowed"}[d.Would]
	if d.Rule != "" {
		what += " by " + clean(d.Rule)
	}
	return what + prefix(": ", clean(d.Why))
}

package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Bounds of lists.
const (
	maxWaiting = 50
	maxDecided = 12 // of each state
	pageSize   = 50
	pageReach  = 400 // leaves that one page of crossings reads at most
)

// queueView is the first page.
type queueView struct {
	Waiting []review.Review
	More    bool // there are more that wait
	// Changed are the tools that a person must accept.
	Changed []string
	Decided []told
}

// told is a review that was answered, with what became of it.
type told struct {
	review.Review
	Word, Class string
}

// queue shows what waits, the longest-waiting first, and what was decided.
func (s *Console) queue(v *visit) {
	var q queueView
	err := s.c.View(v.r.Context(), func(tx kernel.Tx) error {
		for _, st := range []review.State{review.Pending, review.Deferred} {
			rs, err := tx.Reviews("", st, maxWaiting+1)
			if err != nil {
				return err
			}
			q.Waiting = append(q.Waiting, rs...)
		}
		for _, st := range []review.State{review.Approved, review.Used, review.Rejected, review.Changes, review.Expired, review.Voided} {
			rs, err := tx.Reviews("", st, maxDecided)
			if err != nil {
				return err
			}
			for _, r := range rs {
				t := told{Review: r}
				steps, err := approval.LifeOf(tx, &r)
				if err != nil {
					return err
				}
				t.Word, t.Class = life(&r, steps, v.now)
				q.Decided = append(q.Decided, t)
			}
		}
		return nil
	})
	if err != nil {
		v.fail(err)
		return
	}
	slices.SortFunc(q.Waiting, func(a, b review.Review) int { return b.Created.Compare(a.Created) })
	if q.More = len(q.Waiting) > maxWaiting; q.More {
		q.Waiting = q.Waiting[:maxWaiting]
	}
	slices.Reverse(q.Waiting)
	slices.SortFunc(q.Decided, func(a, b told) int { return last(&b.Review).Compare(last(&a.Review)) })
	q.Decided = q.Decided[:min(len(q.Decided), 2*maxDecided)]
	q.Changed = s.c.Kernel.Drifted()
	q.Changed = q.Changed[:min(len(q.Changed), maxChanged)]
	title := "Nothing waits"
	if n := len(q.Waiting); n > 0 {
		title = story.Count(n, "waits", "wait")
	}
	v.show(title, "queue", q)
}

// last is when something last happened to a review.
func last(r *review.Review) time.Time {
	if r.Decided.After(r.Created) {
		return r.Decided
	}
	return r.Created
}

// life says where a review stands, so that what was approved and never ran, or
// ran and never came back, is told apart from what did.
func life(r *review.Review, steps []review.Step, now time.Time) (word, class string) {
	did := map[string]string{}
	for _, s := range steps {
		did[s.Event] = s.How
	}
	if r.About != "" {
		if word, class = r.Fate(steps), "dark"; r.Waiting(now) {
			class = "held"
		}
		return word, class
	}
	how, returned := did["returned"]
	approved := did["decided"] == string(review.Approved)
	switch {
	case returned && how == string(ledger.Done):
		return "approved, and it ran", "lit"
	case returned:
		return "approved, and it ran: " + outcomeWords(ledger.Outcome(how)), "dark"
	case r.State == review.Used:
		return "approved, it began, and has not returned", "held"
	case r.State == review.Pending && r.Waiting(now):
		return "waits for a person", "held"
	case r.State == review.Deferred && r.Waiting(now):
		return "put off until " + r.Until.UTC().Format("2006-01-02 15:04 UTC"), "held"
	case r.State == review.Approved && now.Before(r.Expires):
		return "approved, has not run yet", "held"
	case r.State == review.Rejected:
		return "rejected", "dark"
	case r.State == review.Changes:
		return "changes requested", "dark"
	case r.State == review.Approved || approved && r.State == review.Expired:
		return "approved, never ran: the time ran out", "held"
	case approved:
		return "approved, never ran: void since", "held"
	case r.State == review.Voided:
		return "void: it was asked under another policy, or ran out", "held"
	}
	return "nobody answered in time", "held"
}

// station is one of the four stations of a review.
type station struct {
	Name string
	At   time.Time // zero where it was not reached
	How  string
}

// stations are proposed, decided, executed and returned, reached or not.
func stations(steps []review.Step) []station {
	out := []station{{Name: "proposed"}, {Name: "decided"}, {Name: "executed"}, {Name: "returned"}}
	for _, s := range steps {
		for i := range out {
			if out[i].Name == s.Event {
				out[i].At, out[i].How = s.At, s.How
			}
		}
	}
	return out
}

// reviewView is one review: what is asked, and its crossing's lamps.
type reviewView struct {
	review.Review
	Word, Class string
	Open        bool // it may still be answered
	Part        bool // only a part of it is shown
	Unseen      bool // so, or something in it is masked
	Fields      []field
	Gates       []gate
	Facts       []row
	// Stations are what its life came to so far.
	Stations []station
	// Rule is what may be remembered of it, in words, and RuleText the same
	// as it is signed; empty where nothing may.
	Rule     []string
	RuleText string
	// Changed says that the tool is not what it was at first sight.
	Changed bool
}

// field is one member of a previewed payload, laid out.
type field struct{ Name, Kind, Value string }

func (s *Console) review(v *visit) {
	r, err := v.findReview(v.r.PathValue("id"))
	if err != nil {
		v.fail(err)
		return
	}
	var steps []review.Step
	err = s.c.View(v.r.Context(), func(tx kernel.Tx) error { steps, err = approval.LifeOf(tx, &r); return err })
	if err != nil {
		v.fail(err)
		return
	}
	view := reviewView{Review: r, Open: r.Waiting(v.now), Part: r.Cut, Unseen: r.InPart(), Fields: layOutAll(r.Preview, r.Cut), Stations: stations(steps)}
	view.Word, view.Class = life(&r, steps, v.now)
	if r.About != "" {
		view.Stations = view.Stations[:2] // nothing waits to be carried out
	}
	if v.decides {
		view.Rule, view.RuleText = rememberable(&r, v.now)
	}
	_, err = s.c.Kernel.Changed(v.r.Context(), r.Boundary)
	view.Changed = err == nil
	if e, err := ledger.ParseEntry(r.Entry); err == nil {
		view.Gates, view.Facts = gates(e, true), slices.DeleteFunc(facts(e, &r), func(f row) bool {
			return f.Text == r.Key || f.Text == r.Exact || f.Text == r.PreviewHash // the page has them already
		})
	}
	v.show(r.Boundary, "review", view)
}

// layOutAll lays out a preview's payload, and what stands beside it on a line of
// its own; nil where either cannot be.
func layOutAll(preview string, cut bool) []field {
	first, rest, more := strings.Cut(preview, "\n")
	out := layOut(first, cut)
	if !more || out == nil && first != "{}" {
		return out
	}
	_, text, _ := strings.Cut(rest, ": ")
	beside := layOut(text, cut)
	if beside == nil {
		return nil
	}
	for _, f := range beside {
		f.Name = "beside the payload: " + f.Name
		out = append(out, f)
	}
	return out
}

// layOut reads the members of a preview that is a whole JSON object, to be
// shown beside the text that the hash is over; nil where it is none.
func layOut(preview string, cut bool) []field {
	if cut {
		return nil
	}
	d := jsontext.NewDecoder(strings.NewReader(preview))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	var out []field
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil
		}
		f := field{Name: name.String()}
		value, err := d.ReadValue()
		if err != nil || len(out) == 64 {
			return nil
		}
		f.Kind, f.Value = kindOf(value)
		out = append(out, f)
	}
	return out
}

func kindOf(v jsontext.Value) (kind, text string) {
	switch v.Kind() {
	case '"':
		if b, err := jsontext.AppendUnquote(nil, v); err == nil {
			return "text", string(b)
		}
	case '0':
		return "number", string(v)
	case 't', 'f':
		return "yes or no", string(v)
	case 'n':
		return "nothing", string(v)
	}
	kind = "object"
	if v.Kind() == '[' {
		kind = "list"
	}
	own := v.Clone()
	if own.Indent(jsontext.WithIndent("  ")) != nil {
		return kind, string(v)
	}
	return kind, string(own)
}

func tenantOf(v *visit) string {
	if t := v.r.URL.Query().Get("tenant"); t != "" && len(t) <= 256 {
		return t
	}
	return holdfast.Local
}

func (s *Console) crossing(v *visit) {
	raw, err := v.read(tenantOf(v), v.r.PathValue("id"))
	if err != nil {
		v.fail(err)
		return
	}
	st, err := raw.tell()
	if err != nil {
		v.fail(err)
		return
	}
	v.show(st.Boundary, "crossing", st)
}

// crossingsView is one page of entries, the newest first.
type crossingsView struct {
	Tenant  string
	Tenants []string
	Entries []entryRow
	// Older is where the next page begins, 0 where this is the last.
	Older int64
	Size  int64
}

type entryRow struct {
	*ledger.Entry
	Seq         int64
	Word, Class string
}

// crossings lists entries before a leaf, a page at a time.
func (s *Console) crossings(v *visit) {
	view := crossingsView{Tenant: tenantOf(v)}
	before, err := strconv.ParseInt(v.r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		before = 1<<63 - 1
	}
	err = s.c.View(v.r.Context(), func(tx kernel.Tx) error { return view.fill(tx, before) })
	if err != nil {
		v.fail(err)
		return
	}
	v.show("Crossings", "crossings", view)
}

// fill reads leaves backwards, a little at a time, until the page is full.
func (c *crossingsView) fill(tx kernel.Tx, before int64) error {
	heads, err := tx.Heads()
	if err != nil {
		return err
	}
	for _, h := range heads {
		c.Tenants = append(c.Tenants, h.Tenant)
		if h.Tenant == c.Tenant {
			c.Size = h.Size
		}
	}
	end := min(max(before, 0), c.Size)
	least := max(0, end-pageReach)
	for end > least && len(c.Entries) < pageSize {
		from := max(least, end-2*pageSize)
		var found []entryRow
		err := tx.Leaves(c.Tenant, from, end, func(l ledger.Stored) error {
			if l.Kind != ledger.KindEntry {
				return nil
			}
			e, err := ledger.ParseEntry(l.Record)
			if err == nil {
				found = append(found, entryRow{e, l.Seq, outcomeWords(e.Outcome), outcomeClass(e.Outcome)})
			}
			return err
		})
		if err != nil {
			return err
		}
		slices.Reverse(found)
		c.Entries = append(c.Entries, found...)
		end = from
	}
	if len(c.Entries) > pageSize {
		c.Entries = c.Entries[:pageSize]
		end = c.Entries[pageSize-1].Seq
	}
	c.Older = end
	return nil
}

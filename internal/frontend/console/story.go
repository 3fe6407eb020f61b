package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Bounds of one story: how many events of a crossing are shown, and how far on
// either side its flow is looked for, in leaves.
const (
	maxEvents = 100
	flowReach = 128
)

// step is one leaf of a story.
type step struct {
	At    time.Time
	What  string
	Class string
	Leaf  int64
	Rows  []row
}

type row struct {
	Name, Text string
	// Mono shows hashes and ids.
	Mono bool
}

// crossingView is what is known of one crossing.
type crossingView struct {
	ID, Tenant, Boundary, Agent string
	Outcome, Class              string
	Gates                       []gate
	Review                      *review.Review
	Facts                       []row
	Result                      string
	Steps                       []step
	Flow                        []near
	Took                        time.Duration
}

// near is another crossing of the same flow.
type near struct {
	ID, Boundary, Outcome, Class string
	At                           time.Time
}

// raw is what the store has of a crossing.
type raw struct {
	tenant string
	leaves []ledger.Stored
	flow   []ledger.Stored
	review *review.Review
}

// read collects a crossing in one snapshot.
func (v *visit) read(tenant, id string) (*raw, error) {
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return nil, kernel.ErrNotFound
	}
	s := &raw{tenant: tenant}
	return s, v.c.View(v.r.Context(), func(tx kernel.Tx) error {
		both, err := tx.Crossing(tenant, id)
		if err != nil && !errors.Is(err, kernel.ErrNotFound) {
			return err
		}
		events, err := tx.Events(tenant, id, maxEvents)
		if err != nil {
			return err
		}
		s.leaves = append(both, events...)
		slices.SortFunc(s.leaves, func(a, b ledger.Stored) int { return int(a.Seq - b.Seq) })
		if len(s.leaves) == 0 {
			return kernel.ErrNotFound
		}
		if err := s.findReview(tx); err != nil {
			return err
		}
		return s.findFlow(tx)
	})
}

// findReview finds the question that was asked about the crossing, if any.
func (s *raw) findReview(tx kernel.Tx) error {
	id := ""
	for _, l := range s.leaves {
		switch l.Kind {
		case ledger.KindBegin:
			if b, err := ledger.ParseBegin(l.Record); err == nil && b.Review != "" {
				id = b.Review
			}
		case ledger.KindEntry:
			if e, err := ledger.ParseEntry(l.Record); err == nil && e.Review != "" {
				id = e.Review
			}
		case ledger.KindEvent:
			if e, err := ledger.ParseEvent(l.Record); err == nil && reviewID().MatchString(e.Subject) {
				id = e.Subject
			}
		}
	}
	if id == "" {
		return nil
	}
	r, err := tx.Review(id)
	if errors.Is(err, kernel.ErrNotFound) {
		return nil
	}
	if err == nil && r.Tenant == s.tenant {
		s.review = &r
	}
	return err
}

// findFlow looks for entries of the same correlation close by; the ledger has
// no index of flows, and a page reads no ledger whole.
func (s *raw) findFlow(tx kernel.Tx) error {
	correlation := s.correlation()
	if correlation == "" {
		return nil
	}
	mid := s.leaves[len(s.leaves)-1].Seq
	mark := []byte(`"correlation_id":"` + correlation + `"`)
	return tx.Leaves(s.tenant, max(0, mid-flowReach), mid+flowReach, func(l ledger.Stored) error {
		if l.Kind == ledger.KindEntry && l.Crossing != s.leaves[0].Crossing && bytes.Contains(l.Record, mark) {
			s.flow = append(s.flow, l)
		}
		return nil
	})
}

func (s *raw) correlation() string {
	if s.review != nil {
		return s.review.Correlation
	}
	for _, l := range s.leaves {
		if e, err := ledger.ParseEntry(l.Record); l.Kind == ledger.KindEntry && err == nil {
			return e.Correlation
		}
		if b, err := ledger.ParseBegin(l.Record); l.Kind == ledger.KindBegin && err == nil {
			return b.Correlation
		}
	}
	return ""
}

// tell makes a story of what was read.
func (s *raw) tell() (*crossingView, error) {
	out := &crossingView{ID: s.leaves[0].Crossing, Tenant: s.tenant, Review: s.review, Outcome: "under way", Class: "held"}
	var entry *ledger.Entry
	for _, l := range s.leaves {
		st, e, err := tellLeaf(l)
		if err != nil {
			return nil, fmt.Errorf("leaf %d: %w", l.Seq, err)
		}
		if l.Kind == ledger.KindBegin {
			b, _ := ledger.ParseBegin(l.Record)
			out.Boundary, out.Agent, out.Gates = b.Boundary, b.Agent, begunGates(b)
		}
		if e != nil {
			entry = e
			out.Result = result(e, l.Part)
		}
		out.Steps = append(out.Steps, st)
	}
	if entry == nil && s.review != nil {
		if e, err := ledger.ParseEntry(s.review.Entry); err == nil {
			out.Boundary, out.Agent = e.Boundary, e.Agent
			if len(out.Gates) == 0 {
				out.Gates, out.Outcome = gates(e, true), "held for a person"
			}
			out.Facts = facts(e, s.review)
		}
	}
	if entry != nil {
		out.Boundary, out.Agent, out.Outcome, out.Class = entry.Boundary, entry.Agent, outcomeWords(entry.Outcome), outcomeClass(entry.Outcome)
		out.Gates, out.Took = gates(entry, false), time.Duration(entry.DurationUS)*time.Microsecond
		out.Facts = facts(entry, s.review)
	}
	out.spare()
	for _, l := range s.flow {
		if e, err := ledger.ParseEntry(l.Record); err == nil {
			out.Flow = append(out.Flow, near{e.ID, e.Boundary, outcomeWords(e.Outcome), outcomeClass(e.Outcome), e.Timestamp})
		}
	}
	return out, nil
}

// spare leaves out of each step what stands among the facts word for word.
func (s *crossingView) spare() {
	known := map[string]bool{s.Agent: true, s.Boundary: true}
	for _, f := range s.Facts {
		known[f.Text] = true
	}
	if s.Review != nil {
		known[s.Review.Session], known[s.Review.ID], known[s.Review.Policy], known[s.Review.Principal] = true, true, true, true
	}
	for i := range s.Steps {
		s.Steps[i].Rows = slices.DeleteFunc(s.Steps[i].Rows, func(r row) bool { return known[r.Text] && r.Name != "why" })
	}
}

func tellLeaf(l ledger.Stored) (step, *ledger.Entry, error) {
	st := step{At: l.At, Leaf: l.Seq}
	switch l.Kind {
	case ledger.KindBegin:
		b, err := ledger.ParseBegin(l.Record)
		if err != nil {
			return st, nil, err
		}
		st.At, st.What = b.Timestamp, "begin"
		st.Rows = rows("reserved", story.Draws(b.Draws), "review", b.Review, "decided by", b.Reviewer, "parent", b.Parent, "asked", asked(l, b))
		return st, nil, nil
	case ledger.KindEvent:
		e, err := ledger.ParseEvent(l.Record)
		if err != nil {
			return st, nil, err
		}
		st.At, st.What = e.Timestamp, strings.ReplaceAll(e.Name, "_", " ")
		st.Rows = append(rows("in words", story.Event(e), "who", e.Who, "about", e.Subject), data(e.Data)...)
		if story.Escape(e) {
			st.Class = "dark"
		}
		return st, nil, nil
	}
	e, err := ledger.ParseEntry(l.Record)
	if err != nil {
		return st, nil, err
	}
	st.At, st.What, st.Class = e.CreatedAt, "entry: "+outcomeWords(e.Outcome), outcomeClass(e.Outcome)
	st.Rows = rows("in words", story.Exchange(e, l.Part), "why", e.Why, "rule", e.Rule, "kind", string(e.ErrorKind), "used", story.Uses(e.Uses), "replay of", e.ReplayOf, "redacted", strings.Join(e.Applied, ", "))
	return st, e, nil
}

// asked is what a begin keeps of its request.
func asked(l ledger.Stored, b *ledger.Begin) string {
	text, err := ledger.PartContent(l.Part)
	switch {
	case err == nil:
		return string(text)
	case b.PartHash != "":
		return "erased"
	}
	return ""
}

// rows pairs names with texts, and leaves empty ones out.
func rows(pairs ...string) []row {
	var out []row
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, row{Name: pairs[i], Text: pairs[i+1]})
		}
	}
	return out
}

// data is what an event says beside its name, without what only a program
// checks, in the order of names.
func data(raw json.RawMessage) []row {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	var out []row
	for name, v := range m {
		if name == "statement" || name == "signature" || len(out) == 32 {
			continue
		}
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		if s == "" || s == "null" {
			continue
		}
		out = append(out, row{strings.ReplaceAll(excerpt.Of(name, 40), "_", " "), excerpt.Of(s, 300), strings.HasSuffix(name, "hash") || name == "policy"})
	}
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// facts are what stands beside the gates.
func facts(e *ledger.Entry, r *review.Review) []row {
	who := e.Agent
	for _, p := range [][2]string{{", kind ", e.AgentKind}, {", session ", e.Session}, {", asked by ", e.Caller}} {
		if p[1] != "" {
			who += p[0] + p[1]
		}
	}
	out := rows("agent", who, "its host", story.Host(e.Sub), "roles", strings.Join(e.Roles, ", "), "risk", e.Risk, "why", e.Why, "parent", e.Parent)
	mono := []string{"crossing", e.ID, "correlation", e.Correlation, "key", story.Text(e.Key), "exact hash", e.ExactHash, "policy", e.Policy}
	if r != nil {
		mono = append(mono, "preview hash", r.PreviewHash)
	}
	if e.ResultHash != nil {
		mono = append(mono, "result hash", *e.ResultHash)
	}
	for _, m := range rows(mono...) {
		out = append(out, row{m.Name, m.Text, true})
	}
	return out
}

// result is what came back, redacted, as far as it was kept.
func result(e *ledger.Entry, part []byte) string {
	if e.Result != nil {
		return *e.Result
	}
	if b, err := ledger.PartContent(part); err == nil {
		return string(b)
	}
	return ""
}

func outcomeWords(o ledger.Outcome) string {
	switch o {
	case ledger.HeldExpired:
		return "held, and the time ran out"
	case ledger.Unknown:
		return "unknown: a crash came between"
	case ledger.Halted:
		return "cut by a halt"
	case ledger.Withheld:
		return "done, and the output withheld"
	}
	return string(o)
}

// outcomeClass is how an outcome's lamp burns.
func outcomeClass(o ledger.Outcome) string {
	class, _ := burns(story.Came(o))
	return class
}

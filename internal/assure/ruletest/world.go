package ruletest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
)

// world is what cases are asked in: the rules, and what has happened.
type world struct {
	doc     *document
	set     *constitution.Set
	history *history.History
	filter  *goalrule.Filter
	n       int
}

func newWorld(ctx context.Context, set *constitution.Set, doc *document) (*world, error) {
	w := &world{doc: doc, set: set, history: history.New(maxHistory + maxCases)}
	var err error
	if w.filter, err = goalrule.New(goalrule.Defaults()); err != nil {
		return nil, err
	}
	past := slices.Clone(doc.history)
	slices.SortStableFunc(past, func(a, b entry) int { return cmp.Compare(b.ago, a.ago) })
	unready, _ := w.history.Use(doc.now, set.Pasts())
	for _, p := range unready {
		w.history.Ready(p.ID)
	}
	for i := range past {
		e := &past[i]
		f, err := e.facts.whole(doc.now.Add(-e.ago))
		if err != nil {
			return nil, doc.wrong(e.line, "the payload is malformed: "+said(err), "what K1 refuses never began")
		}
		w.ticket(ctx, &f).Confirm(f.Now)
	}
	return w, nil
}

// ticket is a crossing that is about to be judged.
func (w *world) ticket(ctx context.Context, f *constitution.Facts) *history.Ticket {
	w.n++
	f.Sights = w.set.See(ctx, *f)
	return w.history.Add(f.Now, f.Who.Tenant, fmt.Sprint("crossing ", w.n), f.Sights)
}

// whole are the facts with payload and output, parsed as K1 and K8 do.
func (f *facts) whole(now time.Time) (constitution.Facts, error) {
	out, err := f.facts(now)
	if err != nil {
		return out, err
	}
	text := f.payload
	if text == nil {
		text = []byte("{}")
	}
	doc, err := payload.Parse(text)
	if err != nil {
		return out, err
	}
	out.Payload, out.PayloadSize = doc.Value(), len(text)
	if f.output == nil {
		return out, nil
	}
	if doc, err = payload.Parse(f.output); err != nil {
		return out, err
	}
	out.Output, out.OutputSize = doc.Value(), len(f.output)
	return out, nil
}

func said(err error) string { return excerpt.Of(err.Error(), 200) }

// ask asks one case.
func (w *world) ask(ctx context.Context, q *question) (got, error) {
	f, err := q.facts.whole(w.doc.now.Add(q.at))
	if err != nil {
		return got{verdict: malformed, says: []string{said(err)}}, nil
	}
	ticket := w.ticket(ctx, &f)
	f.History = ticket
	out := got{verdict: allow}
	out.findings(w.set.Judge(ctx, q.on, f))
	if f.Boundary == goalrule.Boundary && q.on == constitution.OnRequest {
		if err := w.goals(ctx, q, f, &out); err != nil {
			ticket.Drop()
			return got{verdict: malformed, says: []string{said(err)}}, nil
		}
	}
	if w.doc.sequence && out.verdict == allow && q.on == constitution.OnRequest {
		ticket.Confirm(f.Now)
	} else {
		ticket.Drop()
	}
	return out, nil
}

// goals asks the SafetyFilter.
func (w *world) goals(ctx context.Context, q *question, f constitution.Facts, out *got) error {
	s, err := goalrule.Read(f.Payload)
	if err != nil {
		return err
	}
	who := goalrule.Caller{Facts: f, MayBeCritical: slices.Contains(q.roles, goalrule.MayBeCritical)}
	for _, v := range w.filter.Check(ctx, s, who, w.set, func() time.Time { return f.Now }) {
		for i := range v.Violations {
			o := &v.Violations[i]
			switch {
			case o.Refuses():
				out.verdict = deny
			case o.Holds() && out.verdict == allow:
				out.verdict = hold
			}
			out.rules, out.says = append(out.rules, o.Rule), append(out.says, o.Message)
		}
	}
	return nil
}

// findings adds what rules said, and keeps the worst verdict.
func (g *got) findings(list []constitution.Finding) {
	for _, f := range list {
		switch {
		case f.Verdict == holdfast.Deny:
			g.verdict = deny
		case f.Verdict == holdfast.Hold && g.verdict == allow:
			g.verdict = hold
		}
		g.rules, g.says = append(g.rules, f.Rule), append(g.says, f.Message)
	}
}

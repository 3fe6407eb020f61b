package main

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/ledger"
)

// errNotKept says that a record does not have what was asked.
var errNotKept = errors.New("the ledger keeps no payload of it")

// errMasked says that it has it with something masked.
var errMasked = errors.New("the payload that the ledger keeps is masked")

// recordedFacts are what a crossing that began was judged by, as far as its begin
// has it. The error is errNotKept or errMasked, of the payload alone; a masked
// payload is given as it stands.
func recordedFacts(b *ledger.Begin, part []byte) (constitution.Facts, error) {
	agent, sub := b.Who()
	f := constitution.Facts{Boundary: b.Boundary, Now: b.Timestamp, Who: holdfast.Identity{Tenant: b.TenantID, Principal: b.Caller, Roles: b.Roles,
		Agent: agent, Sub: sub, Kind: b.AgentKind, Session: b.Session, Intent: b.Intent, Chain: b.Chain, Tier: b.Tier}, Fetched: recordedFetched(b.Fetched)}
	if !b.Clock.IsZero() {
		f.Now = b.Clock
	}
	if b.Risk != "" && f.Risk.UnmarshalText([]byte(b.Risk)) != nil || b.Level != "" && f.Level.UnmarshalText([]byte(b.Level)) != nil {
		return f, errNotKept
	}
	text, err := ledger.PartContent(part)
	if err != nil {
		return f, errNotKept
	}
	doc, err := payload.Parse(text)
	if err != nil {
		return f, errNotKept
	}
	f.Payload, f.PayloadSize = doc.Value(), len(text)
	if doc.Key() != b.Key && doc.Exact() != b.ExactHash {
		return f, errMasked
	}
	return f, nil
}

// errFactNotKept says that a fact which a rule names was not recorded.
var errFactNotKept = errors.New("it was not recorded")

// recordedFetched are the facts that a record has.
func recordedFetched(list []ledger.Fetched) map[string]constitution.Fetched {
	out := map[string]constitution.Fetched{}
	for _, r := range list {
		f := constitution.Fetched{Text: []byte(r.Text), Err: errFactNotKept}
		switch doc, err := payload.ParseLimited(f.Text, constitution.MaxFact, constitution.MaxFactDepth); {
		case r.Why != "":
			f.Err = errors.New(r.Why)
		case r.Text != "" && err == nil:
			f.Value, f.Err = doc.Value(), nil
		}
		out[r.Name] = f
	}
	return out
}

// withFacts adds those that the rules name and that were not recorded.
func withFacts(f *constitution.Facts, names []string) {
	for _, name := range names {
		if _, there := f.Fetched[name]; !there {
			f.Fetched[name] = constitution.Fetched{Err: errFactNotKept}
		}
	}
}

// loadPast tells a history what the ledger has of the windows before now.
func (a *app) loadPast(s kernel.Store, h *history.History, pasts []*constitution.Past, now time.Time) error {
	longest := time.Duration(0)
	for _, p := range pasts {
		longest = max(longest, p.Window)
	}
	size, err := a.size(s)
	if err != nil {
		return err
	}
	from, err := a.since(s, size, now.Add(-longest-history.Slack))
	if err != nil {
		return err
	}
	return a.leaves(s, a.tenant, from, size, func(l ledger.Stored) error {
		switch l.Kind {
		case ledger.KindBegin:
			if b, err := ledger.ParseBegin(l.Record); err == nil {
				a.recallInto(h, pasts, b, l.Part)
			}
		case ledger.KindEntry:
			if e, err := ledger.ParseEntry(l.Record); err == nil && e.Unstarted {
				h.Remove(e.TenantID, e.ID, e.Timestamp)
			}
		}
		return nil
	})
}

// recallInto tells a history of one crossing.
func (a *app) recallInto(h *history.History, pasts []*constitution.Past, b *ledger.Begin, part []byte) {
	f, unread := recordedFacts(b, part)
	gap := gapOf(f.Payload, unread)
	for _, p := range pasts {
		if !p.Match(b.Boundary) {
			continue
		}
		seen, err := p.See(a.ctx, f)
		h.Load(p.ID, b.TenantID, b.ID, b.Timestamp, seen, errors.Join(gap.of(p.Needs()), err))
	}
}

// gap is what is not known of a payload.
type gap struct {
	err     error    // why; nil where all is known
	members []string // those that may be masked
	whole   bool     // nobody knows which are
}

// gapOf says what is not known of a payload that recordedFacts returned with that
// error.
func gapOf(doc any, unread error) gap {
	g := gap{err: unread}
	m, object := doc.(map[string]any)
	if unread == nil {
		return g
	}
	for name, v := range m {
		g.whole = g.whole || mask.IsIn(name)
		if hasMask(v) {
			g.members = append(g.members, name)
		}
	}
	g.whole = g.whole || !object || len(g.members) == 0 || !errors.Is(unread, errMasked)
	return g
}

// of is why what reads so much of the payload cannot be told.
func (g gap) of(n constitution.Needs) error {
	if g.err == nil || !n.Any(g.members, g.whole) {
		return nil
	}
	return g.err
}

// hasMask says whether something in a value may be a mask.
func hasMask(v any) bool {
	switch v := v.(type) {
	case string:
		return mask.IsIn(v)
	case []any:
		return slices.ContainsFunc(v, hasMask)
	case map[string]any:
		for name, e := range v {
			if mask.IsIn(name) || hasMask(e) {
				return true
			}
		}
	}
	return false
}

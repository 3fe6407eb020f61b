package main

import (
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/constitution"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/kernel"
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
	f := constitution.Facts{Boundary: b.Boundary, Now: b.Timestamp, Who: holdfast.Identity{Tenant: b.TenantID, Principal: b.Caller, Roles: b.Roles,
		Agent: b.Agent, Kind: b.AgentKind, Session: b.Session, Intent: b.Intent, Chain: b.Chain, Tier: b.Tier}}
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
		if l.Kind == ledger.KindBegin {
			if b, err := ledger.ParseBegin(l.Record); err == nil {
				a.recallInto(h, pasts, b, l.Part)
			}
		}
		return nil
	})
}

// recallInto tells a history of one crossing.
func (a *app) recallInto(h *history.History, pasts []*constitution.Past, b *ledger.Begin, part []byte) {
	f, unread := recordedFacts(b, part)
	for _, p := range pasts {
		if !p.Match(b.Boundary) {
			continue
		}
		seen, err := p.See(a.ctx, f)
		h.Load(p.ID, b.TenantID, b.ID, b.Timestamp, seen, errors.Join(unread, err))
	}
}

package egress

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/substitute"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// mapped is what was replaced in one request to a model, and what is restored in its answer.
type mapped struct {
	session *mapping.Session
	// placeholders are those that the session had when the request left.
	placeholders *mapping.Snapshot
	// kinds counts what was replaced, by kind.
	kinds        map[string]int
	uninspected  int
	notInspected []string
	documents    dialect.Documents

	mu     sync.Mutex
	counts mapping.Counts // guarded by mu
}

// replaceTexts puts placeholders in place of what must not leave in the texts of a request (D13a). It returns
// nil for a row that does something else.
func (x *exchange) replaceTexts(format dialect.Dialect) (*mapped, *holdfast.Error) {
	d := x.domain
	if d.Request != domain.Placeholder {
		return nil, nil
	}
	x.body.masks = nil
	session, err := x.findSession()
	if err != nil {
		return nil, cleaner.AsRedactionError(err)
	}
	m := &mapped{session: session, kinds: map[string]int{}}
	if len(x.body.raw) == 0 {
		m.placeholders = m.session.Snapshot()
		return m, nil
	}
	engine := x.p.cfg.Engine(d)
	if engine == nil {
		return nil, cleaner.NewEngineError()
	}
	if !x.body.share.Grow(4 * int64(len(x.body.raw))) {
		return nil, memory.Busy()
	}
	var r *substitute.Request
	finder := x.p.out.cleaners.FindDetector(d)
	err = x.p.out.cleaners.RunSearch(finder, len(x.body.raw), func() (err error) {
		r, err = substitute.Replace(engine, finder, m.session, format, x.body.raw, binariesOf(d))
		return detector.AtPlace(err, "the texts of the request", cleaner.DetectorOf(d))
	})
	known, ok := errors.AsType[*holdfast.Error](err)
	switch {
	case ok && known.Kind == holdfast.KindDomainBlocked:
		return nil, known
	case ok && known.Kind != holdfast.KindRedaction:
		return nil, toModelError(err)
	case err != nil:
		return nil, cleaner.AsRedactionError(err)
	}
	m.placeholders, m.kinds = r.Placeholders, r.Kinds
	m.uninspected, m.notInspected, m.documents = r.Uninspected, r.NotInspected, r.Documents
	x.body.raw, x.body.findings = r.Body, r.Found
	return m, nil
}

// binariesOf returns what a row says of pictures, documents and sound.
func binariesOf(d *domain.Domain) substitute.Binaries {
	switch d.Parts {
	case domain.AllowParts:
		return substitute.AllowBinaries
	case domain.UnsearchedParts:
		return substitute.UnsearchedBinaries
	}
	return substitute.RefuseBinaries
}

// findSession returns the mapping of who asks at the row: tenant, agent and session are those of the token. A
// request without a valid token gets one of its own; the kernel refuses it.
func (x *exchange) findSession() (*mapping.Session, error) {
	who, _, err := x.p.cfg.Kernel.Asker(x.r.Context(), x.s.tokenOf(x.who))
	if err != nil {
		return mapping.NewSessions(nil, x.p.now).Find(mapping.Owner{}), nil
	}
	owner := mapping.Owner{Tenant: who.Tenant, Agent: who.Agent, Session: who.Session, Row: x.domain.Name}
	session := x.p.mappings.Find(owner)
	return session, session.Load(x.r.Context())
}

// saveValues keeps what is new in the session: before the request leaves, and what the answer brought.
func (m *model) saveValues(ctx context.Context) error {
	if m == nil || m.mapped == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	return m.mapped.session.Save(ctx)
}

// saveTime bounds Session.Save.
const saveTime = 10 * time.Second

// countPlaceholders returns what was replaced and restored, for the record; nil for nothing.
func (m *model) countPlaceholders() *holdfast.Placeholders {
	if m == nil || m.mapped == nil {
		return nil
	}
	p := m.mapped.sumCounts()
	if p.Replaced == 0 && p.Restored == 0 && p.Altered == 0 && p.Uninspected == 0 {
		return nil
	}
	return p
}

// sumCounts returns what was replaced and restored so far.
func (m *mapped) sumCounts() *holdfast.Placeholders {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &holdfast.Placeholders{Kinds: slices.Sorted(maps.Keys(m.kinds)), Restored: m.counts.Restored,
		Altered: m.counts.Altered, Uninspected: m.uninspected, NotInspected: m.notInspected}
	for _, n := range m.kinds {
		p.Replaced += n
	}
	return p
}

func (m *mapped) addCounts(n mapping.Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.Add(n)
}

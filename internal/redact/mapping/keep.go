package mapping

import (
	"context"
	"slices"
	"time"
)

// Keeper keeps values where they survive a restart, sealed, and for less than a day.
type Keeper interface {
	// LoadBatches returns what is kept of one session of an agent, oldest first.
	LoadBatches(ctx context.Context, tenant, agent, session string) ([]Batch, error)
	// SaveBatch keeps values of an owner, and removes those batches of the same owner that drop names. It returns
	// the IDs of what it made of b. b.Saved is the time from which they are kept, if it is not zero.
	SaveBatch(ctx context.Context, o Owner, b Batch, drop []string) ([]string, error)
}

// Batch is values that were kept in one step.
type Batch struct {
	ID    string    `json:"-"`
	Row   string    `json:"-"`
	Saved time.Time `json:"-"`

	Values []Value  `json:"values,omitempty"`
	Signed [][]byte `json:"signed,omitempty"` // SHA-256 of signed parts
}

// Value is one value as it is kept. One without a value says that the placeholder means nothing any more.
type Value struct {
	Rule        string `json:"rule"`
	Value       []byte `json:"value,omitempty"`
	Placeholder string `json:"placeholder"`
	Kept        int    `json:"kept,omitempty"`
	Restored    bool   `json:"restored,omitempty"`
}

// batchSize is a batch of values that the keeper has.
type batchSize struct {
	ids          []string
	count, bytes int
	saved        time.Time
	ended        []string // placeholders that mean nothing any more
}

// renewAfter is the age from which a value that is sent again is kept for another day.
const renewAfter = 12 * time.Hour

// noteUnsaved notes that the keeper must get an entry. mu must be held.
func (s *Session) noteUnsaved(e *entry) { e.unsaved, s.unsaved = true, true }

// maxEnded bounds how many placeholders that mean nothing any more wait for the keeper.
const maxEnded = 1024

// noteEnded notes that the keeper must know that an entry's placeholder means nothing any more. mu must be held.
func (s *Session) noteEnded(e *entry) {
	if len(s.ended) < maxEnded {
		s.ended, s.unsaved = append(s.ended, e.placeholder), true
	}
}

// Load reads what the keeper has of the owner's session, once. It is called before Begin.
func (s *Session) Load(ctx context.Context) error {
	if err := s.group.loadValues(ctx); err != nil {
		return err
	}
	return s.group.loadSigned(ctx)
}

// loadValues reads the values of all rows.
func (g *group) loadValues(ctx context.Context) error {
	g.load.Lock()
	defer g.load.Unlock()
	if g.loaded || g.all.keeper == nil {
		return nil
	}
	list, err := g.all.keeper.LoadBatches(ctx, g.key.tenant, g.key.agent, g.key.session)
	if err != nil {
		return err
	}
	for _, b := range list {
		if len(b.Values) > 0 {
			g.findRow(Owner{g.key.tenant, g.key.agent, g.key.session, b.Row}).addBatch(b)
		}
	}
	g.loaded = true
	return nil
}

// addBatch adds values that were kept.
func (s *Session) addBatch(b Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := batchSize{ids: []string{b.ID}, count: len(b.Values), saved: b.Saved}
	s.loaded = true
	for _, v := range b.Values {
		if len(v.Value) == 0 {
			if e := s.byPlaceholder[v.Placeholder]; e != nil {
				s.forgetEntry(e)
			}
			s.noteReal(v.Placeholder)
			size.ended = append(size.ended, v.Placeholder)
			continue
		}
		size.bytes += len(v.Value)
		e := &entry{rule: v.Rule, value: string(v.Value), placeholder: v.Placeholder, kept: v.Kept,
			restored: v.Restored, saved: b.Saved}
		if have := s.byValue[e.value]; have != nil {
			s.forgetEntry(have) // an older state of it
		}
		if s.byPlaceholder[e.placeholder] == nil {
			s.addEntry(e)
		}
	}
	s.batches = append(s.batches, size)
}

// loadSigned reads the agent's signed parts, which are kept without a session.
func (g *group) loadSigned(ctx context.Context) error {
	p := g.signed
	p.load.Lock()
	defer p.load.Unlock()
	if p.loaded || g.all.keeper == nil {
		return nil
	}
	list, err := g.all.keeper.LoadBatches(ctx, g.key.tenant, g.key.agent, "")
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range list {
		b.Signed = slices.DeleteFunc(b.Signed, func(sum []byte) bool { return len(sum) != len(signedKey{}.sum) })
		for _, sum := range b.Signed {
			p.addPart(signedKey{b.Row, [32]byte(sum)}, b.Saved)
		}
		if len(b.Signed) > 0 {
			p.batches = append(p.batches, signedBatch{row: b.Row, ids: []string{b.ID}, saved: b.Saved, sums: b.Signed})
		}
	}
	p.loaded = true
	return nil
}

// Save has the keeper keep what is new in the session. It is called before a request leaves, and after an answer.
// Without anything new it does nothing.
func (s *Session) Save(ctx context.Context) error {
	if s.group.all.keeper == nil {
		return nil
	}
	s.group.save.Lock()
	defer s.group.save.Unlock()
	if err := s.saveValues(ctx); err != nil {
		return err
	}
	if err := s.mergeValues(ctx); err != nil {
		return err
	}
	return s.saveSigned(ctx)
}

// saveValues saves the entries that are unsaved. save must be held.
func (s *Session) saveValues(ctx context.Context) error {
	saved := s.group.all.now()
	list, batch, drop := s.takeUnsaved(saved)
	if len(batch.Values) == 0 {
		return nil
	}
	ids, err := s.group.all.keeper.SaveBatch(ctx, s.owner, batch, drop)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		for _, e := range list {
			s.noteUnsaved(e)
		}
		return err
	}
	size := batchSize{ids: ids, count: len(list), saved: saved}
	for _, e := range list {
		size.bytes += len(e.value)
	}
	for _, v := range batch.Values {
		if len(v.Value) == 0 {
			size.ended = append(size.ended, v.Placeholder)
		}
	}
	s.batches = append(s.batches, size)
	return nil
}

// takeUnsaved returns the entries that are unsaved, as a batch, and the batches for which there is no place.
func (s *Session) takeUnsaved(now time.Time) (list []*entry, b Batch, drop []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unsaved || s.forgotten {
		return nil, b, nil
	}
	s.unsaved = false
	for _, p := range s.ended {
		b.Values = append(b.Values, Value{Placeholder: p})
	}
	s.ended = nil
	bytes := 0
	for _, e := range s.order {
		if e.unsaved && !e.oneWay {
			e.unsaved, e.saved = false, now
			list, bytes = append(list, e), bytes+len(e.value)
			b.Values = append(b.Values, Value{e.rule, []byte(e.value), e.placeholder, e.kept, e.restored})
		}
	}
	count := len(list)
	for _, have := range slices.Backward(s.batches) {
		if bytes, count = bytes+have.bytes, count+have.count; bytes > maxBytes || count > maxEntries {
			drop = append(drop, have.ids...)
		}
	}
	s.batches = slices.DeleteFunc(s.batches, func(have batchSize) bool {
		return len(have.ids) > 0 && slices.Contains(drop, have.ids[0])
	})
	return list, b, drop
}

// saveSigned saves the signed parts of the session's row that are unsaved. save must be held.
func (s *Session) saveSigned(ctx context.Context) error {
	p := s.group.signed
	p.mu.Lock()
	var b Batch
	var rest []signedKey
	for _, k := range p.unsaved {
		if k.row == s.owner.Row {
			b.Signed = append(b.Signed, k.sum[:])
		} else {
			rest = append(rest, k)
		}
	}
	taken := p.unsaved
	p.unsaved = rest
	p.mu.Unlock()
	if len(b.Signed) == 0 {
		return nil
	}
	o := s.owner
	o.Session = ""
	ids, err := s.group.all.keeper.SaveBatch(ctx, o, b, nil)
	p.mu.Lock()
	if err != nil {
		p.unsaved = taken[:min(len(taken), maxSigned)]
	} else {
		p.batches = append(p.batches, signedBatch{s.owner.Row, ids, s.group.all.now(), b.Signed})
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return s.mergeSigned(ctx, o)
}

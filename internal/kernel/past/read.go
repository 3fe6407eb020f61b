package past

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/ledger"
)

const (
	// batch is the number of leaves that are read in one view.
	batch = 2000
	// retryAfter is the time after a failure until the ledger is read again.
	retryAfter = time.Second
	// poll is the time between two looks whether what was evaluated by the rules before has
	// ended.
	poll = 5 * time.Millisecond
)

// errSwapped says that the rules changed while the ledger was read.
var errSwapped = errors.New("the rules changed")

// Follow reads the ledger for the active past functions, now and whenever they change, until
// ctx ends.
func (p *Keeper) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		again := (<-chan time.Time)(nil)
		if err := p.Read(ctx); err != nil && ctx.Err() == nil {
			p.src.Log.Error("the ledger could not be read for rules that ask the past; they fail until it can",
				"err", err)
			again = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-again:
		}
	}
}

// Read reads the ledger for those active past functions that are not ready, and returns when
// all are. Until then the rules fail. What begins meanwhile is counted once.
func (p *Keeper) Read(ctx context.Context) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	for {
		p.mu.Lock()
		again := p.again
		p.mu.Unlock()
		if again {
			p.UseActive()
		}
		p.mu.Lock()
		r := &reading{p: p, functions: slices.Clone(p.unready), mark: p.mark, round: p.round}
		p.mu.Unlock()
		if len(r.functions) == 0 {
			return nil
		}
		err := r.all(ctx)
		switch {
		case errors.Is(err, errSwapped):
		case err != nil:
			if ctx.Err() == nil {
				p.mu.Lock()
				p.failed = p.src.Mask(err.Error())
				p.mu.Unlock()
			}
			return err
		default:
			r.logUnreadable()
		}
	}
}

// reading is one reading of the ledger for past functions.
type reading struct {
	p         *Keeper
	functions []*constitution.Past
	names     []string
	mark      uint64
	round     int
}

// all reads every tenant. It begins when nothing that was evaluated by the rules before can
// still begin, and sets the functions ready when everything that began before its end is
// confirmed: what is confirmed later would be counted twice.
func (r *reading) all(ctx context.Context) error {
	start := time.Now()
	if err := r.settled(ctx, r.mark); err != nil {
		return err
	}
	var longest time.Duration
	for _, f := range r.functions {
		longest = max(longest, f.Window)
		r.names = append(r.names, r.p.markName(f))
	}
	since := r.p.src.Now().Add(-longest - history.Slack)
	type stretch struct {
		tenant   string
		from, to int64
	}
	var todo []stretch
	var of int64
	err := r.p.src.View(ctx, func(tx Reader) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if h.Tenant == ledger.CheckpointsTenant {
				continue
			}
			from, err := FirstSince(tx, h.Tenant, h.Size, since)
			if err != nil {
				return err
			}
			todo = append(todo, stretch{h.Tenant, from, h.Size})
			of += h.Size - from
		}
		return nil
	})
	if err != nil {
		return err
	}
	if of > 0 {
		r.p.src.Log.Info("reading the ledger for rules that ask the past; they fail until it is read",
			"functions", len(r.functions), "leaves", of)
	}
	r.p.mu.Lock()
	r.p.started = time.Now()
	r.p.mu.Unlock()
	var done int64
	for _, s := range todo {
		for from := s.from; from < s.to; from += batch {
			if !r.isActive(done, of) {
				return errSwapped
			}
			to := min(s.to, from+batch)
			if err := r.p.src.View(ctx, func(tx Reader) error {
				return tx.Leaves(s.tenant, from, to, func(l ledger.Stored) error {
					r.leaf(ctx, &l)
					return ctx.Err()
				})
			}); err != nil {
				return err
			}
			done += to - from
		}
	}
	if err := r.settled(ctx, r.p.kept.Mark()); err != nil {
		return err
	}
	if !r.ready() {
		return errSwapped
	}
	if of > 0 {
		r.p.src.Log.Info("the ledger was read for rules that ask the past", "functions", len(r.functions),
			"leaves", of, "took", time.Since(start).String())
	}
	return nil
}

// settled waits until what was evaluated up to a mark has begun or was dropped.
func (r *reading) settled(ctx context.Context, mark uint64) error {
	for !r.p.kept.Settled(mark) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
	return ctx.Err()
}

// isActive reports whether the functions are still the active ones, and keeps its progress.
func (r *reading) isActive(done, of int64) bool {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	if r.p.round != r.round {
		return false
	}
	r.p.read, r.p.of, r.p.failed = done, of, ""
	return true
}

func (r *reading) ready() bool {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	if r.p.round != r.round {
		return false
	}
	for _, f := range r.functions {
		r.p.kept.Ready(f.ID)
	}
	r.p.unready, r.p.failed = nil, ""
	return true
}

// logUnreadable logs what has no answer although the ledger was read.
func (r *reading) logUnreadable() {
	for _, s := range r.p.kept.Status(r.p.src.Now()) {
		for tenant, until := range s.Unreadable {
			r.p.src.Log.Warn("a rule that asks the past fails: a crossing within its window cannot be read",
				"past", s.Past.Describe(), "tenant", tenant, "until", until.UTC().Format(time.RFC3339))
		}
	}
}

// leaf adds a leaf to the history.
func (r *reading) leaf(ctx context.Context, l *ledger.Stored) {
	switch {
	case l.Kind == ledger.KindBegin:
		r.begin(ctx, l)
	case l.Kind == ledger.KindEntry && bytes.Contains(l.Record, []byte(`,"unstarted":true`)):
		if e, err := ledger.ParseEntry(l.Record); err == nil && e.Unstarted {
			agent, _ := e.Who()
			r.p.kept.Remove(l.Tenant, Occasion{e.Timestamp, agent, e.Session, e.ExactHash}.name(), e.Timestamp)
		}
	}
}

func (r *reading) begin(ctx context.Context, l *ledger.Stored) {
	b, err := ledger.ParseBegin(l.Record)
	if err != nil {
		for _, f := range r.functions {
			r.p.kept.Load(f.ID, l.Tenant, l.Crossing, l.At, constitution.Seen{}, err)
		}
		return
	}
	agent, _ := b.Who()
	name := Occasion{b.Timestamp, agent, b.Session, b.ExactHash}.name()
	var was *recalled
	for i, f := range r.functions {
		if !f.Match(b.Boundary) {
			continue
		}
		at := slices.IndexFunc(b.Past, func(m ledger.Mark) bool { return m.Past == r.names[i] })
		if at >= 0 {
			seen, err := parseMark(&b.Past[at])
			r.p.kept.Load(f.ID, l.Tenant, name, b.Timestamp, seen, err)
			continue
		}
		if was == nil {
			was = r.recall(b, l.Part)
		}
		seen, err := was.see(ctx, f)
		r.p.kept.Load(f.ID, l.Tenant, name, b.Timestamp, r.p.sealSeen(seen), err)
	}
}

// recalled is what a crossing was evaluated by, as far as its begin has it.
type recalled struct {
	constitution.Facts
	// unread is why the payload is not what it was. floating is the payload with every whole
	// number as a double, if it is unknown which of them were: the canonical form writes 100.0
	// as 100.
	unread   error
	floating any
}

// see returns what a past function sees of it; an error if that depends on what is unknown.
func (w *recalled) see(ctx context.Context, p *constitution.Past) (constitution.Seen, error) {
	if p.Reads("payload_size") {
		return constitution.Seen{}, errors.New("the size of its payload is not kept")
	}
	if !p.Reads("args") {
		return p.See(ctx, w.Facts)
	}
	if w.unread != nil {
		return constitution.Seen{}, w.unread
	}
	seen, err := p.See(ctx, w.Facts)
	if err != nil || w.floating == nil {
		return seen, err
	}
	other := w.Facts
	other.Payload = w.floating
	if also, err := p.See(ctx, other); err != nil || also != seen {
		return constitution.Seen{}, errors.New("its payload is not kept to the letter")
	}
	return seen, nil
}

// recall reads what a crossing was evaluated by.
func (r *reading) recall(b *ledger.Begin, part []byte) *recalled {
	agent, sub := b.Who()
	w := &recalled{Facts: constitution.Facts{Boundary: b.Boundary, Now: b.Timestamp,
		Who: holdfast.Identity{Tenant: b.TenantID, Principal: b.Caller, Roles: b.Roles,
			Agent: agent, Sub: sub, Kind: b.AgentKind, Session: b.Session, Intent: b.Intent, Chain: b.Chain, Tier: b.Tier}}}
	if !b.Clock.IsZero() {
		w.Now = b.Clock
	}
	w.Operation = r.p.src.Operation(b.Boundary)
	if w.unread = errors.Join(w.Risk.UnmarshalText([]byte(b.Risk)),
		w.Level.UnmarshalText([]byte(b.Level))); w.unread != nil {
		return w
	}
	text, err := ledger.PartContent(part)
	if err != nil {
		w.unread = errors.New("its payload is not kept")
		return w
	}
	doc, err := payload.Parse(text)
	switch {
	case err != nil || doc.Key() != b.Key:
		w.unread = errors.New("its payload is masked")
		return w
	case doc.Exact() != b.ExactHash:
		if w.floating = toFloating(doc.Value()); w.floating == nil {
			w.unread = errors.New("its payload is not kept to the letter")
		}
	}
	w.Payload = doc.Value()
	return w
}

// toFloating returns a tree with every whole number as a double; nil if a number has so many
// digits that the canonical form may have rounded it.
func toFloating(v any) any {
	switch v := v.(type) {
	case json.Number:
		s := string(v)
		if len(s) > 15 {
			return nil
		}
		if !strings.ContainsAny(s, ".eE") {
			s += ".0"
		}
		return json.Number(s)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if out[k] = toFloating(e); out[k] == nil && e != nil {
				return nil
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i] = toFloating(e); out[i] == nil && e != nil {
				return nil
			}
		}
		return out
	}
	return v
}

// FirstSince returns the place of a leaf before which every leaf is older than since. Leaves are
// nearly in the order of their times: one that was sealed a moment before another may follow
// it, so that a minute is added.
func FirstSince(tx Reader, tenant string, size int64, since time.Time) (int64, error) {
	since = since.Add(-time.Minute)
	var failed error
	at := sort.Search(int(size), func(i int) bool {
		l, err := tx.Leaf(tenant, int64(i))
		if err != nil {
			failed = err
			return true
		}
		return !l.At.Before(since)
	})
	return int64(at), failed
}

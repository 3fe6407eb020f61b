package anomaly

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/past"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

const (
	// learnFrom is how far back agents' past is learned.
	learnFrom = 7 * 24 * time.Hour
	// relived is how many leaves of the last hour are gone through again at the
	// start, of each tenant, the newest; it takes a fraction of a second.
	relived = 20_000
	// learnBatch is how many leaves are read in one view.
	learnBatch = 2000
	// learnAgain is how long after a failure the ledger is read again.
	learnAgain = 10 * time.Second
)

// stretch is a part of a tenant's ledger.
type stretch struct {
	tenant   string
	from, to int64
}

// moment is something of the last hour.
type moment struct {
	at     time.Time
	seen   *watch.Seen
	told   *watch.Finding
	agent  string // whom a person let go on
	tenant string
}

// relive goes through the last hour again, before anything crosses, so that a restart
// forgets neither what was done in it nor what people were told; what was found and
// never answered, for the process ended, is found anew. It returns what is left to be
// learned. What cannot be read is learned later, or never, which status says.
func (w *Watcher) relive(ctx context.Context) []stretch {
	now := time.Now()
	var before []stretch
	var all []moment
	err := w.Store.View(ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if h.Tenant == ledger.CheckpointsTenant {
				continue
			}
			week, err := past.FirstSince(tx, h.Tenant, h.Size, now.Add(-learnFrom))
			if err != nil {
				return err
			}
			last, err := past.FirstSince(tx, h.Tenant, h.Size, now.Add(-time.Hour))
			if err != nil {
				return err
			}
			last = max(last, h.Size-relived)
			before = append(before, stretch{h.Tenant, week, last})
			if err := tx.Leaves(h.Tenant, last, h.Size, func(l ledger.Stored) error {
				if m, ok := w.moment(&l); ok {
					all = append(all, m)
				}
				return ctx.Err()
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.Log.Error("the last hour cannot be read for the watch", "err", err)
		w.NoteLearned(err)
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	w.again(all)
	return before
}

// again goes through moments, and lets findings wait that were never answered.
func (w *Watcher) again(all []moment) {
	open := map[findingKey]watch.Finding{}
	for i := range all {
		m := &all[i]
		switch {
		case m.seen != nil:
			for _, f := range w.Watch.Add(*m.seen) {
				open[keyOf(&f)] = f
			}
		case m.told != nil:
			w.Watch.LoadTold(*m.told)
			delete(open, keyOf(m.told))
		case m.agent != "":
			w.Watch.Forgive(m.tenant, m.agent, m.at)
			for k := range open {
				if k.tenant == m.tenant && k.agent == m.agent {
					delete(open, k)
				}
			}
		default:
			w.Watch.LoadPerson(m.tenant, m.at)
		}
	}
	for _, f := range open {
		if !f.Cleared {
			w.Take([]watch.Finding{f})
		}
	}
}

// moment is what a leaf of the last hour says.
func (w *Watcher) moment(l *ledger.Stored) (moment, bool) {
	switch l.Kind {
	case ledger.KindEntry:
		e, err := ledger.ParseEntry(l.Record)
		if err != nil {
			return moment{}, false
		}
		s, ok := w.seen(e)
		// The entry does not say whether it only read or connected: a fetch that is
		// taken for a loop would stop whoever did nothing but get packages.
		s.Passive = s.Passive || strings.HasPrefix(e.Boundary, "egress/")
		return moment{at: s.At, seen: &s}, ok
	case ledger.KindEvent:
		e, err := ledger.ParseEvent(l.Record)
		if err != nil {
			return moment{}, false
		}
		return happened(e)
	}
	return moment{}, false
}

// happened is what an event says: an answer, or a person's word.
func happened(e *ledger.Event) (moment, bool) {
	m := moment{at: e.Timestamp, tenant: e.TenantID}
	if f, ok := respond.FoundIn(e); ok {
		m.told = &watch.Finding{Condition: f.Condition, Tenant: f.Tenant, Agent: f.Agent, At: f.At, Why: f.Why, Cause: f.Cause, Cleared: e.Name == respond.EventAnomalyCleared}
		m.told.Response, _ = watch.ResponseOf(f.Response) // none where it is another version's: then people know
		return m, true
	}
	if !bytes.Contains(e.Data, []byte(`"signature":`)) {
		return m, false
	}
	if e.Name == "agent_unpaused" {
		m.agent = e.Subject
	}
	return m, true
}

func keyOf(f *watch.Finding) findingKey {
	return findingKey{f.Tenant, f.Agent, f.Condition, f.Cleared}
}

// learn reads what came before the last hour until it is read, or ctx ends.
func (w *Watcher) learn(ctx context.Context, todo []stretch) {
	for {
		err := w.read(ctx, todo)
		if ctx.Err() != nil {
			return
		}
		if w.NoteLearned(err); err == nil {
			return
		}
		w.Log.Error("the ledger cannot be read for the watch; what is usual is not known until it can", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(learnAgain):
		}
	}
}

// read loads what came before. Where it fails nothing is loaded twice: each stretch
// goes on where it was.
func (w *Watcher) read(ctx context.Context, todo []stretch) error {
	for i := range todo {
		s := &todo[i]
		for s.from < s.to {
			to := min(s.to, s.from+learnBatch)
			var batch []moment
			if err := w.Store.View(ctx, func(tx kernel.Tx) error {
				batch = batch[:0]
				return tx.Leaves(s.tenant, s.from, to, func(l ledger.Stored) error {
					if l.Kind == ledger.KindEntry || bytes.Contains(l.Record, []byte(`"signature":`)) || bytes.Contains(l.Record, []byte(`"event":"anomaly_`)) {
						if m, ok := w.moment(&l); ok {
							batch = append(batch, m)
						}
					}
					return ctx.Err()
				})
			}); err != nil {
				return err
			}
			w.load(batch)
			s.from = to
		}
	}
	w.Watch.Learned()
	return nil
}

// load gives the watch what is long past: of answers only those that are of no
// agent, for what an agent does not do any more is no condition.
func (w *Watcher) load(batch []moment) {
	for i := range batch {
		switch m := &batch[i]; {
		case m.seen != nil:
			w.Watch.Load(*m.seen)
		case m.told == nil:
			w.Watch.LoadPerson(m.tenant, m.at)
		case m.told.Agent == "" && m.told.Condition == watch.NoHumanCheck:
			w.Watch.LoadTold(*m.told)
		}
	}
}

// NoteLearned notes how far it is: not begun, failed, or done.
func (w *Watcher) NoteLearned(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.learned, w.unread = err == nil, ""
	if err != nil {
		w.unread = excerpt.Word(w.Mask(err.Error()))
	}
}

// Known reports whether what is usual is known, and why not.
func (w *Watcher) Known() (bool, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.learned:
		return true, ""
	case w.unread != "":
		return false, "the ledger cannot be read: " + w.unread
	}
	return false, "learning from the ledger what is usual"
}

// Replay tells the watch of a leaf of the last hour; what it finds is not heeded.
func (w *Watcher) Replay(l *ledger.Stored, now time.Time) error {
	if l.Kind != ledger.KindEntry || l.At.Before(now.Add(-time.Hour)) {
		return nil
	}
	e, err := ledger.ParseEntry(l.Record)
	if err != nil {
		return fmt.Errorf("leaf %d: %w", l.Seq, err)
	}
	if s, ok := w.seen(e); ok {
		w.Watch.Add(s)
	}
	return nil
}

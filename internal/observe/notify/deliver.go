package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Run delivers until ctx ends, and then waits for the tries under way.
func (q *Queue) Run(ctx context.Context) {
	var tries sync.WaitGroup
	defer tries.Wait()
	for ctx.Err() == nil {
		due, next := q.due(time.Now())
		if len(due) > 0 {
			q.keep()
		}
		for _, d := range due {
			tries.Go(func() { q.try(ctx, d) })
		}
		var timer <-chan time.Time
		if next > 0 {
			timer = time.After(next)
		}
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-timer:
		}
	}
}

// keep makes what waits outlast the machine, before anybody hears of it.
func (q *Queue) keep() {
	q.mu.Lock()
	f := q.file.f
	q.mu.Unlock()
	// One that was replaced meanwhile is on the disk already.
	if f == nil {
		return
	}
	if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		q.o.Log.Warn("what waits to be told is not yet on the disk", "err", err)
	}
}

// dueTry is a try that is to be made now.
type dueTry struct {
	w       *waiting
	channel string
	message Message
}

// due are the tries that are to be made at now, at most one of each channel, and
// how long it is until the next; 0 where none is to come.
func (q *Queue) due(now time.Time) (out []dueTry, next time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	best := map[string]*waiting{}
	for _, w := range slices.Clone(q.all) {
		if now.Sub(w.Put) > q.o.GiveUp && len(w.To) == 0 {
			q.drop(w) // nobody is left who could be told
			continue
		}
		q.direct(w)
		for _, c := range w.To {
			l := q.lane(c)
			if l.busy {
				continue
			}
			at := l.rest
			if soon := w.Put.Add(q.o.Settle); !w.Critical && soon.After(at) && w.Put.Before(now) {
				at = soon
			}
			if t := w.tries[c]; t != nil && t.next.After(at) {
				at = t.next
			}
			if wait := at.Sub(now); wait > 0 {
				if next == 0 || wait < next {
					next = wait
				}
				continue
			}
			if best[c] == nil || w.before(best[c], c) {
				best[c] = w
			}
		}
	}
	for c, w := range best {
		q.lane(c).busy, w.begun = true, true
		out = append(out, dueTry{w, c, w.Message})
	}
	return out, next
}

// before says whether w is told through a channel before x: what is CRITICAL
// first, then what failed less often, so that one message which a service refuses
// holds no other up.
func (w *waiting) before(x *waiting, channel string) bool {
	if w.Critical != x.Critical {
		return w.Critical
	}
	return cmp.Or(cmp.Compare(w.triedOn(channel), x.triedOn(channel)), w.Put.Compare(x.Put)) < 0
}

func (w *waiting) triedOn(channel string) int {
	if t := w.tries[channel]; t != nil {
		return t.n
	}
	return 0
}

// direct looks for other channels where those of an alert are configured no more.
// The caller holds the lock.
func (q *Queue) direct(w *waiting) {
	if !slices.ContainsFunc(w.To, func(c string) bool { return !q.o.Known(c) }) && len(w.To) > 0 {
		return
	}
	known := slices.DeleteFunc(slices.Clone(w.To), func(c string) bool { return !q.o.Known(c) })
	if len(known) == 0 {
		known = q.o.Route(w.Item)
	}
	if !slices.Equal(known, w.To) {
		w.To = known
		q.write(line{Put: w})
	}
}

func (q *Queue) lane(channel string) *lane {
	l := q.lanes[channel]
	if l == nil {
		l = &lane{}
		q.lanes[channel] = l
	}
	return l
}

func (q *Queue) try(ctx context.Context, d dueTry) {
	err := q.o.Send(ctx, d.channel, d.message)
	if err != nil && ctx.Err() != nil {
		q.mu.Lock()
		q.lane(d.channel).busy = false
		q.mu.Unlock()
		return // it was ended, and waits for the next start
	}
	q.o.Done(q.tried(d, err, time.Now()))
	q.stir()
}

// tried notes how a try ended.
func (q *Queue) tried(d dueTry, err error, now time.Time) Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.forget(d.channel)
	l := q.lane(d.channel)
	l.busy = false
	t := d.w.tries[d.channel]
	if t == nil {
		t = &tried{}
		d.w.tries[d.channel] = t
	}
	t.n++
	r := Result{Channel: d.channel, Message: d.message, Err: err, Tries: t.n}
	if err == nil {
		l.sent++
		l.since, l.rest, l.tries, l.why = time.Time{}, time.Time{}, 0, ""
		q.finish(d)
		return r
	}
	l.failing++
	if l.tries++; l.since.IsZero() {
		l.since = now
	}
	l.why = err.Error()
	l.rest = now.Add(q.wait(l.tries))
	t.next = now.Add(q.wait(t.n))
	if now.Sub(d.w.Put) > q.o.GiveUp {
		r.GivenUp = true
		q.finish(d)
	}
	return r
}

// forget drops the lane of a channel that is configured no more, unless a try of it
// is under way, which does so when it ends. The caller holds the lock.
func (q *Queue) forget(channel string) {
	if l := q.lanes[channel]; l != nil && !l.busy && !q.o.Known(channel) {
		delete(q.lanes, channel)
	}
}

// wait is how long to wait after so many tries that failed.
func (q *Queue) wait(n int) time.Duration {
	return min(q.o.First<<min(n-1, 20), q.o.Slowest)
}

// finish takes a channel off an alert, and the alert off the queue with the last.
// What was counted into it meanwhile is told as well. The caller holds the lock.
func (q *Queue) finish(d dueTry) {
	i := slices.IndexFunc(q.all, func(w *waiting) bool { return w.Message.ID == d.message.ID })
	if i < 0 {
		return
	}
	w := q.all[i]
	if w.Message.More > d.message.More {
		return // it grew while it was told
	}
	w.To = without(w.To, d.channel)
	if len(w.To) == 0 {
		q.all = slices.Delete(q.all, i, i+1)
	}
	q.write(line{Done: w.Message.ID, Of: d.channel})
}

func moreOf(n int) string {
	if n == 1 {
		return "it was found once more within the hour"
	}
	return fmt.Sprintf("it was found %d times more within the hour", n)
}

// moreAlert is the alert that stands for n others.
func moreAlert(a Item, n int) Item {
	m := Message{ID: NewID(), At: a.Message.At, Runtime: a.Message.Runtime, Severity: "MEDIUM", Condition: "more_alerts", More: n,
		Title: fmt.Sprintf("and %d more alerts", n), Text: "More alerts came than can wait. `holdfast status` says what is wrong, and the ledger holds all of it."}
	if n == 1 {
		m.Title = "and one more alert"
	}
	return Item{Key: moreKey, To: a.To, Message: m}
}

// NewID is an id for a message.
func NewID() string {
	id, err := uuid.NewRandom()
	if err != nil {
		return time.Now().UTC().Format("20060102T150405.000000000") // still its own
	}
	return id.String()
}

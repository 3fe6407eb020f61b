package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
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
		q.report()
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

// report records the items that were dropped or given up without a try. What was dropped
// stays in the file until it is recorded.
func (q *Queue) report() {
	q.mu.Lock()
	ended, lost := q.ended, maps.Clone(q.lost)
	q.ended = nil
	q.mu.Unlock()
	for _, r := range ended {
		q.o.Done(r)
	}
	for destination, n := range lost {
		if q.o.Lost(destination, n) != nil {
			continue // it logs
		}
		q.mu.Lock()
		if q.lost[destination] -= n; q.lost[destination] == 0 {
			delete(q.lost, destination)
		}
		q.write(line{Lost: destination, N: q.lost[destination]})
		q.mu.Unlock()
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
	item    Item // the item when the try began
	channel string
	forced  bool // it follows one that failed, before the destination's rest ends
}

// due returns the tries that are to be made at now, at most one of each destination, and
// the duration until the next; 0 if none is to come.
func (q *Queue) due(now time.Time) (out []dueTry, next time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	best, heads := map[string]*waiting{}, map[place]bool{}
	for _, w := range slices.Clone(q.all) {
		if q.direct(w); q.expire(w, now) {
			continue
		}
		for _, c := range w.To {
			if !q.o.Known(c) {
				continue
			}
			l, at := q.lane(c), place{w.subject(), c}
			forced := l.forced == w.Message.ID
			if l.busy != "" || heads[at] && !forced {
				continue
			}
			heads[at] = heads[at] || !w.isPassedOn(c)
			if wait := q.readyAt(w, c, now).Sub(now); wait > 0 && !forced {
				if next == 0 || wait < next {
					next = wait
				}
				continue
			}
			if best[c] == nil || forced || best[c].Message.ID != l.forced && w.isBefore(best[c], c) {
				best[c] = w
			}
		}
	}
	for c, w := range best {
		l := q.lane(c)
		out = append(out, dueTry{w, w.Item, c, l.forced == w.Message.ID})
		l.busy, l.forced, w.begun = w.Message.ID, "", true
	}
	return out, next
}

// place is a subject at a destination.
type place struct{ subject, destination string }

// patience is the number of failed tries after which a later item of the subject is tried. If the destination takes
// that one and refuses the item once more, the item keeps no others back; otherwise it was the destination that failed.
const patience = 5

// readyAt returns when an item may be tried at a destination. The first try of a critical item does not wait for
// the destination's rest: one that refused other messages may take this one. The caller holds the lock.
func (q *Queue) readyAt(w *waiting, destination string, now time.Time) time.Time {
	at := q.lane(destination).rest
	if w.Critical && w.triedOn(destination) == 0 {
		at = time.Time{}
	}
	settled := w.Put.Add(q.o.Settle)
	if w.Notice == nil && !w.Critical && settled.After(at) && w.Put.Before(now) {
		at = settled
	}
	if t := w.tries[destination]; t != nil && t.next.After(at) {
		at = t.next
	}
	return at
}

// expire drops an item that has waited too long for a destination that is configured, and
// reports whether it did. The caller holds the lock.
func (q *Queue) expire(w *waiting, now time.Time) bool {
	if now.Sub(w.Put) <= q.o.GiveUp || slices.ContainsFunc(w.To, q.o.Known) {
		return false
	}
	q.drop(w)
	q.ended = append(q.ended, Result{Channel: strings.Join(w.To, ", "), Message: w.Message, Notice: w.Notice,
		Err: &Failure{"nothing that it goes to is configured"}, GivenUp: true})
	return true
}

// isBefore reports whether w goes to a destination before x: the more urgent, then what
// failed less often, so that one message which a service refuses holds no other up, then
// what came first, as x did.
func (w *waiting) isBefore(x *waiting, destination string) bool {
	return cmp.Or(cmp.Compare(x.urgency(), w.urgency()), cmp.Compare(w.triedOn(destination),
		x.triedOn(destination))) < 0
}

func (w *waiting) triedOn(channel string) int {
	if t := w.tries[channel]; t != nil {
		return t.n
	}
	return 0
}

func (w *waiting) isPassedOn(channel string) bool {
	t := w.tries[channel]
	return t != nil && t.passed
}

// retryEarlier has what failed often before d, of its subject, tried again now that the destination took d. The caller
// holds the lock.
func (q *Queue) retryEarlier(d dueTry) {
	for _, w := range q.all {
		if w == d.w {
			return
		}
		if t := w.tries[d.channel]; t != nil && t.n >= patience && w.subject() == d.w.subject() {
			t.next = time.Time{}
		}
	}
}

// direct looks for other channels where those of an alert are configured no more.
// The caller holds the lock.
func (q *Queue) direct(w *waiting) {
	if w.Notice != nil {
		return
	}
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
	to, err := q.o.Transport(ctx, d.channel)
	if err == nil {
		err = to.Send(ctx, d.item)
	}
	if err != nil && ctx.Err() != nil {
		q.mu.Lock()
		q.lane(d.channel).busy = ""
		q.mu.Unlock()
		return // it was ended, and waits for the next start
	}
	r := q.tried(d, err, time.Now())
	if err == nil && d.item.Notice != nil && d.item.Key != "" {
		q.keep() // so that a power cut does not have it put again
	}
	q.o.Done(r)
	q.stir()
}

// tried notes how a try ended.
func (q *Queue) tried(d dueTry, err error, now time.Time) Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.forget(d.channel)
	l := q.lane(d.channel)
	l.busy = ""
	t := d.w.tries[d.channel]
	if t == nil {
		t = &tried{}
		d.w.tries[d.channel] = t
	}
	t.n++
	r := Result{Channel: d.channel, Message: d.item.Message, Notice: d.item.Notice, Err: err, Tries: t.n}
	if err == nil {
		if d.item.Notice != nil && d.item.Key != "" {
			q.remember(d.item.Key, []string{d.channel}, now)
		}
		if d.forced {
			q.retryEarlier(d)
		}
		l.sent++
		l.since, l.rest, l.tries, l.why = time.Time{}, time.Time{}, 0, ""
		q.finish(d)
		return r
	}
	l.failing++
	t.passed = t.passed || t.n >= patience && l.since.IsZero()
	if l.tries++; l.since.IsZero() {
		l.since = now
	}
	l.why = err.Error()
	l.rest = now.Add(q.wait(l.tries))
	t.next = now.Add(q.wait(t.n))
	if t.n >= patience && !d.forced {
		l.forced = q.findLater(d)
	}
	if now.Sub(d.w.Put) > q.o.GiveUp {
		r.GivenUp = true
		q.finish(d)
	}
	return r
}

// findLater returns the ID of the message of the same subject that is tried right after one
// that failed often, which shows whether the destination takes others: the first of those
// that failed least. The caller holds the lock.
func (q *Queue) findLater(d dueTry) string {
	var best *waiting
	for _, w := range q.all[slices.IndexFunc(q.all,
		func(w *waiting) bool { return w.Message.ID == d.item.Message.ID })+1:] {
		if w.subject() == d.item.subject() && slices.Contains(w.To, d.channel) &&
			(best == nil || w.triedOn(d.channel) < best.triedOn(d.channel)) {
			best = w
		}
	}
	if best == nil {
		return ""
	}
	return best.Message.ID
}

// forget drops the lane of a channel that is configured no more, unless a try of it
// is under way, which does so when it ends. The caller holds the lock.
func (q *Queue) forget(channel string) {
	if l := q.lanes[channel]; l != nil && l.busy == "" && !q.o.Known(channel) {
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
	i := slices.IndexFunc(q.all, func(w *waiting) bool { return w.Message.ID == d.item.Message.ID })
	if i < 0 {
		return
	}
	w := q.all[i]
	if w.Message.More > d.item.Message.More {
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

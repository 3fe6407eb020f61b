package notify

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// maxWhy is the most that the reason of a notice has, in bytes: its line in the file must stay
// below maxLine however it is escaped.
const maxWhy = 16 << 10

// ReviewKey returns the key of the notice of a question: once it was delivered, the question is
// not put again.
func ReviewKey(id string) string { return "review|" + id }

func isReviewKey(key string) bool { return strings.HasPrefix(key, "review|") }

// PutNotice takes a notice to one destination. It waits for no destination and no sync.
func (q *Queue) PutNotice(i Item, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addNotice(i, now)
}

// PutNoticeOnce takes a notice to one destination, unless one with the same key waits for it or
// was delivered, or the queue is full for it.
func (q *Queue) PutNoticeOnce(i Item, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	same := func(w *waiting) bool { return w.Key == i.Key && slices.Equal(w.To, i.To) }
	t := q.told[i.Key]
	if q.countNotices(i.To[0]) >= MaxWaiting || slices.ContainsFunc(q.all, same) || t != nil && len(t.Channels) > 0 {
		return
	}
	q.addNotice(i, now)
}

// MarkDelivered notes that a notice with this key was delivered to a destination.
func (q *Queue) MarkDelivered(key, destination string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remember(key, []string{destination}, now)
}

// Sync writes what waits to the disk.
func (q *Queue) Sync() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file.fault != nil || q.file.f == nil {
		return q.file.fault
	}
	return q.file.f.Sync()
}

// addNotice appends a notice. At most MaxWaiting wait for a destination: for more, one is dropped,
// and counted until that is recorded. The caller holds the lock.
func (q *Queue) addNotice(i Item, now time.Time) {
	notice := *i.Notice
	notice.Why = excerpt.Of(notice.Why, maxWhy)
	i.Notice = &notice
	if i.Critical && q.isNewest(&i) {
		return // such as a halt that waits, and that a restart finds again
	}
	q.append(i, now)
	if w := q.findSurplus(i.To[0]); w != nil {
		q.drop(w)
		q.lost[i.To[0]]++
		q.write(line{Lost: i.To[0], N: q.lost[i.To[0]]})
		l := q.lane(i.To[0])
		if l.since.IsZero() {
			l.since = now
		}
		l.why = "more notices wait than it can be told"
	}
	q.stir()
}

// isNewest reports whether the newest notice of the subject that waits for the destination is the same.
// The caller holds the lock.
func (q *Queue) isNewest(i *Item) bool {
	for _, w := range slices.Backward(q.all) {
		if w.isFor(i.To[0]) && w.subject() == i.subject() {
			return *w.Notice == *i.Notice
		}
	}
	return false
}

// findSurplus returns the notice that a destination for which too many wait does without, or nil:
// the oldest that is neither a question nor CRITICAL, since an agent causes others as often as it
// likes, and that no try is in progress for. The caller holds the lock.
func (q *Queue) findSurplus(destination string) *waiting {
	if q.countNotices(destination) <= MaxWaiting {
		return nil
	}
	var best *waiting
	for _, w := range q.all {
		if w.isFor(destination) && w.Message.ID != q.lane(destination).busy &&
			(best == nil || w.urgency() < best.urgency()) {
			best = w
		}
	}
	return best
}

// isFor reports whether it is a notice to that destination.
func (w *waiting) isFor(destination string) bool { return w.Notice != nil && w.To[0] == destination }

// countNotices returns the number of notices that wait for a destination. The caller holds the lock.
func (q *Queue) countNotices(destination string) (n int) {
	for _, w := range q.all {
		if w.isFor(destination) {
			n++
		}
	}
	return n
}

package notify

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
)

const (
	// MaxWaiting is how many alerts wait at most; what comes beyond stands in one
	// that says how many there are. What is CRITICAL always waits by itself, and what is
	// HIGH as long as something MEDIUM can make room: haste by many names is no way to
	// keep worse from being told.
	MaxWaiting = 256
	// again is how long people are not told once more of one condition of one agent.
	again = time.Hour
	// remembered bounds what was told, in conditions, and for how long one that
	// still holds is known to have been.
	remembered = 4096
	// rememberedReviews bounds the reviews whose question was delivered.
	rememberedReviews = 2000
	rememberFor       = 30 * 24 * time.Hour
)

// Item is a message to people, or a notice to a program, and where it goes.
type Item struct {
	// Key is the condition and whose it is: one alert within its hour. The key of a
	// notice is remembered once the notice was delivered; an empty key is not.
	Key string `json:"key"`
	// Subject orders items: those of one subject reach a destination in the order in
	// which they came. If it is empty, the key is the subject.
	Subject string `json:"subject,omitempty"`
	// Critical is never left out, and goes first.
	Critical bool `json:"critical,omitempty"`
	// Rank is how much was done: one of the same key that more was done about takes
	// the place of one that nobody was told yet.
	Rank    int      `json:"rank,omitempty"`
	To      []string `json:"to"` // names of destinations; a notice has one
	Message Message  `json:"message"`
	// Notice is delivered in place of the message, which then only has an ID, a time, a
	// runtime and a condition.
	Notice *kernel.Notice `json:"notice,omitempty"`
}

// subject returns what orders the item.
func (i *Item) subject() string { return cmp.Or(i.Subject, i.Key) }

// urgency returns how far before others the item goes.
func (i *Item) urgency() int {
	switch {
	case i.Critical:
		return 2
	case i.Notice != nil && i.Notice.Review != "":
		return 1
	}
	return 0
}

// Transport delivers one item to one destination, within a bounded time. Its error is a
// *Failure.
type Transport interface {
	Send(ctx context.Context, i Item) error
}

// Result is how a try ended.
type Result struct {
	Channel string // the destination's name
	Message Message
	Notice  *kernel.Notice // nil: it was a message
	Err     error          // nil: delivered; otherwise a *Failure
	Tries   int
	// GivenUp says that it is not tried again.
	GivenUp bool
}

// Options are what a Queue works with. No function may be nil, and Route and Known
// may not call the Queue.
type Options struct {
	// Transport returns what delivers to the destination of that name.
	Transport func(ctx context.Context, destination string) (Transport, error)
	// Route says through which channels an alert goes whose own are configured no
	// more; none of them leaves it waiting. A notice waits for its destination.
	Route func(a Item) []string
	// Known reports whether a destination is configured.
	Known func(destination string) bool
	// Done is called after each try, and for an item that is given up without one.
	Done func(Result)
	// Lost records that n notices to a destination were dropped, because more waited than
	// the queue holds. It is called again while it fails.
	Lost func(destination string, n int) error
	Log  *slog.Logger
	// First is the wait after the first try that failed; 5 s if zero. It doubles up
	// to Slowest, 15 min if zero. GiveUp is how long an item is tried; 72 h if zero.
	First, Slowest, GiveUp time.Duration
	// Settle is how long an alert that is not CRITICAL waits for what more is done about
	// it; 0 is not at all.
	Settle time.Duration
}

// waiting is an item that not all destinations have.
type waiting struct {
	Item
	Put   time.Time `json:"put"`
	tries map[string]*tried
	begun bool // somebody is being told
}

// tried is how it stands with one channel. A restart forgets it: what waits is
// tried at once.
type tried struct {
	n    int
	next time.Time
	// passed says that the destination refused it often, also right after it took others: it keeps
	// none back any more.
	passed bool
}

// told is a condition that people were told of.
type told struct {
	At       time.Time `json:"at"`
	Channels []string  `json:"channels"`
	more     int       // times that it was not told again
}

// lane is the status of a destination.
type lane struct {
	busy          string    // the ID of the message that is tried, or ""
	forced        string    // the ID of the message that is tried next, before rest ends
	since, rest   time.Time // since when it fails, and until when it is left alone
	tries         int
	why           string
	sent, failing int64
}

// Queue keeps what people are to be told until they were. It may be used by many
// goroutines.
type Queue struct {
	o    Options
	wake chan struct{}
	file *queueFile

	mu    sync.Mutex
	all   []*waiting // guarded by mu; in the order in which they came
	told  map[string]*told
	lanes map[string]*lane
	lost  map[string]int // guarded by mu; notices that were dropped, and not recorded yet, by destination
	ended []Result       // guarded by mu; items that were given up without a try, for Done
}

// OpenQueue reads what waits in the file, which is made if need be (0600); one
// process has it open. What cannot be read of it is left out, and logged.
func OpenQueue(path string, o Options) (*Queue, error) {
	o.First, o.Slowest = cmp.Or(o.First, 5*time.Second), cmp.Or(o.Slowest, 15*time.Minute)
	o.GiveUp = cmp.Or(o.GiveUp, 72*time.Hour)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{o: o, wake: make(chan struct{}, 1), told: map[string]*told{}, lanes: map[string]*lane{},
		lost: map[string]int{}}
	var err error
	if q.file, err = openQueueFile(path, q.replay); err != nil {
		return nil, err
	}
	if n := q.file.lost; n > 0 {
		o.Log.Error("alerts that waited could not be read", "lines", n)
	}
	if q.file.size < maxQueueFile/4 {
		return q, nil
	}
	if err := q.compact(); err != nil {
		o.Log.Error("the file of what waits to be told could not be written anew", "err", err)
	}
	return q, nil
}

// Close closes the file. Run has ended before.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.file.close()
}

// Put takes an alert, and says whether people will be told: not so where they were
// within the hour, or where it has no channel. It waits for no channel and no
// sync.
func (q *Queue) Put(a Item, now time.Time) bool {
	a.Message = a.Message.bounded()
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.told[a.Key]; t != nil && now.Sub(t.At) < again && !now.Before(t.At) {
		if !q.replace(a) {
			t.more++
		}
		return false
	}
	if len(a.To) == 0 {
		return false
	}
	if t := q.told[a.Key]; t != nil && t.more > 0 {
		a.Message.Text = Lines(a.Message.Text+"\n"+moreOf(t.more), MaxText)
	}
	q.remember(a.Key, a.To, now)
	q.add(a, now)
	return true
}

// replace puts an alert in the place of one of its key that nobody was told yet,
// where more was done about it. The caller holds the lock.
func (q *Queue) replace(a Item) bool {
	for i, w := range q.all {
		if w.Key != a.Key || w.Notice != nil || w.begun || w.Rank >= a.Rank || w.Message.Cleared {
			continue
		}
		next := *w
		next.Rank, next.Message = a.Rank, a.Message
		next.Message.ID = w.Message.ID
		q.all[i] = &next
		q.write(line{Put: &next})
		return true
	}
	return false
}

// Note remembers that people know of a condition, whom another alert told of it.
func (q *Queue) Note(a Item, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.told[a.Key]; t == nil || now.Sub(t.At) >= again || now.Before(t.At) {
		q.remember(a.Key, a.To, now)
	}
}

// Clear tells those who were told of a condition that it holds no more, once. The subject is
// that of the condition's items.
// With anew the hour ends with it: what is done by a person each time, such as a
// halt, is told each time.
func (q *Queue) Clear(key, subject string, m Message, anew bool, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.told[key]
	if t == nil || len(t.Channels) == 0 {
		return false
	}
	// An end of what is CRITICAL is as urgent: it precedes the next beginning.
	a := Item{Key: key, Subject: subject, Critical: m.Severity == "CRITICAL", To: t.Channels, Message: m.bounded()}
	t.Channels = nil // the hour goes on: what comes and goes is told once
	if anew {
		t.At = time.Time{}
	}
	q.write(line{Told: key, At: t.At})
	q.add(a, now)
	return true
}

// Anew ends the hour of a condition, whose end nobody is told of: when it is put again
// people are told again.
func (q *Queue) Anew(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.told[key]; t != nil {
		*t = told{}
		q.write(line{Told: key})
	}
}

// add puts an alert behind those that wait. The caller holds the lock.
func (q *Queue) add(a Item, now time.Time) {
	if q.room() > 0 || q.spare(&a, now) || a.Critical {
		q.append(a, now)
	} else {
		q.count(a, 1, now)
	}
	q.stir()
}

func (q *Queue) append(a Item, now time.Time) {
	w := &waiting{Item: a, Put: now, tries: map[string]*tried{}}
	q.all = append(q.all, w)
	q.write(line{Put: w})
}

func (q *Queue) room() int {
	n := MaxWaiting
	for _, w := range q.all {
		if !w.Critical && w.Notice == nil {
			n--
		}
	}
	return n
}

// moreKey is the key of the alert that stands for those there is no room for.
const moreKey = "more"

// count adds to the alert that says how many more there are. The caller holds the
// lock.
func (q *Queue) count(a Item, n int, now time.Time) {
	i := slices.IndexFunc(q.all, func(w *waiting) bool { return w.Key == moreKey && w.Message.More > 0 })
	if i < 0 {
		q.append(moreAlert(a, n), now)
		return
	}
	w := *q.all[i]
	w.Message = moreAlert(a, w.Message.More+n).Message
	for _, c := range a.To {
		if !slices.Contains(w.To, c) {
			w.To = append(slices.Clone(w.To), c)
		}
	}
	w.Message.ID = q.all[i].Message.ID
	q.all[i] = &w
	q.write(line{Put: &w})
}

// spare makes room for what is CRITICAL or HIGH: the oldest that is MEDIUM, or for what
// is CRITICAL any other, is only counted. The caller holds the lock.
func (q *Queue) spare(a *Item, now time.Time) bool {
	if !a.Critical && a.Message.Severity != "HIGH" {
		return false
	}
	i := slices.IndexFunc(q.all, func(w *waiting) bool {
		return w.Notice == nil &&
			w.Message.Severity == "MEDIUM" && w.Key != moreKey
	})
	if i < 0 && a.Critical {
		i = slices.IndexFunc(q.all, func(w *waiting) bool { return w.Notice == nil && !w.Critical && w.Key != moreKey })
	}
	if i < 0 {
		return false
	}
	w := q.all[i]
	q.drop(w)
	q.count(w.Item, 1, now)
	return true
}

// drop takes an alert out. The caller holds the lock.
func (q *Queue) drop(w *waiting) {
	if i := slices.Index(q.all, w); i >= 0 {
		q.all = slices.Delete(q.all, i, i+1)
		q.write(line{Done: w.Message.ID})
	}
}

// remember notes that people are told of a condition. The caller holds the lock.
func (q *Queue) remember(key string, to []string, now time.Time) {
	q.told[key] = &told{At: now, Channels: to}
	q.write(line{Told: key, At: now, To: to})
	most := remembered
	if isReviewKey(key) {
		most = rememberedReviews
	}
	n, oldest := 0, key
	for k, t := range q.told {
		if isReviewKey(k) == isReviewKey(key) {
			n++
			if t.At.Before(q.told[oldest].At) {
				oldest = k
			}
		}
	}
	if n > most {
		delete(q.told, oldest)
	}
}

// stir wakes who delivers.
func (q *Queue) stir() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Reroute looks again where everything goes, after the channels changed.
func (q *Queue) Reroute() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, l := range q.lanes {
		l.rest, l.forced = time.Time{}, "" // its address may be another
		q.forget(name)
	}
	for _, w := range q.all {
		for _, t := range w.tries {
			t.next = time.Time{}
		}
	}
	q.stir()
}

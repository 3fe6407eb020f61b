package notify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// listResults returns the results of a destination.
func (p *people) listResults(destination string) []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.results), func(r Result) bool { return r.Channel != destination })
}

// lostOf returns the number of notices to a destination that were recorded as lost.
func (p *people) lostOf(destination string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost[destination]
}

func newNotice(event, why, to string) Item {
	i := Item{Subject: "notice", To: []string{to}, Notice: &kernel.Notice{Event: event, Why: why},
		Message: Message{ID: NewID(), Condition: event}}
	if event == "halted" {
		i.Subject, i.Critical = "halt", true
	}
	return i
}

// question is the notice of a review, which is remembered once it was delivered.
func newQuestion(id, to string) Item {
	i := newNotice("review_opened", "", to)
	i.Notice.Review, i.Subject, i.Key = id, "review", ReviewKey(id)
	return i
}

// TestQueueKeepsTheOrderOfASubject: however often a destination fails, what is sent of one subject
// arrives in the order in which it came.
func TestQueueKeepsTheOrderOfASubject(t *testing.T) {
	for _, restart := range []bool{false, true} {
		p := newPeople()
		p.fails["sms"], p.fails["hook"] = &Failure{"it answered 500"}, &Failure{"it answered 500"}
		path := filepath.Join(t.TempDir(), "w")
		q := openPatiently(t, path, p)
		stop := running(t, q)
		for i := range 3 {
			halted, over := alert("halted", "sms"), Message{ID: NewID(), Title: "over", Severity: "CRITICAL"}
			halted.Critical, halted.Subject = true, "halt"
			if !q.Put(halted, time.Now()) {
				t.Fatalf("halt %d is left out", i)
			}
			q.PutNotice(newNotice("halted", "", "hook"), time.Now())
			time.Sleep(20 * time.Millisecond) // it is tried, and fails
			if !q.Clear("halted", "halt", over, true, time.Now()) {
				t.Fatalf("the end of halt %d is left out", i)
			}
			resumed := newNotice("resumed", "", "hook")
			resumed.Subject, resumed.Critical = "halt", true
			q.PutNotice(resumed, time.Now())
			gone := alert(fmt.Sprint("latch gone ", i), "sms")
			gone.Critical, gone.Subject = true, "halt"
			q.Put(gone, time.Now())
		}
		until(t, "two tries", func() bool { return len(p.listResults("sms")) > 1 && len(p.listResults("hook")) > 1 })
		if restart {
			stop()
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			q = openPatiently(t, path, p)
			running(t, q)
		}
		p.set(func() { clear(p.fails) })
		until(t, "all", func() bool { return q.Waiting() == 0 })
		want := []string{"halted", "over", "latch gone 0", "halted", "over", "latch gone 1", "halted", "over",
			"latch gone 2"}
		if got := p.of("sms"); !slices.Equal(got, want) {
			t.Errorf("restart %v: %q", restart, got)
		}
		want = []string{"halted ", "resumed ", "halted ", "resumed ", "halted ", "resumed "}
		if got := p.of("hook"); !slices.Equal(got, want) {
			t.Errorf("restart %v: %q", restart, got)
		}
		_ = q.Close()
	}
}

// openPatiently opens a queue that tries so seldom that nothing fails as often as patience allows.
func openPatiently(t *testing.T, path string, p *people) *Queue {
	t.Helper()
	o := p.options()
	o.First, o.Slowest = 40*time.Millisecond, time.Second
	q, err := OpenQueue(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestQueueKeepsTheOrderAfterAnOutage: after a long outage of a destination at most the one message that showed that it
// takes others again is out of order.
func TestQueueKeepsTheOrderAfterAnOutage(t *testing.T) {
	p := newPeople()
	p.fails["hook"] = &Failure{"it answered 500"}
	q := open(t, filepath.Join(t.TempDir(), "w"), p)
	defer q.Close()
	running(t, q)
	var want []string
	for i := range 12 {
		q.PutNotice(newNotice("one", fmt.Sprint(i), "hook"), time.Now())
		want = append(want, fmt.Sprint("one ", i))
	}
	until(t, "many tries", func() bool { return len(p.listResults("hook")) > 30 })
	p.set(func() { clear(p.fails) })
	until(t, "all", func() bool { return q.Waiting() == 0 })
	got := p.of("hook")
	if first := slices.Index(want, got[0]); first > 0 {
		want = slices.Insert(slices.Delete(want, first, first+1), 0, got[0])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestQueuePassesWhatIsRefused: one message that a destination refuses keeps neither those of its
// subject nor others back for long.
func TestQueuePassesWhatIsRefused(t *testing.T) {
	p := newPeople()
	p.refuses["first bad"] = true
	q := open(t, filepath.Join(t.TempDir(), "w"), p)
	defer q.Close()
	running(t, q)
	q.PutNotice(newNotice("first", "bad", "hook"), time.Now())
	var want []string
	for i := range 20 {
		q.PutNotice(newNotice("later", fmt.Sprint(i), "hook"), time.Now())
		want = append(want, fmt.Sprint("later ", i))
	}
	until(t, "the others", func() bool { return len(p.of("hook")) == 20 })
	if got := p.of("hook"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	p.set(func() { clear(p.refuses) })
	until(t, "the first", func() bool { return q.Waiting() == 0 })
}

// TestQueueBoundsNotices: of more notices than the queue holds the oldest are dropped, which is an
// alarm and is recorded, also by the process after one that was killed; questions and halts are
// kept as long as there are others.
func TestQueueBoundsNotices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	p := newPeople()
	q := open(t, path, p)
	q.PutNotice(newNotice("halted", "one", "hook"), time.Now())
	q.PutNotice(newNotice("halted", "two", "hook"), time.Now())
	for i := range 3 {
		q.PutNotice(newQuestion(fmt.Sprint("rv_", i), "hook"), time.Now())
	}
	for i := range 3 * MaxWaiting {
		q.PutNotice(newNotice("prohibited_tried", fmt.Sprint(i), "hook"), time.Now())
	}
	q.PutNotice(newNotice("tool_changed", "", "other"), time.Now())
	const dropped = 2*MaxWaiting + 5
	if n := q.Waiting(); n != MaxWaiting+1 {
		t.Errorf("%d wait", n)
	}
	if s := q.States(); len(s) != 2 || s[0].Why == "" || s[0].Since.IsZero() || s[0].Waiting != MaxWaiting {
		t.Errorf("%+v", s)
	}
	// It is not closed: the process was killed.
	q = open(t, path, p)
	defer q.Close()
	running(t, q)
	until(t, "all", func() bool { return q.Waiting() == 0 })
	until(t, "what was lost", func() bool { return p.lostOf("hook") > 0 })
	got := p.of("hook")
	if len(got) != MaxWaiting || got[0] != "halted one" || got[1] != "halted two" || got[2] != "review_openedrv_0 " ||
		got[len(got)-1] != fmt.Sprint("prohibited_tried ", 3*MaxWaiting-1) {
		t.Errorf("%d came: %q", len(got), got[:min(len(got), 8)])
	}
	if n := p.lostOf("hook"); n != dropped || p.lostOf("other") != 0 {
		t.Errorf("%d are recorded as lost, not %d", n, dropped)
	}
	_ = q.Close()
	if q = open(t, path, p); len(q.lost) > 0 {
		t.Errorf("what is recorded is lost again: %v", q.lost)
	}
}

// TestQueueKeepsQuestionsWhenFull: a queue full of questions does without the oldest, and a halt
// still goes first.
func TestQueueKeepsQuestionsWhenFull(t *testing.T) {
	p := newPeople()
	q := open(t, filepath.Join(t.TempDir(), "w"), p)
	defer q.Close()
	for i := range 3 * MaxWaiting {
		q.PutNotice(newQuestion(fmt.Sprint(i), "hook"), time.Now())
	}
	q.PutNotice(newNotice("halted", "", "hook"), time.Now())
	q.PutNoticeOnce(newQuestion("0", "hook"), time.Now()) // it waits, and is looked for again
	running(t, q)
	until(t, "all", func() bool { return q.Waiting() == 0 })
	until(t, "what was lost", func() bool { return p.lostOf("hook") == 2*MaxWaiting+1 })
	got := p.of("hook")
	if len(got) != MaxWaiting || got[0] != "halted " || got[len(got)-1] != fmt.Sprintf("review_opened%d ",
		3*MaxWaiting-1) {
		t.Errorf("%d came, the first is %q, the last %q", len(got), got[0], got[len(got)-1])
	}
}

// TestQueueRemembersQuestions: a question that waits or was delivered is not put once more, also
// after a restart and however many conditions are remembered, as long as it is one of the newest.
func TestQueueRemembersQuestions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	p := newPeople()
	q := open(t, path, p)
	stop := running(t, q)
	q.PutNotice(newQuestion("delivered", "hook"), time.Now())
	until(t, "the first", func() bool { return len(p.listResults("hook")) == 1 })
	p.set(func() { p.fails["hook"] = &Failure{"no"} })
	q.PutNoticeOnce(newQuestion("waits", "hook"), time.Now())
	for i := range remembered + 10 {
		q.Note(alert(fmt.Sprint(i), "mail"), time.Now())
	}
	stop()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q = open(t, path, p)
	defer q.Close()
	q.PutNoticeOnce(newQuestion("delivered", "hook"), time.Now())
	q.PutNoticeOnce(newQuestion("waits", "hook"), time.Now())
	if n := q.Waiting(); n != 1 {
		t.Errorf("%d wait", n)
	}
	if err := q.compact(); err != nil {
		t.Fatal(err)
	}
	for i := range rememberedReviews {
		q.MarkDelivered(ReviewKey(fmt.Sprint(i)), "hook", time.Now())
	}
	q.PutNoticeOnce(newQuestion("delivered", "hook"), time.Now())
	if n := q.Waiting(); n != 2 {
		t.Errorf("%d wait: more are remembered than the bound", n)
	}
}

// TestQueueGivesUpWithAResult: what waits for a destination that is no longer configured is given up
// after days, and its result says so.
func TestQueueGivesUpWithAResult(t *testing.T) {
	p := newPeople()
	p.gone["hook"], p.gone["sms"] = true, true
	o := p.options()
	o.GiveUp = time.Hour
	q, err := OpenQueue(filepath.Join(t.TempDir(), "w"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	q.PutNotice(newNotice("kept", "", "hook"), time.Now())
	q.PutNotice(newNotice("old", "", "hook"), time.Now().Add(-2*time.Hour))
	q.Put(alert("alert", "sms"), time.Now().Add(-2*time.Hour))
	running(t, q)
	until(t, "the end of two", func() bool { return q.Waiting() == 1 })
	until(t, "their results", func() bool { return len(p.listResults("hook")) == 1 && len(p.listResults("")) == 1 })
	for _, r := range append(p.listResults("hook"), p.listResults("")...) {
		if !r.GivenUp || r.Err == nil || r.Tries != 0 {
			t.Errorf("%+v", r)
		}
	}
	p.set(func() { p.gone["hook"] = false })
	q.Reroute()
	until(t, "the other", func() bool { return slices.Equal(p.of("hook"), []string{"kept "}) })
}

// TestQueueDeliversAnOldFile: a file of the version that had a queue for alerts only is delivered:
// nothing is sent twice, and the rest arrives in its order.
func TestQueueDeliversAnOldFile(t *testing.T) {
	old, err := os.ReadFile("testdata/alerts.waiting")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Now().UTC().Add(-time.Minute).Format("2006-01-02T15:04:")
	text := strings.ReplaceAll(string(old), "2026-11-27T18:41:", day)
	path := filepath.Join(t.TempDir(), "w")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPeople()
	q := open(t, path, p)
	defer q.Close()
	if q.Waiting() != 6 || q.file.lost != 0 {
		t.Fatalf("%d wait, %d lines are lost", q.Waiting(), q.file.lost)
	}
	if q.Put(alert("loop|local|bob", "mail"), time.Now()) {
		t.Error("it is put again within its hour")
	}
	running(t, q)
	until(t, "all", func() bool { return q.Waiting() == 0 })
	for channel, want := range map[string][]string{
		"sms":  {"CRITICAL: halted", "over: halted (CRITICAL)"},
		"mail": {"HIGH: loop, agent bob", "HIGH: day budget spent", "daily report of 2026-11-26: GREEN"},
		"chat": {"over: rapid actions (MEDIUM), agent ann"},
	} {
		if got := p.of(channel); !slices.Equal(got, want) {
			t.Errorf("%s got %q", channel, got)
		}
	}
}

// TestQueuePutsAHaltOnce: a halt that waits is put once, however often it is reported; one after its
// end is another.
func TestQueuePutsAHaltOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	p := newPeople()
	q := open(t, path, p)
	q.PutNotice(newNotice("halted", "x", "hook"), time.Now())
	q = open(t, path, p) // a restart
	defer q.Close()
	q.PutNotice(newNotice("halted", "x", "hook"), time.Now())
	q.PutNotice(newNotice("halted", "x", "other"), time.Now())
	over := newNotice("resumed", "x", "hook")
	over.Subject, over.Critical = "halt", true
	q.PutNotice(over, time.Now())
	q.PutNotice(newNotice("halted", "x", "hook"), time.Now())
	running(t, q)
	until(t, "all", func() bool { return q.Waiting() == 0 })
	if got := p.of("hook"); !slices.Equal(got, []string{"halted x", "resumed x", "halted x"}) ||
		len(p.of("other")) != 1 {
		t.Errorf("%q", got)
	}
}

// TestQueueTakesLongReasons: the reason of a notice may be long, and is cut rather than lost.
func TestQueueTakesLongReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	q := open(t, path, newPeople())
	q.PutNotice(newNotice("x", strings.Repeat("\x00", 1<<20), "hook"), time.Now())
	_ = q.Close()
	q = open(t, path, newPeople())
	defer q.Close()
	if q.Waiting() != 1 || q.file.lost != 0 {
		t.Errorf("%d wait, %d lost", q.Waiting(), q.file.lost)
	}
}

// TestQueueHurriesWhatIsCritical: a message that a destination refuses makes it rest, but a halt is sent
// immediately.
func TestQueueHurriesWhatIsCritical(t *testing.T) {
	p := newPeople()
	p.refuses["review bad"] = true
	o := p.options()
	o.First, o.Slowest = time.Hour, time.Hour
	q, err := OpenQueue(filepath.Join(t.TempDir(), "w"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	running(t, q)
	q.PutNotice(newNotice("review", "bad", "hook"), time.Now())
	until(t, "a try", func() bool { return len(p.listResults("hook")) == 1 })
	q.PutNotice(newNotice("later", "waits", "hook"), time.Now())
	q.PutNotice(newNotice("halted", "now", "hook"), time.Now())
	until(t, "the halt", func() bool { return slices.Contains(p.of("hook"), "halted now") })
	if got := p.of("hook"); got[0] != "halted now" {
		t.Errorf("%q", got)
	}
}

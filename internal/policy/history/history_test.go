package history

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func past(id string, window time.Duration) *constitution.Past {
	return &constitution.Past{ID: id, Boundary: "mcp/bank/pay", Window: window, Text: id}
}

// used is a History with past functions that are ready.
func used(max int, now time.Time, pasts ...*constitution.Past) *History {
	h := New(max)
	h.Use(now, pasts)
	for _, p := range pasts {
		h.Ready(p.ID)
	}
	return h
}

func seen(group, value string, amount int64) constitution.Seen {
	return constitution.Seen{Matches: true, Group: group, Value: value, Amount: amount}
}

func sights(p *constitution.Past, s constitution.Seen) []constitution.Sight {
	return []constitution.Sight{{Past: p, Seen: s}}
}

// do is a request that is judged and begins.
func do(h *History, at time.Time, id string, p *constitution.Past, s constitution.Seen) *Ticket {
	t := h.Add(at, "t", id, sights(p, s))
	t.Confirm(at)
	return t
}

// ask asks as a request that nothing is seen of.
func ask(t testing.TB, h *History, p *constitution.Past, group string, now time.Time) constitution.Answer {
	t.Helper()
	ticket := h.Add(now, "t", "asks", nil)
	defer ticket.Drop()
	a, err := ticket.Ask(p, group, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWindowIsClosed(t *testing.T) {
	p := past("p", time.Hour)
	h := used(100, noon, p)
	do(h, noon, "a", p, seen("g", "", 5))
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {time.Hour, 1}, {time.Hour + 1, 0}, {-time.Minute, 1}} {
		if got := ask(t, h, p, "g", noon.Add(c.after)); got.Count != c.want || got.Sum != 5*c.want {
			t.Errorf("%v later: %+v", c.after, got)
		}
	}
	if got := ask(t, h, p, "other", noon); got != (constitution.Answer{}) {
		t.Errorf("another group: %+v", got)
	}
	other := h.Add(noon, "another tenant", "x", nil)
	if got, err := other.Ask(p, "g", noon); got.Count != 0 || err != nil {
		t.Errorf("another tenant: %+v, %v", got, err)
	}
}

// TestParallelRequestsNeverPassALimitByOne: of many requests that are judged at
// once, each of which would pass alone, exactly as many pass as may.
func TestParallelRequestsNeverPassALimitByOne(t *testing.T) {
	const limit, requests = 3, 64
	for round := range 20 {
		p := past("p", time.Hour)
		h := used(1_000, noon, p)
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			through int
			all     = make(chan struct{})
		)
		for i := range requests {
			wg.Go(func() {
				<-all
				at := noon.Add(time.Duration(i) * time.Millisecond)
				ticket := h.Add(at, "t", fmt.Sprint(i), sights(p, seen("g", fmt.Sprint("v", i), 0)))
				a, err := ticket.Ask(p, "g", at)
				if err != nil || a.Count >= limit || a.Distinct != a.Count {
					ticket.Drop()
					return
				}
				ticket.Confirm(at)
				mu.Lock()
				through++
				mu.Unlock()
			})
		}
		close(all)
		wg.Wait()
		if got := ask(t, h, p, "g", noon); through != limit || got.Count != limit {
			t.Fatalf("round %d: %d passed, %+v", round, through, got)
		}
		if len(h.pending) != 0 || len(h.kept["p"].tenants["t"].pending) != 0 {
			t.Fatal("requests are left that are not judged any more")
		}
	}
}

func TestTickets(t *testing.T) {
	p := past("p", time.Hour)
	h := used(100, noon, p)
	one := h.Add(noon, "t", "1", sights(p, seen("g", "", 10)))
	two := h.Add(noon, "t", "2", sights(p, seen("g", "", 20)))
	count := func(k *Ticket) int64 {
		t.Helper()
		a, err := k.Ask(p, "g", noon)
		if err != nil {
			t.Fatal(err)
		}
		return a.Sum
	}
	if count(one) != 0 || count(two) != 10 {
		t.Errorf("%d before the first, %d before the second", count(one), count(two))
	}
	two.Confirm(noon)
	if count(one) != 20 {
		t.Error("what began under a later ticket does not count")
	}
	if count(two) != 10 {
		t.Errorf("a request counts itself once it began: %d", count(two))
	}
	two.Confirm(noon)
	two.Drop()
	if count(one) != 20 {
		t.Error("a ticket was used twice")
	}
	two.Remove()
	two.Remove()
	if count(one) != 0 {
		t.Error("what never started counts")
	}
	one.Drop()
	one.Confirm(noon)
	if got := ask(t, h, p, "g", noon); got.Count != 0 {
		t.Errorf("what was dropped counts: %+v", got)
	}
	if _, err := (*Ticket)(nil).Ask(p, "g", noon); err == nil {
		t.Error("no ticket has an answer")
	}
	if _, err := h.Add(noon, "t", "3", nil).Ask(past("q", time.Hour), "g", noon); !errors.Is(err, ErrNotKept) {
		t.Errorf("a function that is not in force: %v", err)
	}
}

// TestUnreadableIsSaid: an entry that cannot be read makes the tenant's questions
// errors, until it has left the window; for no other tenant.
func TestUnreadableIsSaid(t *testing.T) {
	p := past("p", time.Hour)
	h := used(100, noon, p)
	bad := h.Add(noon, "t", "1", []constitution.Sight{{Past: p, Err: errors.New("no amount")}})
	ask(t, h, p, "g", noon) // it is refused yet, by the rules that ask
	bad.Confirm(noon)
	for _, after := range []time.Duration{0, time.Hour} {
		_, err := h.Add(noon, "t", "2", nil).Ask(p, "g", noon.Add(after))
		if !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "until 2026-11-22T13:00:00Z") {
			t.Errorf("%v later: %v", after, err)
		}
	}
	if s := h.Status(noon); len(s) != 1 || len(s[0].Unreadable) != 1 || !s[0].Unreadable["t"].Equal(noon.Add(time.Hour+1)) {
		t.Errorf("%+v", s)
	}
	if _, err := h.Add(noon, "another", "2", nil).Ask(p, "g", noon); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	ask(t, h, p, "g", noon.Add(time.Hour+1))
	if s := h.Status(noon.Add(time.Hour + 1)); s[0].Unreadable != nil {
		t.Errorf("%+v", s)
	}
}

// TestLoadingWhileRequestsBegin: what the ledger tells and what begins meanwhile
// is counted once, whichever comes first, and nothing is answered before.
func TestLoadingWhileRequestsBegin(t *testing.T) {
	p, q := past("p", 24*time.Hour), past("q", 24*time.Hour)
	h := used(1_000, noon, p)
	old := h.Add(noon, "t", "old", sights(p, seen("g", "", 1)))
	unready, mark := h.Use(noon, []*constitution.Past{p, q, q})
	if len(unready) != 1 || unready[0] != q {
		t.Fatalf("%v", unready)
	}
	if h.Settled(mark) {
		t.Error("a request that was judged by the rules before is still judged")
	}
	both := func(id string) *Ticket {
		return h.Add(noon, "t", id, []constitution.Sight{{Past: p, Seen: seen("g", "", 1)}, {Past: q, Seen: seen("", "", 1)}})
	}
	live := both("live")
	if _, err := live.Ask(q, "", noon); !errors.Is(err, ErrNotReady) {
		t.Errorf("%v", err)
	}
	if _, err := live.Ask(p, "g", noon); err != nil {
		t.Errorf("what stays in force is not ready: %v", err)
	}
	old.Confirm(noon)
	if !h.Settled(mark) {
		t.Error("the new rules' own requests are waited for")
	}
	early := both("early")
	early.Confirm(noon)
	for i := range 10 {
		h.Load("q", "t", fmt.Sprint(i), noon.Add(-time.Duration(i)*time.Hour), seen("", "", 1), nil)
		h.Load("q", "t", fmt.Sprint(i), noon.Add(-time.Duration(i)*time.Hour), seen("", "", 1), nil)
	}
	for _, id := range []string{"old", "live", "early", "never"} {
		if id == "never" {
			never := both(id)
			never.Confirm(noon)
			never.Remove()
		}
		h.Load("q", "t", id, noon, seen("", "", 1), nil)
	}
	live.Confirm(noon)
	h.Load("q", "t", "too old", noon.Add(-48*time.Hour), seen("", "", 1), errors.New("unreadable, and long gone"))
	h.Ready("q")
	h.Load("q", "t", "late", noon, seen("", "", 1), nil)
	if got := ask(t, h, q, "", noon); got.Count != 13 || got.Sum != 13 {
		t.Errorf("%+v", got)
	}
	if got := ask(t, h, p, "g", noon); got.Count != 3 {
		t.Errorf("%+v", got)
	}
	before := h.held
	h.Use(noon, []*constitution.Past{p})
	if h.Use(noon, nil); before == 0 || h.held != 0 {
		t.Errorf("%d are held for nothing", h.held)
	}
}

// TestClockJumps: nothing is lost when the clock jumps ahead and is set back, and
// what began ahead of it counts.
func TestClockJumps(t *testing.T) {
	p := past("p", 24*time.Hour)
	h := used(100_000, noon, p)
	for i := range 3_000 {
		do(h, noon.Add(time.Duration(i)*time.Second), fmt.Sprint(i), p, seen("", "", 1))
	}
	now := noon.Add(3_000 * time.Second)
	for range 5 {
		ahead := now.Add(30 * 24 * time.Hour)
		do(h, ahead, "ahead", p, seen("x", "", 1))
		if got := ask(t, h, p, "", ahead); got.Count != 0 {
			t.Errorf("%+v within a month", got)
		}
		if got := ask(t, h, p, "", now); got.Count != 3_000 {
			t.Errorf("%d of 3000 after the clock was set back", got.Count)
		}
		if got := ask(t, h, p, "x", now); got.Count == 0 {
			t.Error("what began ahead of the clock does not count")
		}
	}
	// Far behind what the ledger was read from, nothing is known.
	if _, err := h.Add(now, "t", "x", nil).Ask(p, "", noon.Add(-25*time.Hour)); !errors.Is(err, ErrClock) {
		t.Errorf("%v", err)
	}
	h.Add(noon.Add(-25*time.Hour), "t", "y", nil).Drop()
	if unready, _ := h.Use(noon.Add(-25*time.Hour), []*constitution.Past{p}); len(unready) != 1 {
		t.Error("the ledger is not read again")
	}
	for _, wrong := range []time.Time{{}, time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		k := h.Add(wrong, "t", "z", nil)
		if _, err := k.Ask(p, "", wrong); err == nil {
			t.Errorf("%v has an answer", wrong)
		}
		k.Confirm(wrong)
	}
}

// TestWhatHasLeftTheWindowIsPutAway: a week of requests, in groups that come and
// go, holds no more than about a window of them.
func TestWhatHasLeftTheWindowIsPutAway(t *testing.T) {
	p := past("p", time.Hour)
	h := used(1<<40, noon, p)
	most := int64(0)
	for i := range 7 * 24 * 60 * 4 {
		at := noon.Add(time.Duration(i) * 15 * time.Second)
		do(h, at, fmt.Sprint(i), p, seen(fmt.Sprint("g", i/10), fmt.Sprint("v", i%7), 0))
		most = max(most, h.held)
	}
	// An hour is 240 entries in 24 groups of up to 7 values; it is held for
	// two hours and a quarter, and tidied in passing.
	if want := int64(4 * (240 + 24*(groupWeight+7*valueWeight))); most > want {
		t.Errorf("%d were held at most, not %d", most, want)
	}
	if h.held != weigh(h) {
		t.Errorf("%d are counted as held, and %d are", h.held, weigh(h))
	}
	if got, want := h.Status(noon.Add(7 * 24 * time.Hour))[0].Entries, entries(h); got != want {
		t.Errorf("status says %d entries, and %d are held", got, want)
	}
}

// entries counts what is held of crossings.
func entries(h *History) (n int64) {
	for _, k := range h.kept {
		for _, a := range k.tenants {
			for _, g := range a.list {
				n += g.marks.n
			}
		}
	}
	return n
}

// TestShortWindowsMakeNoChunkOfEachEntry: what is held for an hour because clocks
// are set back lies together, however short the window is, and a question does not
// walk over it.
func TestShortWindowsMakeNoChunkOfEachEntry(t *testing.T) {
	p := past("p", time.Second)
	h := used(1<<40, noon, p)
	const each = 250 * time.Millisecond
	now := noon
	for i := range 2 * int(time.Hour/each) {
		now = now.Add(each)
		do(h, now, fmt.Sprint(i), p, seen("g", "", 1))
	}
	a := h.kept["p"].tenants["t"]
	if g := a.groups["g"]; len(g.marks.chunks) > 30 || g.marks.n > 20_000 {
		t.Errorf("%d entries lie in %d chunks", g.marks.n, len(g.marks.chunks))
	}
	for back, want := range map[time.Duration]int64{0: 5, each: 6, time.Minute: 245} {
		if got := ask(t, h, p, "g", now.Add(-back)); got.Count != want || got.Sum != want || !got.Last.Equal(now) {
			t.Errorf("%v before: %+v, want %d", back, got, want)
		}
	}
	if got := ask(t, h, p, "g", now.Add(2*time.Second)); got != (constitution.Answer{}) {
		t.Errorf("later: %+v", got)
	}
}

// TestRemoveLooksInItsOwnGroupAlone: an agent that makes many groups, and whose
// requests never start, does not make each cost as much as all.
func TestRemoveLooksInItsOwnGroupAlone(t *testing.T) {
	testgrowth.Linear(t, 8_000, func(n int) func() {
		return func() {
			p := past("p", time.Hour)
			h := used(1<<40, noon, p)
			tickets := make([]*Ticket, n)
			for i := range tickets {
				tickets[i] = do(h, noon, fmt.Sprint(i), p, seen(fmt.Sprint("g", i), "", 1))
			}
			for _, k := range tickets {
				k.Remove()
			}
			if got := entries(h); got != 0 {
				t.Fatalf("%d are held still", got)
			}
		}
	})
}

// weigh adds up what is held.
func weigh(h *History) int64 {
	var sum int64
	for _, k := range h.kept {
		sum += int64(len(k.loaded))
		for _, a := range k.tenants {
			for _, g := range a.list {
				sum += g.marks.n + groupWeight + valueWeight*int64(len(g.values))
			}
		}
	}
	return sum
}

// TestMemoryIsBounded: beyond the bound the largest aggregate is given up, and
// says so until what it held would have left the window; the small one stays.
func TestMemoryIsBounded(t *testing.T) {
	small, large := past("small", time.Hour), past("large", time.Hour)
	h := used(10_000, noon, small, large)
	do(h, noon, "s", small, seen("", "", 1))
	for i := range 30_000 {
		do(h, noon.Add(time.Duration(i)*time.Millisecond), fmt.Sprint(i), large, seen(fmt.Sprint(i%5_000), "", 1))
		if h.held > 10_000 || h.held != weigh(h) && i%1_000 == 0 {
			t.Fatalf("%d are held", h.held)
		}
	}
	now := noon.Add(30 * time.Second)
	if _, err := h.Add(now, "t", "x", nil).Ask(large, "0", now); !errors.Is(err, ErrUnreadable) {
		t.Errorf("%v", err)
	}
	if got := ask(t, h, small, "", now); got.Count != 1 {
		t.Errorf("%+v", got)
	}
	later := now.Add(time.Hour)
	do(h, later, "l", large, seen("0", "", 1))
	if got := ask(t, h, large, "0", later); got.Count != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSumsBeyond64Bits(t *testing.T) {
	p := past("p", time.Hour)
	h := used(100, noon, p)
	do(h, noon, "1", p, seen("", "", math.MaxInt64))
	two := do(h, noon, "2", p, seen("", "", math.MaxInt64))
	if _, err := h.Add(noon, "t", "x", nil).Ask(p, "", noon); !errors.Is(err, ErrOverflow) {
		t.Errorf("%v", err)
	}
	two.Remove()
	do(h, noon, "3", p, seen("", "", math.MinInt64))
	if got := ask(t, h, p, "", noon); got.Sum != -1 {
		t.Errorf("%+v", got)
	}
}

// TestAskDoesNotWalkTheWindow: over 200,000 entries in a day, a question costs far less
// than a walk over them: a thousand questions cost less than entering a tenth of them.
func TestAskDoesNotWalkTheWindow(t *testing.T) {
	h, p := million(t, 200_000)
	now := noon.Add(24 * time.Hour)
	k := h.Add(now, "t", "x", nil)
	from := testgrowth.Used()
	for range 1_000 {
		if a, err := k.Ask(p, "", now); err != nil || a.Count != 200_000 {
			t.Fatal(a, err)
		}
	}
	asked := testgrowth.Used() - from
	from = testgrowth.Used()
	million(t, 20_000)
	if entered := testgrowth.Used() - from; asked > entered {
		t.Errorf("a thousand questions took %v, a tenth of the entries %v", asked, entered)
	}
}

// TestCostsGrowLinearly: entering in order, in the reverse order, and at random.
func TestCostsGrowLinearly(t *testing.T) {
	for name, at := range map[string]func(i, n int) int{
		"in order":   func(i, _ int) int { return i },
		"in reverse": func(i, n int) int { return n - i },
		"at random":  func(i, n int) int { return (i * 7919) % n },
		"at once":    func(int, int) int { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			testgrowth.Linear(t, 16_000, func(n int) func() {
				return func() {
					p := past("p", 24*time.Hour)
					h := New(1 << 40)
					h.Use(noon, []*constitution.Past{p})
					for i := range n {
						h.Load("p", "t", fmt.Sprint(i), noon.Add(-time.Duration(at(i, n))*100*time.Millisecond), seen("", "", 1), nil)
					}
					h.Ready("p")
					k := h.Add(noon, "t", "x", nil)
					for range n {
						if a, err := k.Ask(p, "", noon.Add(20*time.Hour)); err != nil || a.Count > int64(n) {
							t.Fatal(err)
						}
					}
				}
			})
		})
	}
}

func million(t testing.TB, n int) (*History, *constitution.Past) {
	p := past("p", 24*time.Hour)
	h := used(1<<40, noon, p)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		at := noon.Add(time.Duration(i+1) * (24 * time.Hour / time.Duration(n)))
		do(h, at, fmt.Sprint(i), p, seen("", "", int64(r.IntN(1_000_000))))
	}
	return h, p
}

// BenchmarkAsk: one question to a million entries in a window of a day.
func BenchmarkAsk(b *testing.B) {
	h, p := million(b, 1_000_000)
	for _, c := range []struct {
		name  string
		after time.Duration
	}{{"all", 24 * time.Hour}, {"half", 36 * time.Hour}, {"none", 49 * time.Hour}} {
		now := noon.Add(c.after)
		k := h.Add(now, "t", "x", nil)
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := k.Ask(p, "", now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

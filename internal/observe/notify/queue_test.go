package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// people are channels that do what the test wants.
type people struct {
	mu      sync.Mutex
	fails   map[string]error
	hangs   map[string]bool
	heard   map[string][]string // titles, by channel
	results []Result
	gone    map[string]bool // not configured
	refuses map[string]bool // titles
	lost    map[string]int
	route   []string
}

func (p *people) options() Options {
	return Options{First: time.Millisecond, Slowest: 20 * time.Millisecond, Route: func(Item) []string { return p.route }, Known: func(c string) bool { p.mu.Lock(); defer p.mu.Unlock(); return !p.gone[c] },
		Done: func(r Result) { p.mu.Lock(); p.results = append(p.results, r); p.mu.Unlock() },
		Lost: func(c string, n int) error { p.mu.Lock(); p.lost[c] += n; p.mu.Unlock(); return nil },
		Transport: func(_ context.Context, c string) (Transport, error) {
			return transport(func(ctx context.Context, i Item) error { return p.take(ctx, c, i) }), nil
		}}
}

// transport is a function that delivers.
type transport func(context.Context, Item) error

func (f transport) Send(ctx context.Context, i Item) error { return f(ctx, i) }

// take is what a destination does with an item.
func (p *people) take(ctx context.Context, c string, i Item) error {
	title := i.Message.Title
	if i.Notice != nil {
		title = i.Notice.Event + i.Notice.Review + " " + i.Notice.Why
	}
	p.mu.Lock()
	err, hangs := p.fails[c], p.hangs[c]
	if p.refuses[title] {
		err = &Failure{"it answered 400"}
	}
	if err == nil && !hangs {
		p.heard[c] = append(p.heard[c], title)
	}
	p.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func newPeople() *people {
	return &people{fails: map[string]error{}, hangs: map[string]bool{}, heard: map[string][]string{},
		gone:    map[string]bool{},
		refuses: map[string]bool{}, lost: map[string]int{}}
}

func (p *people) of(channel string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heard[channel])
}

func (p *people) set(f func()) { p.mu.Lock(); f(); p.mu.Unlock() }

// until waits for what comes.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not come", what)
		}
	}
}

func open(t *testing.T, path string, p *people) *Queue {
	t.Helper()
	q, err := OpenQueue(path, p.options())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// running delivers until the function it returns is called.
func running(t *testing.T, q *Queue) func() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); q.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func alert(key string, to ...string) Item {
	return Item{Key: key, To: to, Message: Message{ID: NewID(), Title: key, Severity: "HIGH"}}
}

// One condition of one agent is one alert within its hour, and its end is told
// once, to those who were told.
func Test001_Layer5_Response_onceWithinItsHour(t *testing.T) {
	p, now := newPeople(), time.Now()
	q := open(t, filepath.Join(t.TempDir(), "w"), p)
	defer q.Close()
	running(t, q)
	if q.Clear("a", "", Message{ID: "0"}, false, now) {
		t.Error("the end of what nobody was told")
	}
	for i, want := range []bool{true, false, false} {
		if q.Put(alert("a", "mail", "chat"), now.Add(time.Duration(i)*20*time.Minute)) != want {
			t.Errorf("%d", i)
		}
	}
	if !q.Put(alert("b", "mail"), now) || !q.Put(alert("a", "mail", "chat"), now.Add(61*time.Minute)) {
		t.Error("another condition, or the next hour")
	}
	for i, want := range []bool{true, false} {
		if q.Clear("a", "", Message{ID: fmt.Sprint("over", i), Title: "over a"}, false,
			now.Add(62*time.Minute)) != want {
			t.Errorf("clear %d", i)
		}
	}
	until(t, "all", func() bool { return q.Waiting() == 0 })
	if m, c := p.of("mail"), p.of("chat"); !slices.Equal(m, []string{"a", "b", "a", "over a"}) && len(m) != 4 || !slices.Equal(c, []string{"a", "a", "over a"}) {
		t.Errorf("%v %v", m, c)
	}
	if q.Put(alert("a", "mail"), now.Add(63*time.Minute)) {
		t.Error("what comes and goes is told once within its hour")
	}
	if !q.Put(alert("halt", "mail"), now) || !q.Clear("halt", "", Message{ID: "x"}, true, now) ||
		!q.Put(alert("halt", "mail"), now) {
		t.Error("a second halt is not told")
	}
}

// A channel that hangs or fails holds no other up, is tried again, and what it
// was not told waits for it alone.
func Test001_Layer5_Response_eachChannelByItself(t *testing.T) {
	p := newPeople()
	p.fails["sms"], p.hangs["chat"] = &Failure{"it answered 500"}, true
	q := open(t, filepath.Join(t.TempDir(), "w"), p)
	defer q.Close()
	stop := running(t, q)
	for i := range 5 {
		q.Put(alert(fmt.Sprint(i), "sms", "mail", "chat"), time.Now())
	}
	until(t, "mail", func() bool { return len(p.of("mail")) == 5 })
	until(t, "tries", func() bool {
		s := q.States()
		return len(s) == 3 && s[2].Channel == "sms" && s[2].Failed > 8 && s[2].Waiting == 5 && !s[2].Since.IsZero() && s[2].Why == "it answered 500" && s[1].Waiting == 0 && s[1].Since.IsZero()
	})
	p.set(func() { p.fails["sms"] = nil })
	until(t, "sms", func() bool { return len(p.of("sms")) == 5 })
	if s := q.States(); !s[2].Since.IsZero() || s[2].Sent != 5 {
		t.Errorf("%+v", s)
	}
	stop() // though chat hangs
	if q.Waiting() != 5 {
		t.Errorf("%d wait for chat", q.Waiting())
	}
}

// One message that a service refuses for ever does not keep the others from it,
// and is given up after days.
func Test001_Layer5_Response_oneThatIsRefusedIsGivenUp(t *testing.T) {
	p := newPeople()
	o := p.options()
	o.GiveUp, p.refuses["bad"] = time.Hour, true
	q, err := OpenQueue(filepath.Join(t.TempDir(), "w"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	running(t, q)
	q.Put(alert("bad", "mail"), time.Now())
	for i := range 10 {
		q.Put(alert(fmt.Sprint(i), "mail"), time.Now())
	}
	until(t, "the others", func() bool { return len(p.of("mail")) == 10 })
	q.mu.Lock()
	q.all[0].Put = time.Now().Add(-2 * time.Hour)
	q.mu.Unlock()
	until(t, "given up", func() bool { return q.Waiting() == 0 })
	until(t, "told of", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.results, func(r Result) bool { return r.GivenUp && r.Message.Title == "bad" })
	})
}

// For a day at least an alert is tried, and never oftener than every few seconds
// nor more seldom than every quarter of an hour.
func Test001_Layer5_Response_triedForDays(t *testing.T) {
	p := newPeople()
	o := p.options()
	o.First, o.Slowest = 0, 0
	q, err := OpenQueue(filepath.Join(t.TempDir(), "w"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	now := time.Now()
	q.Put(alert("a", "mail"), now)
	tries, at := 0, now
	for at.Before(now.Add(25 * time.Hour)) {
		due, wait := q.due(at)
		if len(due) == 0 {
			if wait <= 0 || wait > 15*time.Minute {
				t.Fatalf("after %v the next is in %v", at.Sub(now), wait)
			}
			at = at.Add(wait)
			continue
		}
		q.tried(due[0], &Failure{"it answered 500"}, at)
		tries++
	}
	if q.Waiting() != 1 || tries < 96 || tries > 120 {
		t.Errorf("%d tries within 25 hours, %d wait", tries, q.Waiting())
	}
}

// When there is no room the rest is one alert that says how many; what is CRITICAL
// always waits by itself.
func Test001_Layer5_Response_isBounded(t *testing.T) {
	p := newPeople()
	path := filepath.Join(t.TempDir(), "w")
	q := open(t, path, p)
	for i := range MaxWaiting + 50 {
		q.Put(alert(fmt.Sprint(i), "mail"), time.Now())
	}
	for i := range 5 {
		a := alert(fmt.Sprint("critical ", i), "mail")
		a.Critical = true
		if !q.Put(a, time.Now()) {
			t.Fatal("left out")
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q = open(t, path, p)
	defer q.Close()
	running(t, q)
	until(t, "all", func() bool { return q.Waiting() == 0 })
	all := p.of("mail")
	for i := range 5 {
		if all[i] != fmt.Sprint("critical ", i) {
			t.Errorf("%q is told before what is CRITICAL", all[i])
		}
	}
	if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "and 5") && strings.HasSuffix(s, " more alerts") }) || len(all) > MaxWaiting+7 {
		t.Errorf("%d told, the last is %q", len(all), all[len(all)-1])
	}
}

// A flood of what is MEDIUM keeps nothing that is HIGH from being told; nor does one of
// what is HIGH from what is CRITICAL.
func Test001_Layer5_Response_aFloodHidesNothingWorse(t *testing.T) {
	p := newPeople()
	q := open(t, filepath.Join(t.TempDir(), "w"), p)
	defer q.Close()
	for i := range MaxWaiting + 50 {
		a := alert(fmt.Sprint("haste ", i), "chat")
		a.Message.Severity = "MEDIUM"
		q.Put(a, time.Now())
	}
	for i := range MaxWaiting + 50 {
		q.Put(alert(fmt.Sprint("prohibited ", i), "mail"), time.Now())
		if i == 0 && !slices.ContainsFunc(q.all, func(w *waiting) bool { return w.Key == "prohibited 0" }) {
			t.Error("the first that is HIGH was left out")
		}
	}
	a := alert("ledger", "sms")
	a.Critical, a.Message.Severity = true, "CRITICAL"
	q.Put(a, time.Now())
	if n := q.Waiting(); n > MaxWaiting+2 {
		t.Errorf("%d wait", n)
	}
	running(t, q)
	until(t, "all", func() bool { return q.Waiting() == 0 })
	if mail := p.of("mail"); len(mail) < MaxWaiting-1 || !slices.Contains(mail, "prohibited 1") || len(p.of("sms")) != 1 {
		t.Errorf("%d told by mail, %d by sms", len(mail), len(p.of("sms")))
	}
}

// What more was done about a condition stands in its one alert, as long as nobody
// was told.
func Test001_Layer5_Response_saysWhatWasDone(t *testing.T) {
	p := newPeople()
	o := p.options()
	o.Settle = time.Hour
	path := filepath.Join(t.TempDir(), "w")
	q, err := OpenQueue(path, o)
	if err != nil {
		t.Fatal(err)
	}
	running(t, q)
	more := alert("a", "mail")
	more.Rank, more.Message.Title = 3, "and paused"
	for _, a := range []Item{alert("a", "mail"), more, alert("a", "mail")} {
		q.Put(a, time.Now())
	}
	critical := alert("c", "mail")
	critical.Critical = true
	q.Put(critical, time.Now())
	until(t, "what is CRITICAL", func() bool { return len(p.of("mail")) == 1 && q.Waiting() == 1 })
	other := open(t, path, p)
	defer other.Close()
	running(t, other)
	until(t, "the other", func() bool { return len(p.of("mail")) == 2 })
	if got := p.of("mail"); got[1] != "and paused" {
		t.Errorf("%q", got)
	}
}

// Where a channel is configured no more, what waited for it goes another way.
func Test001_Layer5_Response_aChannelThatIsGone(t *testing.T) {
	p := newPeople()
	p.fails["sms"] = &Failure{"no"}
	q := open(t, filepath.Join(t.TempDir(), "w"), p)
	defer q.Close()
	running(t, q)
	q.Put(alert("a", "sms"), time.Now())
	until(t, "a try", func() bool { s := q.States(); return len(s) == 1 && s[0].Failed > 0 })
	p.set(func() { p.gone["sms"], p.route = true, []string{"mail"} })
	q.Reroute()
	until(t, "mail", func() bool { return len(p.of("mail")) == 1 })
	until(t, "none waits", func() bool { return q.Waiting() == 0 })
}

// A restart in the middle loses nothing and tells nothing twice: neither what
// waits, nor what was told within the hour.
func Test001_Layer5_Response_overARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	p := newPeople()
	p.fails["sms"] = &Failure{"no"}
	q := open(t, path, p)
	stop := running(t, q)
	q.Put(alert("a", "sms", "mail"), time.Now())
	until(t, "mail", func() bool { return len(p.of("mail")) == 1 })
	until(t, "kept", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return slices.Equal(q.all[0].To, []string{"sms"}) })
	stop()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	p.fails["sms"] = nil
	q = open(t, path, p)
	defer q.Close()
	if q.Put(alert("a", "sms", "mail"), time.Now()) {
		t.Error("told twice within the hour")
	}
	running(t, q)
	until(t, "sms", func() bool { return len(p.of("sms")) == 1 })
	if !q.Clear("a", "", Message{ID: "over", Title: "over"}, false, time.Now()) {
		t.Error("its end is not told")
	}
	until(t, "the end", func() bool { return len(p.of("mail")) == 2 && len(p.of("sms")) == 2 })
}

// A process that is killed loses nothing that Put has returned for: it is another
// process, which does not come to an end of its own.
func Test001_Layer5_Response_overAKill(t *testing.T) {
	if path := os.Getenv("HF_TEST_ALERTS"); path != "" {
		p := newPeople()
		q := open(t, path, p)
		for i := range 20 {
			q.Put(alert(fmt.Sprint(i), "mail"), time.Now())
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	path := filepath.Join(t.TempDir(), "w")
	cmd := exec.Command(os.Args[0], "-test.run=^Test001_Layer5_Response_overAKill$")
	cmd.Env = append(os.Environ(), "HF_TEST_ALERTS="+path)
	if err := cmd.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"put":{"key":"to`); err != nil { // in the middle of a line
		t.Fatal(err)
	}
	_ = f.Close()
	p := newPeople()
	q := open(t, path, p)
	q.Put(alert("after", "mail"), time.Now())
	_ = q.Close()
	q = open(t, path, p)
	defer q.Close()
	if q.Waiting() != 21 || q.file.lost != 1 {
		t.Fatalf("%d wait, %d lost", q.Waiting(), q.file.lost)
	}
	running(t, q)
	until(t, "all", func() bool { return len(p.of("mail")) == 21 })
}

// A disk that takes nothing keeps nobody from being told; it is said, and what
// still waits is kept once there is room.
func Test001_Layer5_Response_onAFullDisk(t *testing.T) {
	p := newPeople()
	p.fails["sms"] = &Failure{"no"}
	dir := t.TempDir()
	q := open(t, filepath.Join(dir, "w"), p)
	running(t, q)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		full, err = os.Open(os.DevNull) // a file that cannot be written to
	}
	if err != nil {
		t.Fatal(err)
	}
	q.mu.Lock()
	q.file.f = full
	q.mu.Unlock()
	if !q.Put(alert("a", "mail", "sms"), time.Now()) {
		t.Fatal("left out")
	}
	until(t, "mail", func() bool { return len(p.of("mail")) == 1 })
	if q.Fault() == nil {
		t.Error("nothing is said")
	}
	room, err := os.OpenFile(filepath.Join(dir, "w"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	q.mu.Lock()
	q.file.f = room
	q.mu.Unlock()
	q.Put(alert("b", "sms"), time.Now())
	if err := q.Fault(); err != nil {
		t.Error(err)
	}
	_ = full.Close()
	_ = q.Close()
	other := open(t, filepath.Join(dir, "w"), newPeople())
	defer other.Close()
	if other.Waiting() != 2 {
		t.Errorf("%d wait after a restart", other.Waiting())
	}
}

// What stands in the file is bounded, whatever wrote it.
func TestOpenQueue_refusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenQueue(dir, newPeople().options()); err == nil {
		t.Error("a directory")
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenQueue(pipe, newPeople().options()); err == nil {
		t.Error("a pipe")
	}
	if err := os.WriteFile(filepath.Join(dir, "w"), []byte(strings.Repeat("x", 3*maxLine)+"\n{}\nnull\n[]\n\x00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q := open(t, filepath.Join(dir, "w"), newPeople())
	defer q.Close()
	if q.Waiting() != 0 || q.file.lost != 3 {
		t.Errorf("%d wait, %d lost", q.Waiting(), q.file.lost)
	}
}

// The file does not grow with what was told.
func TestQueue_itsFileIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	p := newPeople()
	q := open(t, path, p)
	defer q.Close()
	q.mu.Lock()
	a := alert("a", "mail")
	q.append(a, time.Now())
	for range 40_000 {
		q.write(line{Told: strings.Repeat("k", 200), At: time.Now(), To: []string{"mail"}})
	}
	q.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxQueueFile+maxLine || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Size(), err)
	}
	if other := open(t, path, p); other.Waiting() != 1 {
		t.Errorf("%d wait", other.Waiting())
	}
}

// A channel that is configured no more while it is tried fails no longer.
func Test001_Layer5_Response_aChannelThatIsGoneIsForgotten(t *testing.T) {
	p := newPeople()
	o, begun, end := p.options(), make(chan struct{}), make(chan struct{})
	o.Transport = func(context.Context, string) (Transport, error) {
		return transport(func(context.Context,
			Item) error {
			close(begun)
			<-end
			return &Failure{"it answered 500"}
		}), nil
	}
	q, err := OpenQueue(filepath.Join(t.TempDir(), "w"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	running(t, q)
	q.Put(alert("a", "mail"), time.Now())
	<-begun
	p.set(func() { p.gone["mail"] = true })
	q.Reroute()
	close(end)
	until(t, "the end of the try", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.results) == 1 })
	until(t, "the end of the channel", func() bool { return len(q.States()) == 0 })
}

package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// feed is a Watch and a clock.
type feed struct {
	*Watch
	at  time.Time
	all []Finding
}

func fed(l Limits) *feed { return &feed{Watch: New(l), at: start} }

// act adds an action of one agent, later than the last.
func (f *feed) act(later time.Duration, change func(*Seen)) []Finding {
	f.at = f.at.Add(later)
	s := Seen{Tenant: "t", Agent: "a", Crossing: fmt.Sprint(len(f.all)), At: f.at, Action: uint64(f.at.UnixNano())}
	if change != nil {
		change(&s)
	}
	got := f.Add(s)
	f.all = append(f.all, got...)
	return got
}

// commit tells of a commit that keeps what the agent's last action did.
func (f *feed) commit(files int) {
	f.all = append(f.all, f.Committed("t", "a", "c", files, f.at)...)
}

func (f *feed) tick(later time.Duration) []Finding {
	f.at = f.at.Add(later)
	got := f.Tick(f.at)
	f.all = append(f.all, got...)
	return got
}

// told are the conditions that something was done about, beyond the record.
func told(list []Finding) (names []Name) {
	for _, f := range list {
		if f.Response > Record {
			names = append(names, f.Condition)
		}
	}
	return names
}

func (f *feed) has(name Name) *Finding {
	for i := range f.all {
		if f.all[i].Condition == name && !f.all[i].Cleared {
			return &f.all[i]
		}
	}
	return nil
}

// saidOnce checks that what is said of a finding behind its condition's name does not
// say the name again.
func saidOnce(t *testing.T, list []Finding) {
	t.Helper()
	for i := range list {
		name := strings.ReplaceAll(string(list[i].Condition), "_", " ")
		if why := list[i].Why; strings.Contains(why, ": ") || strings.HasPrefix(why, "a "+name) || strings.HasPrefix(why, name) {
			t.Errorf("it is said twice: %s", list[i].String())
		}
	}
}

// Test001_Layer5_Severities: what is done about each severity, and which
// condition has which (spec 001 "Anomaly Response"; D41a).
func Test001_Layer5_Severities(t *testing.T) {
	for s, r := range map[Severity]Response{Low: Record, Medium: Alert, High: Pause, Critical: Halt} {
		if s.Response() != r {
			t.Errorf("%v is answered with %v, not %v", s, s.Response(), r)
		}
	}
	want := map[Severity][]Name{
		Critical: {LedgerFailed, LatchFailed, VerificationFailed},
		High:     {Loop, ErrorRate, CostPerHour, SessionBudget, Prohibited, Escape},
		Medium:   {StepsPerHour, FilesPerCommit, Rapid, Escalating, NoHumanCheck, Errors, ChannelFailed, SnapshotMissing},
		Low:      {Outlier, Unusual, Repetition},
	}
	n := 0
	for _, c := range Conditions() {
		if !slices.Contains(want[c.Severity], c.Name) {
			t.Errorf("%s is %v", c.Name, c.Severity)
		}
		n++
	}
	for _, names := range want {
		n -= len(names)
	}
	if n != 0 {
		t.Errorf("%d conditions more or less than expected", n)
	}
	if r, ok := ResponseOf("halt"); !ok || r != Halt {
		t.Error("halt is not read")
	}
	if _, ok := ResponseOf("none"); ok {
		t.Error("a response that is none is read")
	}
}

// Test001_Layer5_Metrics: each row of "Metrics to Track" at its threshold and
// beyond it.
func Test001_Layer5_Metrics(t *testing.T) {
	for _, row := range []struct {
		name   Name
		no     func(*feed) // at the threshold
		yes    func(*feed) // what comes beyond it
		answer Response
	}{
		{StepsPerHour, func(f *feed) {
			for range 20 {
				f.act(2*time.Minute, func(s *Seen) { s.Step = true })
			}
		}, func(f *feed) { f.act(time.Minute, func(s *Seen) { s.Step = true }) }, Alert},
		{CostPerHour, func(f *feed) {
			for range 5 {
				f.act(time.Minute, func(s *Seen) { s.Cost = 1_000_000 })
			}
		}, func(f *feed) { f.act(time.Minute, func(s *Seen) { s.Cost = 1 }) }, Pause},
		{ErrorRate, func(f *feed) {
			for i := range 100 {
				f.act(time.Minute, func(s *Seen) { s.Failed = i%20 == 19 })
			}
		}, func(f *feed) {
			f.act(time.Minute, func(s *Seen) { s.Failed = true })
			f.tick(3 * time.Second)
		}, Pause},
		{FilesPerCommit, func(f *feed) { f.act(0, nil); f.commit(10) }, func(f *feed) { f.commit(11) }, Alert},
		{Loop, func(f *feed) {
			for range 4 {
				f.act(time.Minute, func(s *Seen) { s.Action = 1 })
			}
		}, func(f *feed) { f.act(time.Minute, func(s *Seen) { s.Action = 1 }) }, Pause},
		{NoHumanCheck, func(f *feed) {
			f.act(0, nil)
			f.act(23*time.Hour, nil)
			f.tick(time.Hour)
		}, func(f *feed) { f.tick(time.Second) }, Alert},
	} {
		t.Run(string(row.name), func(t *testing.T) {
			f := fed(Limits{})
			row.no(f)
			if got := f.has(row.name); got != nil {
				t.Fatalf("at the threshold already: %+v", got)
			}
			row.yes(f)
			got := f.has(row.name)
			if got == nil {
				t.Fatalf("not found; only %+v", f.all)
			}
			if got.Response != row.answer || got.Tenant != "t" || got.Why == "" {
				t.Errorf("%+v", got)
			}
			saidOnce(t, f.all)
		})
	}
}

// Test001_TestAnomalyDetection is the document's own test, whose code could not
// pass (findings.md 5.2, 11): ten times the same action is a loop, and the first
// that is told.
func Test001_TestAnomalyDetection(t *testing.T) {
	f := fed(Limits{})
	for range 10 {
		f.act(time.Second, func(s *Seen) { s.Action, s.Cost = 7, 10_000 })
	}
	if len(f.all) == 0 || !strings.Contains(f.all[0].String(), "loop") {
		t.Errorf("%+v", f.all)
	}
	// One cause, one alarm: haste is the loop's consequence.
	f.tick(3 * time.Second)
	if got := told(f.all); !slices.Equal(got, []Name{Loop}) {
		t.Errorf("told of %v", got)
	}
	if r := f.has(Rapid); r == nil || r.Cause != Loop || r.Response != Record {
		t.Errorf("%+v", r)
	}
	// The finding names the agent, not itself (findings.md 5.2, 12).
	if f.all[0].Agent != "a" {
		t.Errorf("whose: %q", f.all[0].Agent)
	}
}

// TestD39_Patterns: what the document's detector misses (findings.md 5.2, 8), and
// what is none.
func TestD39_Patterns(t *testing.T) {
	for what, want := range map[string]bool{
		"aaaa": false, "aaaaa": true, "baaaaa": true, "aaaab": false, "ababa": true, "abab": false, "babab": true,
		"abcabc": false, "abcabca": true, "aabbaabb": false, "abcdeabcde": false, "abacabad": false, "": false, "aabaa": false,
	} {
		var of turns
		for _, one := range what {
			of.add(uint64(one))
		}
		if n, _ := of.loop(); n > 0 != want {
			t.Errorf("%q: %d", what, n)
		}
	}
	for _, c := range []struct {
		times []int64
		want  bool
	}{
		{[]int64{0, 1, 2, 3}, false}, {[]int64{0, 1, 2, 3, 4}, true}, {[]int64{0, 4, 8, 12, 16}, true}, {[]int64{0, 5, 10, 15, 20}, false},
		{[]int64{0, 1, 2, 3, 4, 5, 6, 12, 13, 14}, true}, // one pause of 6 s
		{[]int64{0, 1, 7, 8, 14, 15}, false},             // two pauses
	} {
		times := slices.Clone(c.times)
		for i := range times {
			times[i] *= int64(time.Second)
		}
		if got := isRapid(times); got != c.want {
			t.Errorf("%v: %v", c.times, got)
		}
	}
	for _, c := range []struct {
		costs []int64
		want  bool
	}{
		{[]int64{1, 2, 3, 4}, false}, {[]int64{1, 2, 3, 4, 5}, true}, {[]int64{10, 20, 30, 25, 40, 50}, true},
		{[]int64{10, 20, 15, 30, 25, 40}, false}, {[]int64{5, 5, 5, 5, 5}, false}, {[]int64{100, 101, 102, 103, 104}, false}, {[]int64{0, 0, 0, 0, 1}, false},
	} {
		if got := escalates(c.costs); got != c.want {
			t.Errorf("%v: %v", c.costs, got)
		}
	}
}

// TestD39_Outliers: against history without the value, of at least ten, with a
// floor for one that does not vary (findings.md 5.2, 9).
func TestD39_Outliers(t *testing.T) {
	same := slices.Repeat([]float64{100}, 10)
	for _, c := range []struct {
		value     float64
		history   []float64
		is, known bool
	}{
		{1e9, same[:9], false, false},
		{102, same, false, true}, {104, same, true, true}, {96, same, true, true},
		{20, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, true, true},
		{12, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false, true},
	} {
		s := usual(c.history, 1, false)
		if is := s.known && !s.has(c.value); is != c.is || s.known != c.known {
			t.Errorf("%v in %v: %v, %v", c.value, c.history, is, s.known)
		}
	}
}

// TestD39_learnedOnlyTightens: what the past makes usual is told of below the
// document's figure, and never lets it be passed.
func TestD39_learnedOnlyTightens(t *testing.T) {
	for name, per := range map[string]int{"little": 2, "much": 60} {
		t.Run(name, func(t *testing.T) {
			w := New(Limits{})
			for h := range 20 {
				for i := range per {
					w.Load(Seen{Tenant: "t", Agent: "a", At: start.Add(time.Duration(h-21)*time.Hour + time.Duration(i)*time.Second), Step: true})
				}
			}
			w.Learned()
			f := &feed{Watch: w, at: start}
			for range 15 {
				f.act(time.Minute, func(s *Seen) { s.Step = true })
			}
			if got := f.has(Unusual); (got != nil) != (name == "little") || got != nil && got.Response != Record {
				t.Errorf("15 where %d were usual: %+v", per, got)
			}
			for range 6 {
				f.act(time.Minute, func(s *Seen) { s.Step = true })
			}
			if got := f.has(StepsPerHour); got == nil || got.Response != Alert {
				t.Errorf("21 where %d were usual: %+v", per, got)
			}
		})
	}
	l := Limits{StepsPerHour: 1000, CostPerHour: 1 << 40, ErrorRate: 0.9, FilesPerCommit: 1000, Unchecked: 1000 * time.Hour}
	if got, want := fmt.Sprint(l.within()), fmt.Sprint(Document()); got != want {
		t.Errorf("larger limits are in force: %v, not %v", got, want)
	}
}

// TestOutlierOfAnHour: an hour unlike those before it is recorded when it ends.
func TestOutlierOfAnHour(t *testing.T) {
	f := fed(Limits{})
	for range 12 {
		for range 3 {
			f.act(time.Minute, nil)
		}
		f.act(57*time.Minute, nil)
	}
	for range 50 {
		f.act(30*time.Second, nil)
	}
	if f.has(Outlier) != nil {
		t.Fatal("before the hour ended")
	}
	f.act(time.Hour, nil)
	if got := f.has(Outlier); got == nil || got.Response != Record || !strings.Contains(got.Why, "actions") {
		t.Errorf("%+v of %+v", got, f.all)
	}
	saidOnce(t, f.all)
}

// TestRepeatedErrors: three in a row ask for a person (spec 001 "On error").
func TestRepeatedErrors(t *testing.T) {
	f := fed(Limits{})
	fail := func(s *Seen) { s.Failed = true }
	f.act(time.Minute, fail)
	f.act(time.Minute, fail)
	f.act(time.Minute, nil)
	f.act(time.Minute, fail)
	f.act(time.Minute, fail)
	if f.has(Errors) != nil {
		t.Fatal("two in a row")
	}
	f.act(time.Minute, fail)
	f.tick(3 * time.Second)
	if got := f.has(Errors); got == nil || !got.Asks || got.Response != Alert {
		t.Errorf("%+v", got)
	}
}

// TestOneCauseOneAlarm: what depends on a condition that holds is kept back, is
// told when the cause is gone, and never twice within the hour.
func TestOneCauseOneAlarm(t *testing.T) {
	f := fed(Limits{})
	f.all = append(f.all, f.Set("", "", LedgerFailed, true, f.at, "the disk is full")...)
	for i := range 40 {
		f.act(time.Minute, func(s *Seen) { s.Failed = i%2 == 0 })
	}
	f.tick(time.Minute)
	if got := told(f.all); !slices.Equal(got, []Name{LedgerFailed}) {
		t.Fatalf("told of %v", got)
	}
	if got := f.has(ErrorRate); got == nil || got.Cause != LedgerFailed {
		t.Fatalf("%+v", got)
	}
	f.all = f.Set("", "", LedgerFailed, false, f.at, "")
	f.tick(time.Second)
	if got := told(f.all); !slices.Equal(got, []Name{ErrorRate}) {
		t.Fatalf("after its end %v", f.all)
	}
	if got := f.has(ErrorRate); !strings.Contains(got.Why, "%") {
		t.Errorf("why: %q", got.Why)
	}
	f.all = nil
	for range 5 {
		f.tick(time.Minute)
	}
	if len(f.all) != 0 {
		t.Errorf("told again: %+v", f.all)
	}
}

// TestAlarmsDoNotFlap: people are told once an hour of what comes and goes; an
// agent is paused each time.
func TestAlarmsDoNotFlap(t *testing.T) {
	f := fed(Limits{})
	for range 5 {
		f.Set("t", "", SnapshotMissing, true, f.at, "none since yesterday")
		f.tick(2 * time.Minute)
		f.Set("t", "", SnapshotMissing, false, f.at, "")
		f.tick(time.Minute)
	}
	if got := told(f.all); len(got) != 1 {
		t.Errorf("told %v", got)
	}
	f.all = nil
	for range 3 {
		for range 5 {
			f.act(time.Minute, func(s *Seen) { s.Action = 1 })
		}
		f.Forgive("t", "a", f.at)
	}
	if got := told(f.all); !slices.Equal(got, []Name{Loop, Loop, Loop}) {
		t.Errorf("paused for %v", got)
	}
}

// TestWhatComesAndGoesIsToldEachHour: coming and going for less than an hour spares
// people one hour, and neither the next nor what then holds on, over a restart too.
func TestWhatComesAndGoesIsToldEachHour(t *testing.T) {
	f := fed(Limits{})
	comesAndGoes := func(times int) {
		for range times {
			f.Set("t", "", SnapshotMissing, true, f.at, "none since yesterday")
			f.tick(20 * time.Minute)
			f.all = append(f.all, f.Set("t", "", SnapshotMissing, false, f.at, "")...)
			f.tick(10 * time.Minute)
		}
	}
	comesAndGoes(12)
	if n := len(told(f.all)); n < 4 || n > 6 {
		t.Errorf("told %d times within six hours", n)
	}
	for name, restarted := range map[string]bool{"by one that goes on": false, "by one that begins anew": true} {
		f = fed(Limits{})
		comesAndGoes(1)
		f.Set("t", "", SnapshotMissing, true, f.at, "none since yesterday")
		f.tick(2 * time.Minute)
		if restarted {
			past := f.all
			f = &feed{Watch: New(Limits{}), at: f.at}
			for _, one := range past {
				f.LoadTold(one)
			}
		}
		f.all = nil
		for range 24 * 60 {
			f.Set("t", "", SnapshotMissing, true, f.at, "none since yesterday")
			f.tick(time.Minute)
		}
		if got := told(f.all); len(got) != 1 || f.all[len(f.all)-1].Why != "none since yesterday" {
			t.Errorf("%s, of what holds for a day: %v", name, lines(f.all))
		}
	}
}

// TestForgiven: when a person lets an agent go on its past is no pattern, but the
// hour's figures stay.
func TestForgiven(t *testing.T) {
	f := fed(Limits{})
	for range 5 {
		f.act(time.Minute, func(s *Seen) { s.Action, s.Cost = 1, 2_000_000 })
	}
	f.all = f.Forgive("t", "a", f.at)
	if len(f.all) == 0 || !f.all[0].Cleared {
		t.Errorf("%+v", f.all)
	}
	f.all = nil
	f.act(time.Minute, func(s *Seen) { s.Action = 1 })
	if got := told(f.all); !slices.Equal(got, []Name{CostPerHour}) {
		t.Errorf("%+v", f.all)
	}
}

// TestAbove: what sub-agents spend and do counts for the agent above them too,
// their patterns do not.
func TestAbove(t *testing.T) {
	f := fed(Limits{})
	for i := range 6 {
		f.act(time.Minute, func(s *Seen) {
			s.Agent, s.Above, s.Action, s.Cost = fmt.Sprintf("a/%d", i), []string{"a"}, 1, 1_000_000
		})
	}
	got := f.has(CostPerHour)
	if got == nil || got.Agent != "a" || f.has(Loop) != nil {
		t.Errorf("%+v", f.all)
	}
}

// TestEvents: what the kernel answers itself is recorded; a prohibited act pauses.
func TestEvents(t *testing.T) {
	f := fed(Limits{Responses: map[Name]Response{Prohibited: Halt}})
	f.act(time.Minute, func(s *Seen) { s.Escape, s.OverBudget = true, true })
	if len(told(f.all)) != 0 || f.has(Escape) == nil || f.has(SessionBudget) == nil {
		t.Errorf("%+v", f.all)
	}
	f.act(time.Minute, func(s *Seen) { s.Prohibited = true })
	f.act(time.Minute, func(s *Seen) { s.Prohibited = true })
	n := 0
	for _, one := range f.all {
		if one.Condition == Prohibited && one.Response == Halt {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%+v", f.all)
	}
	if got := f.Hold(); len(got) != 3 {
		t.Errorf("hold: %+v", got)
	}
	f.tick(2 * time.Hour)
	if got := f.Hold(); len(got) != 0 {
		t.Errorf("hold after two hours: %+v", got)
	}
}

// TestPeopleLook: a person's look ends the wait for one; without agents that act
// nobody is waited for.
func TestPeopleLook(t *testing.T) {
	f := fed(Limits{})
	f.tick(100 * time.Hour)
	f.act(0, nil)
	f.tick(20 * time.Hour)
	f.Person("t", f.at)
	f.act(time.Hour, nil)
	f.tick(22 * time.Hour)
	if f.has(NoHumanCheck) != nil {
		t.Fatalf("%+v", f.all)
	}
	f.tick(2 * time.Hour)
	if f.has(NoHumanCheck) == nil {
		t.Fatal("nobody looked for 25 hours")
	}
	f.all = f.Person("t", f.at)
	if len(f.all) != 1 || !f.all[0].Cleared {
		t.Errorf("%+v", f.all)
	}
}

// TestClocksJump: a clock that is set back or far ahead loses nothing and finds
// nothing.
func TestClocksJump(t *testing.T) {
	f := fed(Limits{})
	for _, jump := range []time.Duration{time.Hour, -30 * time.Hour, time.Minute, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour, time.Minute} {
		f.at = f.at.Add(jump)
		for range 3 {
			f.act(time.Minute, func(s *Seen) { s.Step = true })
		}
	}
	for _, one := range f.all {
		if one.Condition != Rapid && one.Condition != NoHumanCheck {
			t.Errorf("%+v", one)
		}
	}
	a := f.agents[key{"t", "a"}]
	n := 0
	for i, b := range a.hours {
		n += int(b.actions)
		if i > 0 && b.hour <= a.hours[i-1].hour {
			t.Errorf("hours out of order: %+v", a.hours)
		}
	}
	if n != 18 {
		t.Errorf("%d of 18 actions", n)
	}
}

// TestHugeFigures: amounts at the ends of their types neither wrap nor panic.
func TestHugeFigures(t *testing.T) {
	f := fed(Limits{})
	for i := range 30 {
		f.act(time.Duration(i)*time.Minute, func(s *Seen) {
			if s.Cost = 1<<63 - 1; i%3 == 0 {
				s.Cost = -1 << 63
			}
		})
		f.commit([]int{-1 << 63, -1, 1<<63 - 1}[i%3])
	}
	if f.has(CostPerHour) == nil || f.has(FilesPerCommit) == nil {
		t.Error("not found")
	}
	if got := f.Rates(f.at); len(got) != 1 || got[0].CostPerHour < 0 || got[0].Files != 1<<16-1 {
		t.Errorf("%+v", got)
	}
}

// TestRoom: agents beyond the bound make room; those of whom something holds stay.
func TestRoom(t *testing.T) {
	w := New(Limits{})
	w.room = 1000
	for range 5 {
		w.Add(Seen{Tenant: "t", Agent: "looped", At: start, Action: 1})
	}
	for i := range w.room + 10 {
		w.Add(Seen{Tenant: "t", Agent: fmt.Sprint(i), At: start.Add(time.Duration(i+1) * time.Millisecond), Action: uint64(i)})
	}
	if len(w.agents) > w.room || w.Forgotten() == 0 || w.agents[key{"t", "looped"}] == nil || w.agents[key{"t", ""}] == nil {
		t.Errorf("%d agents, %d forgotten", len(w.agents), w.Forgotten())
	}
}

// TestLoaded: the past comes in any order, and beside what happens meanwhile.
func TestLoaded(t *testing.T) {
	w := New(Limits{})
	w.Add(Seen{Tenant: "t", Agent: "a", At: start})
	for _, h := range []int{-3, -20, -1, -20, -400, 0} {
		w.Load(Seen{Tenant: "t", Agent: "a", At: start.Add(time.Duration(h) * time.Hour), Cost: 5})
	}
	w.LoadPerson("t", start.Add(-2*time.Hour))
	w.LoadPerson("t", start.Add(-5*time.Hour))
	w.Learned()
	var got []int32
	for _, b := range w.agents[key{"t", "a"}].hours {
		got = append(got, b.hour-int32(start.Unix()/3600), int32(b.actions))
	}
	if want := []int32{-400, 1, -20, 2, -3, 1, -1, 1, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if at, ok := w.Looked("t"); !ok || !at.Equal(start.Add(-2*time.Hour)) {
		t.Errorf("looked %v %v", at, ok)
	}
}

// TestLastHourAddsUp: what an hour came to is what its slots hold, whatever the clock did.
func TestLastHourAddsUp(t *testing.T) {
	r, at, rng := &recent{}, start.UnixNano(), rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		at += []int64{0, 1, slot / 3, slot, 5 * slot, 2 * hour, -slot}[rng.IntN(7)]
		cost := rng.Int64N(1000)
		if rng.IntN(500) == 0 {
			cost = 1<<63 - 1
		}
		r.add(at, &Seen{Step: rng.IntN(2) == 0, Cost: cost, Passive: rng.IntN(2) == 0}, true)
		if rng.IntN(100) == 0 {
			r.forget()
		}
		spent, steps := int64(0), 0.0
		cost, done := r.hourly(at)
		for i := range slots {
			spent = sum(spent, r.cost[i])
			steps += float64(r.steps[i])
		}
		if cost != spent || done != steps {
			t.Fatalf("%d and %v, where the slots hold %d and %v", cost, done, spent, steps)
		}
	}
}

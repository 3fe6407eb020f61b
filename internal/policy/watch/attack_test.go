package watch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The attempts of an agent that knows this package line by line and wants to act
// unseen. Each says what sees it; those that no pattern can see say which of the
// plain limits does.

// attempt is one of them.
type attempt struct {
	name   string
	limits Limits
	by     func(*feed)
	sees   Name
	answer Response
}

func (x attempt) run(t *testing.T) {
	t.Run(x.name, func(t *testing.T) {
		f := fed(x.limits)
		x.by(f)
		saidOnce(t, f.all)
		if x.sees == Errors {
			f.tick(3 * time.Second)
		}
		whose := "a"
		if x.sees == NoHumanCheck {
			whose = ""
		}
		for _, got := range f.all {
			if got.Condition == x.sees && got.Agent == whose && got.Response == x.answer && !got.Cleared && got.Cause == "" {
				return
			}
		}
		t.Errorf("no %s of %s was answered with %v: %v", x.sees, whose, x.answer, lines(f.all))
	})
}

func lines(list []Finding) (out []string) {
	for _, f := range list {
		s := fmt.Sprintf("%s of %q: %v", f.Condition, f.Agent, f.Response)
		if f.Cause != "" {
			s += " behind " + string(f.Cause)
		}
		if f.Cleared {
			s += " cleared"
		}
		out = append(out, s)
	}
	return out
}

// spell makes the agent do what each letter of a word stands for; x is another
// thing each time.
func (f *feed) spell(word string, apart time.Duration, change func(*Seen)) {
	for _, r := range word {
		f.act(apart, func(s *Seen) {
			if r != 'x' {
				s.Action = uint64(r)
			}
			if change != nil {
				change(s)
			}
		})
	}
}

// Test001_Layer5_Attack_loops: a loop that is longer, interrupted, or slow.
func Test001_Layer5_Attack_loops(t *testing.T) {
	spelled := func(word string, apart time.Duration) func(*feed) {
		return func(f *feed) { f.spell(word, apart, nil) }
	}
	for _, x := range []attempt{
		{name: "a cycle of four", by: spelled(strings.Repeat("abcd", 4), time.Minute), sees: Loop, answer: Pause},
		{name: "a cycle of sixteen", by: spelled(strings.Repeat("abcdefghijklmnop", 4), time.Minute), sees: Loop, answer: Pause},
		{name: "another thing each fifth time", by: spelled(strings.Repeat("aaaab", 4), time.Minute), sees: Loop, answer: Pause},
		{name: "something new each fifth time", by: spelled(strings.Repeat("aaaax", 12), time.Minute), sees: Loop, answer: Pause},
		{name: "something new each tenth time of a cycle's", by: spelled(strings.Repeat("ababababax", 2), time.Minute), sees: Loop, answer: Pause},
		{name: "just within the hour", by: spelled("aaaaa", 59*time.Minute), sees: Loop, answer: Pause},
		{name: "a person let it go on, and it goes on", by: func(f *feed) {
			f.spell("aaaaa", time.Minute, nil)
			f.Forgive("t", "a", f.at)
			f.all = nil
			f.spell("aaaaa", time.Minute, nil)
		}, sees: Loop, answer: Pause},
	} {
		x.run(t)
	}
}

// Test001_Layer5_Attack_a_counter_in_the_payload: what differs in each payload is
// another action each time, so that it is no loop. The boundary is the same,
// which is recorded; what it costs, hastens and fails is seen as ever.
func Test001_Layer5_Attack_a_counter_in_the_payload(t *testing.T) {
	counted := func(n int, apart time.Duration, change func(*Seen)) func(*feed) {
		return func(f *feed) {
			for range n {
				f.act(apart, func(s *Seen) {
					s.Kind = 9
					if change != nil {
						change(s)
					}
				})
			}
		}
	}
	for _, x := range []attempt{
		{name: "slowly", by: counted(60, time.Minute, nil), sees: Repetition, answer: Record},
		{name: "and now and then another boundary", by: func(f *feed) {
			for i := range 200 {
				f.act(10*time.Second, func(s *Seen) {
					if s.Kind = 9; i%20 == 0 {
						s.Kind = 8
					}
				})
			}
		}, sees: Repetition, answer: Record},
		{name: "quickly", by: func(f *feed) { counted(5, time.Second, nil)(f); f.tick(3 * time.Second) }, sees: Rapid, answer: Alert},
		{name: "dearly", by: counted(11, time.Minute, func(s *Seen) { s.Cost = 500_000 }), sees: CostPerHour, answer: Pause},
		{name: "as iterations", by: counted(21, 2*time.Minute, func(s *Seen) { s.Step = true }), sees: StepsPerHour, answer: Alert},
		{name: "without coming to anything", by: counted(3, time.Minute, func(s *Seen) { s.Failed = true }), sees: Errors, answer: Alert},
		{name: "two boundaries in turns, dearly", by: func(f *feed) {
			for i := range 12 {
				f.act(time.Minute, func(s *Seen) { s.Kind, s.Cost = uint64(1+i%2), 500_000 })
			}
		}, sees: CostPerHour, answer: Pause},
		{name: "more than it ever did", by: func(f *feed) {
			for range 12 {
				counted(10, time.Minute, nil)(f)
				f.act(50*time.Minute, nil)
			}
			f.at = f.at.Truncate(time.Hour).Add(time.Hour)
			counted(40, time.Minute, nil)(f)
		}, sees: Unusual, answer: Record},
	} {
		x.run(t)
	}
}

// Test001_Layer5_Attack_errors: errors among what goes well.
func Test001_Layer5_Attack_errors(t *testing.T) {
	fail := func(s *Seen) { s.Failed = true }
	ask := func(s *Seen) { s.Passive = true }
	for _, x := range []attempt{
		{name: "a question to a model after each", by: func(f *feed) {
			for range 3 {
				f.act(time.Minute, fail)
				f.act(time.Minute, ask)
			}
		}, sees: Errors, answer: Alert},
		{name: "something refused after each", by: func(f *feed) {
			for range 3 {
				f.act(time.Minute, fail)
				f.act(time.Minute, func(s *Seen) { s.Refused = true })
			}
		}, sees: Errors, answer: Alert},
		{name: "what is refused dilutes", by: func(f *feed) {
			for i := range 400 {
				f.act(time.Minute, func(s *Seen) { s.Failed, s.Refused = i%100 == 99, i%10 < 9 })
			}
			f.tick(3 * time.Second)
		}, sees: ErrorRate, answer: Pause},
		{name: "questions to models dilute", by: func(f *feed) {
			for i := range 40 {
				f.act(time.Minute, func(s *Seen) { s.Failed = i%10 == 9 })
				for range 3 {
					f.act(time.Second, ask)
				}
			}
			f.tick(3 * time.Second)
		}, sees: ErrorRate, answer: Pause},
		{name: "questions that fail are not diluted either", by: func(f *feed) {
			for i := range 40 {
				f.act(time.Minute, func(s *Seen) { s.Passive, s.Failed = true, i%10 == 9 })
				for range 3 {
					f.act(time.Second, nil)
				}
			}
			f.tick(3 * time.Second)
		}, sees: ErrorRate, answer: Pause},
		{name: "sub-agents dilute", by: func(f *feed) {
			for i := range 40 {
				f.act(time.Minute, func(s *Seen) { s.Failed = i%10 == 9 })
				for range 9 {
					f.act(time.Second, func(s *Seen) { s.Agent, s.Above = "a/b", []string{"a"} })
				}
			}
			f.tick(3 * time.Second)
		}, sees: ErrorRate, answer: Pause},
		{name: "a sub-agent's success after each", by: func(f *feed) {
			for range 3 {
				f.act(time.Minute, fail)
				f.act(time.Minute, func(s *Seen) { s.Agent, s.Above = "a/b", []string{"a"} })
			}
		}, sees: Errors, answer: Alert},
		{name: "a new sub-agent before anything is known of the last", by: func(f *feed) {
			for i := range 40 {
				f.act(time.Minute, func(s *Seen) {
					s.Agent, s.Above, s.Failed = fmt.Sprintf("a/%d", i/10), []string{"a"}, i%5 == 4
				})
			}
			f.tick(3 * time.Second)
		}, sees: ErrorRate, answer: Pause},
		{name: "washed out before it can be seen", by: func(f *feed) {
			for i := range 60 {
				f.act(time.Millisecond, func(s *Seen) { s.Failed = i%2 == 0 })
			}
			for range 100 {
				f.act(time.Millisecond, nil)
			}
			f.tick(3 * time.Second)
		}, sees: ErrorRate, answer: Pause},
		{name: "washed out, and nobody ticks", by: func(f *feed) {
			for i := range 60 {
				f.act(time.Millisecond, func(s *Seen) { s.Failed = i%2 == 0 })
			}
			for range 100 {
				f.act(time.Millisecond, nil)
			}
			f.act(3*time.Second, nil)
		}, sees: ErrorRate, answer: Pause},
	} {
		x.run(t)
	}
}

// Test001_Layer5_Attack_costs: amounts at the edges of hours, of types, and spread.
func Test001_Layer5_Attack_costs(t *testing.T) {
	spend := func(micro int64) func(*Seen) { return func(s *Seen) { s.Cost = micro } }
	for _, x := range []attempt{
		{name: "as much as there is", by: func(f *feed) { f.act(0, spend(math.MaxInt64)) }, sees: CostPerHour, answer: Pause},
		{name: "below nothing first", by: func(f *feed) { f.act(0, spend(math.MinInt64)); f.act(0, spend(5_000_001)) }, sees: CostPerHour, answer: Pause},
		{name: "on both sides of an hour's edge", by: func(f *feed) {
			f.at = start.Add(59 * time.Minute)
			f.act(0, spend(4_000_000))
			f.act(2*time.Minute, spend(4_000_000))
		}, sees: CostPerHour, answer: Pause},
		{name: "at the end of a slot, and a second less than an hour later", by: func(f *feed) {
			f.at = start.Add(5*time.Minute - time.Second)
			f.act(0, spend(4_900_000))
			f.act(time.Hour-time.Second, spend(4_900_000))
		}, sees: CostPerHour, answer: Pause},
		{name: "in a sub-agent each", by: func(f *feed) {
			for i := range 6 {
				f.act(time.Minute, func(s *Seen) { s.Agent, s.Above, s.Cost = fmt.Sprintf("a/%d", i), []string{"a"}, 1_000_000 })
			}
		}, sees: CostPerHour, answer: Pause},
		{name: "asked of models", by: func(f *feed) {
			for range 6 {
				f.act(time.Minute, func(s *Seen) { s.Passive, s.Cost = true, 1_000_000 })
			}
		}, sees: CostPerHour, answer: Pause},
		{name: "dearer each time, with free ones between", by: func(f *feed) {
			for i := range 6 {
				f.act(time.Minute, spend(int64(1000*(i+1))))
				f.act(time.Minute, nil)
				f.act(time.Minute, nil)
			}
		}, sees: Escalating, answer: Alert},
		{name: "dearer each second time", by: func(f *feed) {
			for i := range 6 {
				f.act(time.Minute, spend(int64(1000*(i+1))))
				f.act(time.Minute, spend(int64(1000*(i+1))))
			}
		}, sees: Escalating, answer: Alert},
		{name: "dearer, with a cheap one between: the sum sees it", by: func(f *feed) {
			for i := range 20 {
				f.act(time.Minute, spend(int64(100_000*(i+1))))
				f.act(time.Minute, spend(1))
			}
		}, sees: CostPerHour, answer: Pause},
	} {
		x.run(t)
	}
}

// Test001_Layer5_Attack_any_hour: whenever more than the limit was spent within any
// hour, to the nanosecond, it holds; and it never does where no hour and two minutes
// saw as much.
func Test001_Layer5_Attack_any_hour(t *testing.T) {
	type spent struct {
		at    time.Time
		micro int64
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, past := fed(Limits{}), []spent{}
		within := func(d time.Duration) (sum int64) {
			for _, s := range past {
				if f.at.Sub(s.at) < d {
					sum += s.micro
				}
			}
			return sum
		}
		for range 300 {
			later, micro := time.Duration(r.Int64N(int64(40*time.Minute))), r.Int64N(3_000_000)
			if r.IntN(3) > 0 {
				later = time.Duration(r.Int64N(int64(time.Minute)))
			}
			f.act(later, func(s *Seen) { s.Cost = micro })
			past = append(past, spent{f.at, micro})
			holds := slices.ContainsFunc(f.Hold(), func(s State) bool { return s.Condition == CostPerHour })
			if hour, longer := within(time.Hour), within(time.Hour+time.Duration(slot)); holds && longer <= 5_000_000 || !holds && hour > 5_000_000 {
				t.Fatalf("seed %d, %v: %d within the hour, %d within two minutes more, holds: %v", seed, f.at, hour, longer, holds)
			}
		}
	}
}

// Test001_Layer5_Attack_behind_a_cause: a cheap condition hides no dear one.
func Test001_Layer5_Attack_behind_a_cause(t *testing.T) {
	loopAndSpend := func(f *feed) {
		f.spell("aaaaaaaa", time.Minute, func(s *Seen) { s.Cost = 1_000_000 })
	}
	for _, x := range []attempt{
		{name: "a loop that is only recorded hides no cost", limits: Limits{Responses: map[Name]Response{Loop: Record}}, by: loopAndSpend, sees: CostPerHour, answer: Pause},
		{name: "a loop that pauses hides nothing that halts", limits: Limits{Responses: map[Name]Response{CostPerHour: Halt}}, by: loopAndSpend, sees: CostPerHour, answer: Halt},
		{name: "nobody's loop hides nothing", by: func(f *feed) {
			for _, tenant := range []string{"t", ""} {
				for range 6 {
					f.act(time.Minute, func(s *Seen) { s.Tenant, s.Agent, s.Action = tenant, "", 1 })
				}
			}
			for range 6 {
				f.act(time.Minute, func(s *Seen) { s.Cost = 1_000_000 })
			}
		}, sees: CostPerHour, answer: Pause},
		{name: "what was told of within the hour hides nothing ten times as large", by: func(f *feed) {
			f.commit(11)
			f.all = nil
			f.act(time.Minute, nil)
			f.commit(1100)
		}, sees: FilesPerCommit, answer: Alert},
		{name: "nor what holds already", by: func(f *feed) {
			for range 21 {
				f.act(10*time.Second, func(s *Seen) { s.Step = true })
			}
			f.all = nil
			for range 200 {
				f.act(10*time.Second, func(s *Seen) { s.Step = true })
			}
		}, sees: StepsPerHour, answer: Alert},
		{name: "a pause that did not come about is proposed again", by: func(f *feed) {
			f.spell("aaaaa", time.Second, nil)
			f.all = nil
			f.spell(strings.Repeat("a", 6), time.Minute, nil)
		}, sees: Loop, answer: Pause},
	} {
		x.run(t)
	}
	t.Run("a loop that pauses is one alarm", func(t *testing.T) {
		f := fed(Limits{})
		loopAndSpend(f)
		if got := told(f.all); !slices.Equal(got, []Name{Loop}) {
			t.Errorf("told of %v", got)
		}
	})
	t.Run("what ends after a pause brings no second", func(t *testing.T) {
		f := fed(Limits{})
		f.spell("aaaaa", time.Second, nil)
		f.all = nil
		f.spell("aaaaaaaaaa", time.Second, nil) // in flight at the pause
		f.spell("aaa", time.Minute, nil)
		if got := told(f.all); got != nil {
			t.Errorf("told of %v", got)
		}
	})
}

// Test001_Layer5_Attack_clocks: a clock that moves, and one that stands.
func Test001_Layer5_Attack_clocks(t *testing.T) {
	fails := func(f *feed, n int) {
		for i := range n {
			f.act(time.Second, func(s *Seen) { s.Failed = i%2 == 0 })
		}
	}
	for _, x := range []attempt{
		{name: "ahead and back again: what must last is seen", by: func(f *feed) {
			f.at = f.at.Add(24 * time.Hour)
			f.act(0, nil)
			f.tick(0)
			f.at = f.at.Add(-24 * time.Hour)
			f.tick(time.Second)
			fails(f, 20)
			for range 5 {
				f.tick(time.Second)
			}
		}, sees: ErrorRate, answer: Pause},
		{name: "a history of hours to come is none", by: func(f *feed) {
			for i := range 20 {
				f.Load(Seen{Tenant: "t", Agent: "a", At: f.at.Add(time.Duration(i) * 24 * time.Hour)})
			}
			f.Learned()
			fails(f, 20)
			for range 5 {
				f.tick(time.Second)
			}
		}, sees: ErrorRate, answer: Pause},
		{name: "a look in days to come is none", by: func(f *feed) {
			f.LoadPerson("t", f.at.Add(1000*time.Hour))
			f.Learned()
			f.tick(0)
			f.act(time.Hour, nil)
			f.tick(25 * time.Hour)
		}, sees: NoHumanCheck, answer: Alert},
		{name: "nobody ticks", by: func(f *feed) {
			fails(f, 20)
			f.act(3*time.Second, func(s *Seen) { s.Failed = true })
		}, sees: ErrorRate, answer: Pause},
		{name: "nearly nothing for an hour, and gone", by: func(f *feed) {
			for range 13 {
				for range 50 {
					f.act(time.Minute, nil)
				}
				f.at = f.at.Truncate(time.Hour).Add(time.Hour)
			}
			f.act(0, nil)
			f.tick(time.Hour)
		}, sees: Outlier, answer: Record},
	} {
		x.run(t)
	}
	t.Run("while the clock stands, what was forgiven is found again", func(t *testing.T) {
		f := fed(Limits{})
		for range 3 {
			f.spell("aaaaa", 0, nil)
			f.Forgive("t", "a", f.at)
		}
		if got := told(f.all); !slices.Equal(got, []Name{Loop, Loop, Loop}) {
			t.Errorf("told of %v", got)
		}
	})
	t.Run("set back again and again, time does not run faster", func(t *testing.T) {
		f := fed(Limits{})
		f.act(0, func(s *Seen) { s.Cost = 4_000_000 })
		for range 5000 { // what ends late is told of late
			f.Add(Seen{Tenant: "t", Agent: "b", At: f.at.Add(-time.Second)})
			f.Add(Seen{Tenant: "t", Agent: "b", At: f.at})
			f.Tick(f.at.Add(-time.Second))
		}
		f.act(time.Minute, func(s *Seen) { s.Cost = 4_000_000 })
		if f.has(CostPerHour) == nil {
			t.Error("not found")
		}
	})
	t.Run("an hour after the clock was set back costs are the hour's", func(t *testing.T) {
		f := fed(Limits{})
		f.at = f.at.Add(240 * time.Hour)
		f.act(0, func(s *Seen) { s.Cost = 4_000_000 })
		f.at = f.at.Add(-240 * time.Hour)
		f.tick(0)
		for range 120 {
			f.tick(time.Minute)
		}
		f.act(time.Minute, func(s *Seen) { s.Cost = 4_000_000 })
		if got := f.has(CostPerHour); got != nil {
			t.Errorf("%+v", got)
		}
		f.act(time.Minute, func(s *Seen) { s.Cost = 4_000_000 })
		if got := f.has(CostPerHour); got == nil || !got.At.Equal(f.at) {
			t.Errorf("at %v: %+v", f.at, got)
		}
	})
}

// Test001_Layer5_Attack_learning: a past that was made to look usual lets nothing
// pass that the document's figures do not.
func Test001_Layer5_Attack_learning(t *testing.T) {
	hours := func(f *feed, steps func(h int) int) {
		for h := range 40 {
			for range steps(h) {
				f.act(time.Minute, func(s *Seen) { s.Step, s.Cost = true, 240_000 })
			}
			f.at = f.at.Truncate(time.Hour).Add(2 * time.Hour)
		}
	}
	for name, steps := range map[string]func(int) int{
		"slowly more":                func(h int) int { return h / 2 },
		"the first hours are wild":   func(h int) int { return 20 * (h % 2) },
		"as much as there may be":    func(int) int { return 20 },
		"nothing, then all at once":  func(h int) int { return h / 39 * 20 },
		"an hour's rest, then again": func(h int) int { return h % 3 / 2 * 20 },
	} {
		t.Run(name, func(t *testing.T) {
			f := fed(Limits{})
			hours(f, steps)
			if got := told(f.all); got != nil {
				t.Fatalf("told of %v", got)
			}
			for range 21 {
				f.act(time.Minute, func(s *Seen) { s.Step, s.Cost = true, 240_000 })
			}
			got := told(f.all)
			if !slices.Contains(got, StepsPerHour) || !slices.Contains(got, CostPerHour) {
				t.Errorf("told of %v", got)
			}
		})
	}
}

// Test001_Layer5_Attack_others: nobody makes findings about others, or makes them
// forgotten.
func Test001_Layer5_Attack_others(t *testing.T) {
	t.Run("above itself, twice, in a circle", func(t *testing.T) {
		f := fed(Limits{})
		f.act(0, func(s *Seen) { s.Above, s.Cost = []string{"a", "b", "a", "b", "", "b"}, 3_000_000 })
		if len(f.all) != 0 || len(f.agents) != 3 {
			t.Errorf("%v, of %d", lines(f.all), len(f.agents))
		}
		if got := f.agents[key{"t", "b"}].hours[0].cost; got != 3_000_000 {
			t.Errorf("counted %d", got)
		}
	})
	t.Run("a thousand above", func(t *testing.T) {
		f := fed(Limits{})
		var above []string
		for i := range 1000 {
			above = append(above, fmt.Sprint(i))
		}
		f.act(0, func(s *Seen) { s.Above = above })
		if len(f.agents) > maxAbove+2 {
			t.Errorf("%d agents", len(f.agents))
		}
	})
	t.Run("a tenant's flood of names makes only its own forgotten", func(t *testing.T) {
		w := New(Limits{})
		w.room = 1000
		for i := range 100 {
			w.Add(Seen{Tenant: "quiet", Agent: fmt.Sprint(i), At: start, Action: 1})
		}
		for i := range w.room + 10 {
			w.Add(Seen{Tenant: "loud", Agent: fmt.Sprint(i), At: start.Add(time.Duration(i+1) * time.Millisecond), Prohibited: true})
		}
		n := 0
		for k := range w.agents {
			if k.tenant == "quiet" && k.agent != "" {
				n++
			}
		}
		if n != 100 || w.Forgotten() == 0 {
			t.Errorf("%d of 100 are known, %d forgotten", n, w.Forgotten())
		}
	})
	t.Run("a neighbour's loop is its own", func(t *testing.T) {
		f := fed(Limits{})
		for i := range 40 {
			f.act(10*time.Second, func(s *Seen) { s.Agent, s.Action = []string{"a", "b"}[i%2], uint64(i%2*(i+7)) })
		}
		for _, one := range f.all {
			if one.Agent != "a" {
				t.Errorf("%+v", one)
			}
		}
	})
}

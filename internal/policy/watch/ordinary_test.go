package watch

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOrdinaryWork: what agents do all day brings no alarm: reading many files,
// rounds of edit and test, one tool for everything, checks in turns every two hours,
// costs that go up and down.
func TestOrdinaryWork(t *testing.T) {
	const read, edit, test, list, shell = 1, 2, 3, 4, 5
	r := rand.New(rand.NewPCG(1, 2))
	pause := func() time.Duration { return time.Duration(5+r.IntN(40)) * time.Second }
	// do acts on one of the things there are; below 1000 it is one of those that
	// come again.
	do := func(f *feed, kind uint64, what uint64) {
		f.act(pause(), func(s *Seen) {
			if s.Kind = kind; what > 0 {
				s.Action = kind<<32 | what
			}
		})
	}
	for _, work := range []struct {
		name     string
		by       func(f *feed)
		recorded []Name // but not told
	}{
		{"read, edit, test", func(f *feed) {
			for range 100 {
				for range 1 + r.IntN(6) {
					do(f, read, uint64(1+r.IntN(40)))
				}
				do(f, edit, 0)
				do(f, test, 1)
			}
		}, nil},
		{"edit, test", func(f *feed) {
			for range 200 {
				do(f, edit, 0)
				do(f, test, 1)
			}
		}, nil},
		{"the same three files before each edit", func(f *feed) {
			for range 60 {
				for i := range 3 {
					do(f, read, uint64(i+1))
				}
				do(f, edit, 0)
				do(f, test, 1)
			}
		}, nil},
		{"a test three times between edits, for it is flaky", func(f *feed) {
			for range 15 {
				do(f, edit, 0)
				for range 3 {
					do(f, test, 1)
				}
			}
		}, nil},
		{"forty files in a row", func(f *feed) {
			for range 10 {
				do(f, list, 1)
				for range 40 {
					do(f, read, 0)
				}
				for range 5 {
					do(f, edit, 0)
				}
			}
		}, nil},
		{"one tool for everything", func(f *feed) {
			for i := range 300 {
				do(f, shell, uint64(i%3*r.IntN(20)))
			}
		}, []Name{Repetition}},
		{"eight checks every two hours", func(f *feed) {
			for range 10 {
				for i := range 8 {
					do(f, read, uint64(i+1))
				}
				f.at = f.at.Truncate(time.Hour).Add(2 * time.Hour)
				f.tick(0)
			}
		}, nil},
		{"steps of an hour, each with its work", func(f *feed) {
			for i := range 60 {
				f.act(3*time.Minute+time.Second, func(s *Seen) { s.Step, s.Kind = true, 6 })
				do(f, read, 0)
				f.act(time.Second, func(s *Seen) { s.Passive, s.Cost = true, int64(200_000+1000*i) })
			}
		}, nil},
		{"one in forty fails", func(f *feed) {
			for i := range 400 {
				f.act(pause(), func(s *Seen) { s.Kind, s.Failed = uint64(i%3), i%40 == 7 })
			}
		}, nil},
		{"costs that are about the same", func(f *feed) {
			for range 400 {
				f.act(pause(), func(s *Seen) { s.Kind, s.Cost = uint64(r.IntN(3)), 10_000+r.Int64N(2_000) })
			}
		}, nil},
	} {
		t.Run(work.name, func(t *testing.T) {
			f := fed(Limits{})
			work.by(f)
			f.tick(time.Minute)
			if got := told(f.all); got != nil {
				t.Errorf("told of %v: %s", got, strings.Join(lines(f.all), ", "))
			}
			for _, one := range f.all {
				if one.Condition != Unusual && one.Condition != Outlier && !slices.Contains(work.recorded, one.Condition) {
					t.Errorf("%+v", one)
				}
			}
			for _, name := range work.recorded {
				if f.has(name) == nil {
					t.Errorf("no %s", name)
				}
			}
		})
	}
}

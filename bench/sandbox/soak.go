package sandbox

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// soakRuns is how many runs the soak has if nobody says.
const soakRuns = 10_000

// sayEvery is how often the soak tells how far it is.
const sayEvery = 15 * time.Second

// measureSoak runs again and again, by every way that a run can come and end, and counts
// before and after what there is of everything.
func measureSoak(b *measure.Run, runs int) ([]measure.Figure, error) {
	if runs == 0 {
		if runs = soakRuns; b.Short {
			runs = 500
		}
	}
	back, err := ownTemporary(b)
	if err != nil {
		return nil, err
	}
	defer back()
	s := &soaking{runs: runs}
	if program, err := programs.BuildEmpty(b); err == nil {
		if s.static, err = os.ReadFile(program); err != nil {
			return nil, err
		}
	} else {
		b.Say("no static programs: %v", err)
	}
	return withWarm(b, func(w *warmBench) ([]measure.Figure, error) { return s.figures(w) })
}

// soaking is a soak under way.
type soaking struct {
	runs    int
	static  []byte // a program that does nothing; none where there is no Go
	next    atomic.Int64
	statics atomic.Int64
	killed  atomic.Int64
}

func (s *soaking) figures(w *warmBench) ([]measure.Figure, error) {
	for i := range 40 { // launchers, pools and filters are there from now on
		if err := s.one(w, i); err != nil {
			return nil, err
		}
	}
	before, err := w.things(nil)
	if err != nil {
		return nil, err
	}
	w.forget()
	s.next.Store(0)
	s.statics.Store(0)
	s.killed.Store(0)
	from, told := time.Now(), atomic.Int64{}
	_, err = runTogether(w.Run, func(int) error {
		i := s.next.Add(1) - 1
		if was := told.Load(); int64(time.Since(from)/sayEvery) > was && told.CompareAndSwap(was, was+1) {
			w.Say("%d of %d runs in %v, %.0f a second", i, s.runs, time.Since(from).Round(time.Second), float64(i)/time.Since(from).Seconds())
		}
		return s.one(w, int(i))
	}, 2, s.runs)
	if err != nil {
		return nil, err
	}
	took := time.Since(from)
	ways, paths := w.told(), w.counted()
	after, err := w.things(&before)
	if err != nil {
		return nil, err
	}
	f := leftBy(int(s.next.Load()), before, after)
	f.Binding = true
	rate := measure.Figure{Name: "their number per second, two at once", Measured: float64(s.next.Load()) / took.Seconds(), Unit: "/s", Paths: paths,
		Note: fmt.Sprintf("of python %s; %d static programs; %d were killed for a forbidden call", ways, s.statics.Load(), s.killed.Load())}
	return []measure.Figure{f, rate}, nil
}

// one is the i-th run: of ten, four of a static program that does nothing, one of
// a Python program that makes a forbidden call, and five of one that prints.
func (s *soaking) one(w *warmBench, i int) error {
	var spec sandbox.Spec
	var want posture.State
	switch n := i % 10; {
	case n%2 == 1 && n < 8 && s.static != nil:
		spec, want = newSpec(w.Run, i, sandbox.Static, string(s.static)), posture.Completed
		s.statics.Add(1)
	case n == 9:
		spec, want = newSpec(w.Run, i, "python3", forbidden), posture.SyscallBlocked
		s.killed.Add(1)
	default:
		return w.run(i)
	}
	res, err := w.t.Run(w.Ctx, spec)
	if err == nil && res.State != want {
		err = fmt.Errorf("a run ended as %s, not as %s: %s", res.State, want, excerpt.Printable(string(res.Stderr)))
	}
	return err
}

package measure

import (
	"errors"
	"sync"
	"time"
)

// Speed is what one run came to.
type Speed struct {
	PerSecond float64
	P50, P99  time.Duration
	Processor time.Duration // of each
}

// Drive lets callers repeat something for that long.
func Drive(callers int, d time.Duration, do func(caller int) error) (Speed, error) {
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var wg sync.WaitGroup
	from, used := time.Now(), ProcessorTime()
	for c := range callers {
		wg.Go(func() {
			var mine []time.Duration
			var err error
			for err == nil && time.Since(from) < d {
				start := time.Now()
				err = do(c)
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, mine...), append(errs, err)
		})
	}
	wg.Wait()
	took, used := time.Since(from).Seconds(), ProcessorTime()-used
	return Speed{float64(len(all)) / took, Percentile(all, 50), Percentile(all, 99), used / time.Duration(max(1, len(all)))}, errors.Join(errs...)
}

// Compared is several interleaved runs of two things.
type Compared struct{ Ours, Theirs []Speed }

func (b *Run) Compare(callers int, ours, theirs func(int) error) (Compared, error) {
	var out Compared
	for run := range 5 {
		for i := range 2 {
			do, to := ours, &out.Ours
			if (run+i)%2 == 1 {
				do, to = theirs, &out.Theirs
			}
			s, err := Drive(callers, b.Span(1200*time.Millisecond), do)
			if err != nil {
				return out, err
			}
			*to = append(*to, s)
		}
	}
	return out, nil
}

// Middle is the median of a property of the runs.
func Middle(runs []Speed, of func(Speed) float64) float64 {
	var v []float64
	for _, r := range runs {
		v = append(v, of(r))
	}
	return Percentile(v, 50)
}

// MiddleRatio is the median of the runs' ratios: each pair ran side by side.
func (c Compared) MiddleRatio(of func(Speed) float64) float64 {
	var v []float64
	for i := range c.Ours {
		v = append(v, of(c.Ours[i])/of(c.Theirs[i]))
	}
	return Percentile(v, 50)
}

func Rate(s Speed) float64 { return s.PerSecond }

func Median(s Speed) float64 { return Millis(s.P50) }

func Work(s Speed) float64 { return Micros(s.Processor) }

func Slowest(s Speed) float64 { return Millis(s.P99) }

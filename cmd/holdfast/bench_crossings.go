package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sqlite"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// done is a hand that has done it.
func done(context.Context) (holdfast.Output, error) {
	return holdfast.Output{Body: []byte(`{"ok":true}`)}, nil
}

// crossings measures durable crossings through the whole kernel, with 64
// callers of one and of eight tenants, and with one caller alone. Beside it
// stands the bare thing: the same callers, the same group commit, two rows a
// crossing with the bytes that the kernel wrote.
func (b *bench) crossings() (_ []figure, err error) {
	s, err := b.open("crossings")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.d.Close()) }()
	leaves, err := s.sample(b)
	if err != nil {
		return nil, err
	}
	records := [2][]byte{slices.Concat(leaves[0].Record, leaves[0].Part), slices.Concat(leaves[1].Record, leaves[1].Part)}
	bare, err := sqlite.OpenBare(filepath.Join(b.dir, "bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	var out []figure
	for _, c := range []struct {
		callers, tenants int
		target           float64
	}{{64, 1, 0.5}, {64, 8, 0.25}, {1, 1, 0}} {
		reqs, err := s.requests(benchOrder, benchPayload(), c.callers, c.tenants)
		if err != nil {
			return nil, err
		}
		r, err := b.compare(c.callers,
			func(caller int) error {
				_, err := s.d.Kernel.Cross(b.ctx, reqs[caller], done)
				return err
			},
			func(caller int) error { return putBoth(bare, int64(caller%c.tenants)+1, records) })
		if err != nil {
			return nil, err
		}
		out = append(out, r.figures(c.callers, c.tenants, c.target)...)
	}
	return out, nil
}

// sample makes one crossing and returns its begin and its entry.
func (s *benchState) sample(b *bench) ([]ledger.Stored, error) {
	reqs, err := s.requests(benchOrder, benchPayload(), 1, 1)
	if err != nil {
		return nil, err
	}
	out, err := s.d.Kernel.Cross(b.ctx, reqs[0], done)
	if err != nil {
		return nil, err
	}
	var leaves []ledger.Stored
	err = s.d.Store().View(b.ctx, func(tx kernel.Tx) error {
		leaves, err = tx.Crossing("tenant-0", out.Crossing)
		return err
	})
	if err == nil && len(leaves) != 2 {
		err = errors.New("a crossing has no begin and entry")
	}
	return leaves, err
}

func putBoth(bare *sqlite.Bare, tenant int64, records [2][]byte) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if err := bare.Put(tenant, 1, id.String(), records[0]); err != nil {
		return err
	}
	return bare.Put(tenant, 2, id.String(), records[1])
}

// speed is what one run came to.
type speed struct {
	perSecond float64
	p50, p99  time.Duration
	processor time.Duration // of each
}

// drive lets callers repeat something for that long.
func drive(callers int, d time.Duration, do func(caller int) error) (speed, error) {
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var wg sync.WaitGroup
	from, used := time.Now(), processorTime()
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
	took, used := time.Since(from).Seconds(), processorTime()-used
	return speed{float64(len(all)) / took, at(all, 50), at(all, 99), used / time.Duration(max(1, len(all)))}, errors.Join(errs...)
}

// compared is several interleaved runs of two things.
type compared struct{ ours, theirs []speed }

func (b *bench) compare(callers int, ours, theirs func(int) error) (compared, error) {
	var out compared
	for run := range 5 {
		for i := range 2 {
			do, to := ours, &out.ours
			if (run+i)%2 == 1 {
				do, to = theirs, &out.theirs
			}
			s, err := drive(callers, b.span(1200*time.Millisecond), do)
			if err != nil {
				return out, err
			}
			*to = append(*to, s)
		}
	}
	return out, nil
}

// middle is the median of a property of the runs.
func middle(runs []speed, of func(speed) float64) float64 {
	var v []float64
	for _, r := range runs {
		v = append(v, of(r))
	}
	return at(v, 50)
}

// middleRatio is the median of the runs' ratios: each pair ran side by side.
func (c compared) middleRatio(of func(speed) float64) float64 {
	var v []float64
	for i := range c.ours {
		v = append(v, of(c.ours[i])/of(c.theirs[i]))
	}
	return at(v, 50)
}

func rate(s speed) float64    { return s.perSecond }
func median(s speed) float64  { return millis(s.p50) }
func work(s speed) float64    { return micros(s.processor) }
func slowest(s speed) float64 { return millis(s.p99) }

func (c compared) figures(callers, tenants int, target float64) []figure {
	if callers == 1 {
		f := figure{Name: "durable crossing, one caller, p50", Measured: middle(c.ours, median), Unit: "ms", Target: "<= bare + 0.5 ms"}
		f = f.ratioTo(middle(c.theirs, median), "two bare commits")
		f.Met = f.Measured <= f.Beside+0.5
		return []figure{f}
	}
	name := fmt.Sprintf("durable crossings, %d callers, %d tenants", callers, tenants)
	if tenants == 1 {
		name = fmt.Sprintf("durable crossings, %d callers, 1 tenant", callers)
	}
	f := figure{Name: name, Measured: middle(c.ours, rate), Unit: "/s", Target: fmt.Sprintf(">= %.2f x", target)}
	f = f.ratioTo(middle(c.theirs, rate), "bare")
	f.Ratio = c.middleRatio(rate)
	f.Met = f.Ratio >= target
	ours, theirs, procs := middle(c.ours, work), middle(c.theirs, work), runtime.GOMAXPROCS(0)
	f.Note = fmt.Sprintf("a crossing takes %s us of processor time, a bare one %s us; it had %.1f of %d processors",
		number(ours), number(theirs), f.Measured*ours/1e6, procs)
	tail := figure{Name: "  their p99", Measured: middle(c.ours, slowest), Unit: "ms", Target: "<= 2 x"}
	tail = tail.ratioTo(middle(c.theirs, slowest), "bare")
	tail.Ratio = c.middleRatio(slowest)
	tail.Met = tail.Ratio <= 2
	return []figure{f, tail}
}

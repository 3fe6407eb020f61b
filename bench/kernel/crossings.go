package kernel

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/bench/internal/barerows"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// measureCrossings measures durable crossings through the whole kernel, with 64
// callers of one and of eight tenants, and with one caller alone. Beside it
// stands the bare thing: the same callers, the same group commit, two rows a
// crossing with the bytes that the kernel wrote.
func measureCrossings(b *measure.Run) (_ []measure.Figure, err error) {
	s, err := fixture.OpenState(b, "crossings")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Daemon.Close()) }()
	leaves, err := makeSample(s, b)
	if err != nil {
		return nil, err
	}
	records := [2][]byte{slices.Concat(leaves[0].Record, leaves[0].Part), slices.Concat(leaves[1].Record, leaves[1].Part)}
	bare, err := barerows.Open(filepath.Join(b.Dir, "bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	var out []measure.Figure
	for _, c := range []struct {
		callers, tenants int
		target           float64
	}{{64, 1, 0.5}, {64, 8, 0.25}, {1, 1, 0}} {
		reqs, err := s.NewRequests(fixture.Order, fixture.NewPayload(), c.callers, c.tenants)
		if err != nil {
			return nil, err
		}
		r, err := b.Compare(c.callers,
			func(caller int) error {
				_, err := s.Daemon.Kernel.Cross(b.Ctx, reqs[caller], fixture.Succeed)
				return err
			},
			func(caller int) error { return putBoth(bare, int64(caller%c.tenants)+1, records) })
		if err != nil {
			return nil, err
		}
		out = append(out, crossingFigures(r, c.callers, c.tenants, c.target)...)
	}
	return out, nil
}

// makeSample makes one crossing and returns its begin and its entry.
func makeSample(s *fixture.State, b *measure.Run) ([]ledger.Stored, error) {
	reqs, err := s.NewRequests(fixture.Order, fixture.NewPayload(), 1, 1)
	if err != nil {
		return nil, err
	}
	out, err := s.Daemon.Kernel.Cross(b.Ctx, reqs[0], fixture.Succeed)
	if err != nil {
		return nil, err
	}
	var leaves []ledger.Stored
	err = s.Daemon.Store().View(b.Ctx, func(tx kernel.Tx) error {
		leaves, err = tx.Crossing("tenant-0", out.Crossing)
		return err
	})
	if err == nil && len(leaves) != 2 {
		err = errors.New("a crossing has no begin and entry")
	}
	return leaves, err
}

func putBoth(bare *barerows.Rows, tenant int64, records [2][]byte) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if err := bare.Put(tenant, 1, id.String(), records[0]); err != nil {
		return err
	}
	return bare.Put(tenant, 2, id.String(), records[1])
}

func crossingFigures(c measure.Compared, callers, tenants int, target float64) []measure.Figure {
	if callers == 1 {
		f := measure.Figure{Name: "durable crossing, one caller, p50", Measured: measure.Middle(c.Ours, measure.Median), Unit: "ms", Target: "<= bare + 0.5 ms"}
		f = f.RatioTo(measure.Middle(c.Theirs, measure.Median), "two bare commits")
		f.Met = f.Measured <= f.Beside+0.5
		return []measure.Figure{f}
	}
	name := fmt.Sprintf("durable crossings, %d callers, %d tenants", callers, tenants)
	if tenants == 1 {
		name = fmt.Sprintf("durable crossings, %d callers, 1 tenant", callers)
	}
	f := measure.Figure{Name: name, Measured: measure.Middle(c.Ours, measure.Rate), Unit: "/s", Target: fmt.Sprintf(">= %.2f x", target)}
	f = f.RatioTo(measure.Middle(c.Theirs, measure.Rate), "bare")
	f.Ratio = c.MiddleRatio(measure.Rate)
	f.Met = f.Ratio >= target
	ours, theirs, procs := measure.Middle(c.Ours, measure.Work), measure.Middle(c.Theirs, measure.Work), runtime.GOMAXPROCS(0)
	f.Note = fmt.Sprintf("a crossing takes %s us of processor time, a bare one %s us; it had %.1f of %d processors",
		measure.Number(ours), measure.Number(theirs), f.Measured*ours/1e6, procs)
	tail := measure.Figure{Name: "  their p99", Measured: measure.Middle(c.Ours, measure.Slowest), Unit: "ms", Target: "<= 2 x"}
	tail = tail.RatioTo(measure.Middle(c.Theirs, measure.Slowest), "bare")
	tail.Ratio = c.MiddleRatio(measure.Slowest)
	tail.Met = tail.Ratio <= 2
	return []measure.Figure{f, tail}
}

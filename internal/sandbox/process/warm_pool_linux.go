package process

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// pool is the workloads of one launcher that wait behind their walls, each for
// the one request that it will serve.
type pool struct {
	ready   chan *run
	filling atomic.Bool
	runs    atomic.Int64 // requests so far: the first of a language parks nothing
	lang    language
}

func newPool(l language, n int) *pool { return &pool{ready: make(chan *run, n), lang: l} }

// short says that fewer wait than should.
func (p *pool) short() bool { return p.runs.Load() > 1 && len(p.ready) < cap(p.ready) }

// empty ends all who wait.
func (p *pool) empty() {
	for {
		select {
		case r := <-p.ready:
			r.free()
		default:
			return
		}
	}
}

// poolSize is how many workloads of a language wait, where its root lets any.
func (t *Tier) poolSize(l language, root string) int {
	w := l.parks()
	if t.cfg.Parked <= 0 || !w.hosts(root) {
		return 0
	}
	return max(1, t.cfg.Parked/w.share)
}

// takeParked returns a workload that waits and can serve spec, or nil.
func (t *Tier) takeParked(z *zygote, l language, spec sandbox.Spec) *run {
	if len(spec.Narrow) > 0 || !l.parks().takes(spec) {
		return nil
	}
	for {
		select {
		case r := <-z.pool.ready:
			if r.waits() && !r.deserted() && time.Since(r.parkedAt) < parkedFor {
				return r
			}
			r.free()
		default:
			return nil
		}
	}
}

// park lets workloads come to wait, in the background, until there are enough.
func (t *Tier) park(z *zygote) {
	p := z.pool
	if !p.short() || !p.filling.CompareAndSwap(false, true) {
		return
	}
	t.making.Add(1)
	go func() {
		defer t.making.Done()
		defer p.filling.Store(false)
		for len(p.ready) < cap(p.ready) && z.alive() && !t.ending() {
			r, err := t.newParked(z, p.lang)
			if err != nil {
				if z.alive() && !t.ending() {
					t.troubles.seatFailed(err)
				}
				return // the next request tries again
			}
			t.troubles.seatMade()
			p.ready <- r
		}
	}()
}

// parkWithin is how long a workload may take until it waits.
const parkWithin = 10 * time.Second

// newParked makes a workload that waits.
func (t *Tier) newParked(z *zygote, l language) (_ *run, err error) {
	s, err := t.newSeat(z)
	if err != nil {
		return nil, err
	}
	r := &run{seat: s, fs: -1, workload: -1, gone: make(chan struct{}), spec: parkedSpec(l), parking: l.parks()}
	defer func() {
		if err != nil {
			r.free()
		}
	}()
	l.check = nil // there is no code yet
	most := r.spec
	most.MemoryMB = sandbox.MaxMemoryMB // what bounds the process itself can only be lowered
	o, err := t.order(l, most)
	if err != nil {
		return nil, err
	}
	r.gauged = o.gauged
	if r.waiting, err = o.park(r.next(), r.parking); err != nil {
		return nil, failed(holdfast.KindSpawn, "write down what to do", err)
	}
	if err = r.limit(); err != nil {
		return nil, err
	}
	if err = r.raise(r.waiting); err != nil {
		return nil, err
	}
	r.attended()
	if err = r.parks(); err != nil {
		return nil, err
	}
	r.parkedAt = time.Now()
	return r, nil
}

// attended lets somebody answer what the filter asks.
func (r *run) attended() {
	r.watch.Add(1)
	go r.answerAll()
}

// parks waits for the frame by which the init says that the workload waits.
func (r *run) parks() error {
	var stop sync.WaitGroup
	done := make(chan struct{})
	stop.Go(func() {
		select {
		case <-r.gone: // the workload died, and its init would wait for it
		case <-time.After(parkWithin):
		case <-done:
			return
		}
		r.ctl.SetReadDeadline(time.Unix(1, 0))
	})
	f, fds, err := receive(r.ctl)
	closeAll(fds)
	close(done)
	stop.Wait()
	r.ctl.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		return failed(holdfast.KindSpawn, "make a program ready: it ended, or did not wait in time", err)
	case f.kind != frameParked:
		return r.failure(f)
	}
	return nil
}

// deserted says that nobody is left in a workload that waits.
func (r *run) deserted() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

var errParkedGone = errors.New("the process that waited has ended")

// release gives a workload that waits its request. An error means that nothing
// of the request has run, and that the workload is of no use any more.
func (t *Tier) release(r *run, o *order, spec sandbox.Spec, at sandbox.Instants) error {
	p, exec, err := o.release(r.waiting.after(), r.parking)
	if err != nil {
		return err
	}
	r.mu.Lock()
	at.Raised, at.Ready, at.Began = r.made, r.at.Ready, time.Now()
	r.spec, r.plan, r.at, r.released = spec, p, at, true
	r.mu.Unlock()
	if err := r.limit(); err != nil {
		return err
	}
	if r.deserted() {
		return errParkedGone
	}
	binary.LittleEndian.PutUint64(r.tape[8*slotExec:], uint64(exec))
	return r.proceed(p)
}

// warm runs o, which is spec's, in a workload that waits. It returns nil where
// there is none, or none that was of use: nothing of the request has run then.
func (t *Tier) warm(ctx context.Context, z *zygote, l language, o *order, spec sandbox.Spec, at sandbox.Instants) *sandbox.Result {
	start := time.Now()
	for {
		r := t.takeParked(z, l, spec)
		if r == nil {
			return nil
		}
		var res *sandbox.Result
		err := t.release(r, o, spec, at)
		if err == nil {
			res, err = r.outcome(ctx, spec.Timeout)
		}
		if err != nil {
			t.troubles.seatFailed(err)
			r.free()
			continue
		}
		res.Path = sandbox.PathParked
		r.timed(res, start)
		res.Walk(r.at)
		if r.hasLeft() { // it is not destroyed yet
			res.Around = slices.DeleteFunc(res.Around, func(s sandbox.Step) bool { return s.State == sandbox.Destroyed })
		}
		t.leave(r)
		return res
	}
}

// maxLeaving bounds the runs whose results are there and whose processes are not
// gone yet: who asks for more waits.
const maxLeaving = 64

// leave frees a run behind its result.
func (t *Tier) leave(r *run) {
	t.leaving <- struct{}{}
	t.making.Add(1)
	go func() {
		defer t.making.Done()
		r.free()
		<-t.leaving
	}()
}

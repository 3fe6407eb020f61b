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
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// pool is the workloads of one launcher that wait behind their walls, each for
// the one request that it will serve.
type pool struct {
	ready   chan *run
	filling atomic.Bool
	runs    atomic.Int64 // requests so far: the first of a language parks nothing
	lang    language.Language
	// roomless: no environment can be brought to who waits here; roomy: it can.
	roomless, roomy atomic.Bool
	nursery         *nursery // nil where workloads are parked one by one
}

func (t *Tier) newPool(l language.Language, root string) *pool {
	p := &pool{ready: make(chan *run, t.poolSize(l, root)), lang: l}
	if cap(p.ready) > 0 {
		p.nursery = t.newNursery(l, root)
	}
	return p
}

// wanted says that workloads are to wait: the first request parks nothing.
func (p *pool) wanted() bool { return p.runs.Load() > 1 && cap(p.ready) > 0 }

// short says that fewer wait than should.
func (p *pool) short() bool { return p.wanted() && len(p.ready) < cap(p.ready) }

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
func (t *Tier) poolSize(l language.Language, root string) int {
	w := parkingOf(l)
	if t.cfg.Parked <= 0 || !w.hosts(root) {
		return 0
	}
	return max(1, t.cfg.Parked/w.share)
}

// takeParked returns a workload that waits and can serve spec, or nil.
func (t *Tier) takeParked(z *launcherConn, spec sandbox.Spec) *run {
	for range cap(z.pool.ready) {
		select {
		case r := <-z.pool.ready:
			switch {
			case !r.waits() || r.deserted() || time.Since(r.parkedAt) >= parkedFor:
				r.free()
			case serves(r.parking, spec):
				return r
			default:
				z.pool.keep(r)
			}
		default:
			return nil
		}
	}
	return nil
}

// keep puts back a workload that waits, where there is room.
func (p *pool) keep(r *run) {
	select {
	case p.ready <- r:
	default:
		r.free()
	}
}

// serves says whether a workload that waits so can be used for spec.
func serves(p parking, spec sandbox.Spec) bool {
	return len(spec.Narrow) == 0 && p.takes(spec)
}

// fork returns a workload made for spec, where a zygote stands ready; or nil.
func (t *Tier) fork(z *launcherConn, l language.Language, spec sandbox.Spec) *run {
	as := parkingOf(l).fork()
	if !z.pool.nursery.ready() || !serves(as, spec) {
		return nil
	}
	r, err := t.parkFork(z.pool.nursery, l, as)
	if err != nil {
		if !errors.Is(err, errNoZygote) {
			t.unready(err)
		}
		return nil
	}
	return r
}

// parkAfter is how long after a request came another workload is made to wait. A
// program finds out when its own was made (the times of /tmp and of its pipes,
// the clock of Node.js). So it is always as long, whatever a program does: were
// it made when one ends, that one could tell the next something by its end. Most
// have ended by then, and are not disturbed.
const parkAfter = 10 * time.Millisecond

// parkSoon parks workloads some time from now, for the request that comes now.
func (t *Tier) parkSoon(z *launcherConn) {
	z.pool.runs.Add(1)
	if !z.pool.wanted() || t.last.Load() {
		return
	}
	t.making.Add(1)
	time.AfterFunc(parkAfter, func() {
		defer t.making.Done()
		t.park(z)
	})
}

// park lets workloads come to wait, in the background, until there are enough.
func (t *Tier) park(z *launcherConn) {
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
				if z.alive() {
					t.unready(err)
				}
				return // the next request tries again
			}
			t.troubles.seatMade()
			p.keep(r)
		}
	}()
}

// parkWithin is how long a workload may take until it waits.
const parkWithin = 10 * time.Second

// newParked makes a workload that waits: a fork of a zygote where there is one.
func (t *Tier) newParked(z *launcherConn, l language.Language) (*run, error) {
	for n := z.pool.nursery; n.usable(); n.wait() {
		r, err := t.parkFork(n, l, parkingOf(l).stock())
		if !errors.Is(err, errNoZygote) {
			return r, err
		}
	}
	return t.parkAlone(z, l)
}

// parkFork makes a workload that waits as a fork of the zygote in use.
func (t *Tier) parkFork(n *nursery, l language.Language, as parking) (*run, error) {
	b, err := n.take()
	if err != nil {
		return nil, err
	}
	r, err := t.parkIn(b.launcherConn, l, as)
	n.made(b, err)
	if err != nil {
		n.leave(b)
		return nil, err
	}
	r.freed = func() { n.leave(b) }
	return r, nil
}

// parkIn makes a workload that waits, of the process that z leads to.
func (t *Tier) parkIn(z *launcherConn, l language.Language, as parking) (_ *run, err error) {
	s, err := t.newSeat(z)
	if err != nil {
		return nil, err
	}
	r := &run{seat: s, fs: -1, workload: -1, gone: make(chan struct{}), spec: parkedSpec(l), parking: as}
	defer func() {
		if err != nil {
			r.free()
		}
	}()
	l.Check = nil // there is no code yet
	most, longest := r.spec, sandbox.LimitsOf(posture.TierVM)
	most.MemoryMB, most.Timeout = longest.MaxMemoryMB, longest.MaxTimeout // what bounds the process itself can only be lowered
	o, err := t.order(l, most)
	if err != nil {
		return nil, err
	}
	r.gauged, o.fork = o.gauged, as.forks
	if as.room {
		r.vacant = o.spare()
	}
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
	if err = r.findRoom(); err != nil {
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
func (t *Tier) release(r *run, o *order, spec sandbox.Spec, at posture.Instants) error {
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
	if err := r.vacant.furnish(o.env); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(r.tape[8*slotExec:], uint64(exec))
	return r.proceed(p)
}

// warm runs o, which is spec's, in a workload that waits. It returns nil where
// there is none, or none that was of use: nothing of the request has run then.
func (t *Tier) warm(ctx context.Context, z *launcherConn, l language.Language, o *order, spec sandbox.Spec, at posture.Instants) *posture.Result {
	start := time.Now()
	for {
		r, path := t.takeParked(z, spec), posture.PathParked
		if r == nil {
			r, path = t.fork(z, l, spec), posture.PathForked
		}
		if r == nil {
			return nil
		}
		var res *posture.Result
		err := t.release(r, o, spec, at)
		if err == nil {
			res, err = r.outcome(ctx, spec.Timeout)
		}
		if err != nil {
			t.unready(err)
			r.free()
			if path == posture.PathForked {
				return nil // what a fork made for it cannot have, another would not
			}
			continue
		}
		res.Path = path
		r.timed(res, start)
		res.Walk(r.at)
		if r.hasLeft() { // it is not destroyed yet
			res.Around = slices.DeleteFunc(res.Around, func(s posture.Step) bool { return s.State == posture.Destroyed })
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

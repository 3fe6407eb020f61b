package vm

import (
	"context"

	"golang.org/x/sys/unix"
)

// making is a template that is made now. It is given up when nobody waits for it
// any more; that its first asker has gone is no reason while others wait.
type making struct {
	waiting int // guarded by the tier's mu
	stop    context.CancelFunc
	done    chan struct{} // closed when the rest is there
	made    *template
	err     error
}

// template returns the template, and starts one where there is none. Others who
// need it wait for the same one.
func (t *Tier) template(ctx context.Context) (*template, error) {
	m, made, err := t.join()
	if m == nil {
		return made, err
	}
	select {
	case <-m.done:
		return m.made, m.err
	case <-ctx.Done():
	}
	if !t.leave(m) {
		return nil, failed("wait for a machine to restore from", context.Cause(ctx))
	}
	<-m.done // which ends with what was the matter with the machine
	return m.made, m.err
}

// join is the template, or else the making of one, with the caller among those
// who wait for it. The caller has entered.
func (t *Tier) join() (*making, *template, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.made != nil:
		return nil, t.made, nil
	case t.closed:
		return nil, nil, failed("run: it is closed", unix.ESHUTDOWN)
	}
	if t.making == nil {
		ctx, stop := context.WithCancel(t.life)
		t.making = &making{stop: stop, done: make(chan struct{})}
		t.troubles = nil
		t.running.Add(1)
		go t.make(ctx, t.making)
	}
	t.making.waiting++
	return t.making, nil, nil
}

// leave says whether nobody waits any more, so that it is given up.
func (t *Tier) leave(m *making) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.waiting--; m.waiting > 0 {
		return false
	}
	if t.making == m {
		t.making = nil // who comes now has one made that is not being given up
	}
	m.stop()
	return true
}

func (t *Tier) make(ctx context.Context, m *making) {
	defer t.running.Done()
	defer m.stop()
	m.made, m.err = t.prepare(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.making == m {
		t.making = nil
	}
	if m.made != nil && t.made != nil {
		m.made.close()
		m.made = t.made
	}
	if m.made != nil {
		t.made = m.made
	}
	close(m.done)
}

// trouble notes what no run is told of.
func (t *Tier) trouble(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.troubles = append(t.troubles, line)
}

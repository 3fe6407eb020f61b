package egress

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/upstream"
)

// outbound is what the outbound half keeps: connections to upstreams, and the
// memory that bodies held whole may take.
type outbound struct {
	memory    memory.Memory
	upstreams *upstream.Sender
	cleaners  cleaner.Pool
	// patience replaces how long an event waits, in tests.
	patience time.Duration
}

// start is called once, by New.
func (o *outbound) start(p *Proxy) {
	o.memory.Most = p.cfg.MaxBuffered
	o.cleaners.Engine, o.cleaners.Detector = p.cfg.Engine, p.cfg.Detector
	o.upstreams = upstream.New(p.cfg.Resolver)
	o.upstreams.Connected = func(d time.Duration) { p.counters.Observe(counters.Connect, d) }
	o.upstreams.Began = func(d time.Duration) { p.counters.Observe(counters.FirstByte, d) }
}

// stop ends what is kept; it is called once, by Close, after every crossing.
func (o *outbound) stop() {
	o.upstreams.Stop()
	o.cleaners.Asides.Stop()
}

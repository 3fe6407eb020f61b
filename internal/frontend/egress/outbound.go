package egress

import "time"

// outbound is what the outbound half keeps: connections to upstreams, and the
// memory that bodies held whole may take.
type outbound struct {
	memory    memory
	upstreams *upstreams
	echoes    echoes
	asides    asides
	// redactTime replaces the time that one redaction may take, in tests.
	redactTime time.Duration
	// patience replaces how long an event waits, in tests.
	patience time.Duration
}

// start is called once, by New.
func (o *outbound) start(p *Proxy) {
	o.memory.most = p.cfg.MaxBuffered
	o.upstreams = newUpstreams(p.cfg.Resolver)
	o.upstreams.connected = func(d time.Duration) { p.counters.observe(Connect, d) }
	o.upstreams.began = func(d time.Duration) { p.counters.observe(FirstByte, d) }
}

// stop ends what is kept; it is called once, by Close, after every crossing.
func (o *outbound) stop() {
	o.upstreams.stop()
	o.asides.stop()
}

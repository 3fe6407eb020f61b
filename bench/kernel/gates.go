package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// measureGates measures one request through all eight gates, with the facts read from
// the store's memory, beside what judging it takes at least: reading and
// hashing the payload, its schema, its rules. How these compare with the
// libraries called bare, and each gate alone, is what the benchmarks of package
// kernel print.
func measureGates(b *measure.Run) (_ []measure.Figure, err error) {
	s, err := fixture.OpenState(b, "gates")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Daemon.Close()) }()
	reqs, err := s.NewRequests(fixture.Order, fixture.NewPayload(), 1, 1)
	if err != nil {
		return nil, err
	}
	// The first crossing makes the agent and its counters known.
	if _, err := s.Daemon.Kernel.Cross(b.Ctx, reqs[0], fixture.Succeed); err != nil {
		return nil, err
	}
	parts, err := newParts()
	if err != nil {
		return nil, err
	}
	var ours, theirs []time.Duration
	for from := time.Now(); time.Since(from) < b.Span(2*time.Second); {
		start := time.Now()
		out, err := s.Daemon.Kernel.Check(b.Ctx, reqs[0])
		took := time.Since(start)
		if err != nil || out.Verdict != holdfast.Allow {
			return nil, fmt.Errorf("refused: %w %+v", err, out.Opinions)
		}
		ours = append(ours, took)
		start = time.Now()
		if err := parts.judge(b, reqs[0].Payload); err != nil {
			return nil, err
		}
		theirs = append(theirs, time.Since(start))
	}
	f := measure.Figure{Name: "eight gates, 1 KB, 20 fields, p50", Measured: measure.Micros(measure.Percentile(ours, 50)), Unit: "us", Target: "<= 120 us"}
	f = f.RatioTo(measure.Micros(measure.Percentile(theirs, 50)), "payload + schema + rules")
	f.Met = f.Measured <= 120
	return []measure.Figure{f}, nil
}

// parts are the judges of K1, K5 and K8 without a kernel.
type parts struct {
	schema *schema.Schema
	rules  *constitution.Set
}

func newParts() (*parts, error) {
	s, err := schema.Compile("bench", fixture.NewSchema())
	if err != nil {
		return nil, err
	}
	r, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(fixture.Rules)}})
	return &parts{s, r}, err
}

func (p *parts) judge(b *measure.Run, doc []byte) error {
	d, err := payload.Parse(doc)
	if err != nil {
		return err
	}
	bad, err := p.schema.Validate(b.Ctx, d.Value())
	if err != nil || len(bad) > 0 {
		return fmt.Errorf("invalid: %w %v", err, bad)
	}
	found := p.rules.Judge(b.Ctx, constitution.OnRequest, constitution.Facts{Boundary: fixture.Order, Payload: d.Value(), Now: time.Now()})
	if len(found) > 0 {
		return fmt.Errorf("a rule objects: %v", found)
	}
	return nil
}

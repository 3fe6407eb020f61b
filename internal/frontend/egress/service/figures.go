package service

import (
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/observe/metrics"
)

// Figures returns what was counted since the proxy was made, nil without one.
func (s *Service) Figures() *metrics.Egress {
	p := s.getOpenProxy()
	if p == nil {
		return nil
	}
	n := p.Snapshot()
	out := &metrics.Egress{
		Open: n.Open, Crowded: n.Crowded, RedactedOut: n.RedactedOut, RedactedIn: n.RedactedIn,
		Names: n.Names, Malformed: n.Malformed,
	}
	for of, count := range n.Requests {
		out.Requests = append(out.Requests, metrics.EgressRequests{Domain: of.Domain, Kind: of.Kind, N: count})
	}
	bounds := counters.Bounds()
	for i := range n.Stages {
		h := &n.Stages[i]
		under, sum := make(map[float64]uint64, len(bounds)), uint64(0)
		for b, bound := range bounds {
			sum += uint64(h.Under[b])
			under[bound.Seconds()] = sum
		}
		out.Stages = append(out.Stages, metrics.EgressStage{
			Name: counters.Stage(i).String(), Count: uint64(h.Count), Seconds: h.Sum.Seconds(), Under: under,
		})
	}
	return out
}

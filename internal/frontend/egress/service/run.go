package service

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Terms implements api.Network: the certificate that programs inside trust, and
// the ports of the allowlist. An empty allowlist has a network as well: it says
// to everybody why nothing leaves.
func (s *Service) Terms() (sandbox.Network, error) {
	if _, err := s.openProxy(); err != nil {
		return sandbox.Network{}, err
	}
	ca, err := s.openAuthority()
	if err != nil {
		return sandbox.Network{}, err
	}
	n := sandbox.Network{Authority: ca.PEM()}
	for _, d := range s.opt.Table().Domains() {
		for _, p := range d.Ports {
			if p != 80 && p != 443 && !slices.Contains(n.Ports, p) {
				n.Ports = append(n.Ports, p)
			}
		}
	}
	n.Models = egress.Spoken(s.opt.Table())
	slices.Sort(n.Ports)
	// More than a network can hear are led to the proxy by the kernel or refused
	// by it; either way none leaves.
	n.Ports = n.Ports[:min(len(n.Ports), maxRunPorts)]
	return n, nil
}

// maxRunPorts is how many ports beside 80 and 443 a workspace's network hears.
const maxRunPorts = 64

// Serve implements api.Network. What comes through the sockets is of the run's
// agent, in the run's flow.
func (s *Service) Serve(ctx context.Context, who api.Runner, sockets api.Sockets) error {
	p, err := s.openProxy()
	if err != nil {
		return errors.Join(err, sockets.Close())
	}
	s.runs.Add(1)
	defer s.runs.Add(-1)
	caller := egress.Caller{Token: who.Token, Correlation: who.Correlation, Note: who.Note, Trusts: true}
	var all serving
	if sockets.Proxy != nil {
		all.run(func() error { return p.Explicit(sockets.Proxy, caller) })
	}
	for _, l := range sockets.Meant {
		all.run(func() error { return p.Transparent(l, caller) })
	}
	if sockets.Names != nil {
		all.run(func() error { return p.Resolve(sockets.Names) })
	}
	stop := context.AfterFunc(ctx, func() { _ = sockets.Close() })
	defer stop()
	return all.wait()
}

// serving is what several goroutines came to. Its zero value has none.
type serving struct {
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error // guarded by mu
}

func (s *serving) run(serve func() error) {
	s.wg.Go(func() {
		err := serve()
		if errors.Is(err, net.ErrClosed) {
			err = nil // it was ended
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	})
}

func (s *serving) wait() error {
	s.wg.Wait()
	return errors.Join(s.errs...)
}

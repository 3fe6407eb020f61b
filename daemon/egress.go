package daemon

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/judge"
	"github.com/holdfast-dev/holdfast/internal/feature/modelvalue"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/service"
	"github.com/holdfast-dev/holdfast/internal/frontend/listener"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// newEgress returns the proxy of this state, which listens nowhere yet. Placeholders of models are derived under
// mappingKey, and their values sealed with seal.
func (d *Daemon) newEgress(mappingKey []byte, seal kernel.Sealer) *service.Service {
	d.mappings = mapping.NewSessions(mappingKey, time.Now)
	d.values = modelvalue.New(seal, d.mappings.Forget)
	d.mappings.UseKeeper(d.values)
	return service.New(service.Options{
		Dir: d.Paths.Dir, Kernel: func() service.Kernel { return d.Kernel }, Store: d.store,
		Table: func() *domain.Table { return d.snapshot().Domains },
		Mint: func(id holdfast.Identity) (holdfast.Secret, holdfast.Identity, error) {
			return d.mint(id, localTTL)
		},
		Tokens: d.tokens, Guest: d.modelGuest, Engine: d.engine, Secrets: d.secrets, Log: d.log,
		Mappings: d.mappings, Detectors: d.detectors,
	})
}

// listenEgress opens the proxy's listeners of the configuration. A daemon that another command
// started goes on without one whose address is taken, and logs it.
func (d *Daemon) listenEgress(linger bool) error {
	var listeners []service.Listener
	for _, l := range d.config().Egress.Listen {
		listeners = append(listeners, service.Listener{Address: l.Address, Agent: l.Agent, Kind: l.Kind})
	}
	err := d.egress.Listen(listeners, linger)
	if taken, ok := errors.AsType[*service.ListenError](err); ok {
		return listener.NewError(taken.Address, taken.Err)
	}
	return err
}

// eraseValues erases the values behind placeholders whose day is over.
func (d *Daemon) eraseValues() {
	d.mappings.Sweep()
	if err := d.values.Sweep(context.Background()); err != nil {
		d.log.Error("values behind placeholders were not erased", "err", err)
	}
}

// closeEgress closes the proxy, if Open came as far as to make it.
func (d *Daemon) closeEgress() error {
	if d.egress == nil {
		return nil
	}
	return d.egress.Close()
}

// connectJudges routes calls to the policy's models through the proxy.
func (d *Daemon) connectJudges(p *kernel.Policy) {
	all := judge.FromPolicy(p)
	if len(all) == 0 {
		return
	}
	made := judge.Judges{}
	for name, j := range all {
		if m, ok := j.Judge.(judge.LLM); ok {
			m.Client = d.egress.Client
			j.Judge = m
		}
		made[name] = j
	}
	p.Sections = maps.Clone(p.Sections)
	p.Sections[judge.Name] = made
}

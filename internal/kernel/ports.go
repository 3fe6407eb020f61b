package kernel

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
)

// Ports are what the kernel asks of a feature that is its only implementation.

// Catalog knows the boundaries that servers listed, and which contract is active for each.
type Catalog interface {
	Feature
	// Bind is called once, before the first crossing.
	Bind(h PortHost)
	// Find returns the active contract of a boundary that a server listed, by what
	// configuration lists; for any other boundary nil. Each crossing calls it several times.
	Find(set *contract.Set, boundary string) *contract.Contract
}

// Lineage says who asks within an agent, and beneath whom.
type Lineage interface {
	Feature
	// Locate returns where in the agent's tree a request is, by what is known and by what
	// the host says.
	Locate(r Reader, q Named) (Place, error)
	// Meet is called in the transaction that begins the crossing, before its leaf, if the
	// place is Fresh or Full.
	Meet(tx FeatureTx, q Named, p Place) (Met, error)
}

// Named is a request whose host names an agent within the asking one.
type Named struct {
	Who      holdfast.Identity
	Sub      holdfast.SubAgent // its ID is not empty, and is not that of the asking agent
	Crossing string
	Now      time.Time
}

// Place is where in its agent's tree a request is. The zero value is the agent itself.
type Place struct {
	// Path is who asks, then those above it, without the agent itself.
	Path []holdfast.Agent
	// Fresh says that the first of Path is not known yet; Full that the agent has no room
	// for one more, so that the one that asks is not in Path.
	Fresh, Full bool
}

// Met are agents' records that the kernel writes, each or nil: of one at first sight, and of
// one that is forgotten for it.
type Met struct{ Agent, Forget *holdfast.Agent }

// emptyLineage is a Lineage that takes no agent within another.
type emptyLineage struct{}

func (emptyLineage) Spec() Spec                                { return Spec{Name: "subagent"} }
func (emptyLineage) Locate(Reader, Named) (Place, error)       { return Place{}, nil }
func (emptyLineage) Meet(FeatureTx, Named, Place) (Met, error) { return Met{}, nil }

// PortHost is the Host of what implements a port.
type PortHost interface {
	Host
	// Contracts returns what configuration lists now.
	Contracts() *contract.Set
	// WakeAll has those who wait for a person look again.
	WakeAll()
	// Notify tells people, in words that hold nothing secret.
	Notify(n Notice)
}

func (h *host) Contracts() *contract.Set { return h.k.policy.Load().contracts }

func (h *host) WakeAll() { h.k.WakeAll() }

func (h *host) Notify(n Notice) { h.k.notify(n) }

// emptyCatalog is a Catalog without boundaries.
type emptyCatalog struct{}

func (emptyCatalog) Spec() Spec                                    { return Spec{Name: "tool_pin"} }
func (emptyCatalog) Bind(PortHost)                                 {}
func (emptyCatalog) Find(*contract.Set, string) *contract.Contract { return nil }

// bindPorts binds what implements the ports.
func (k *Kernel) bindPorts(cfg *Config) {
	if k.catalog = cfg.Catalog; k.catalog == nil {
		k.catalog = emptyCatalog{}
	}
	k.catalog.Bind(&host{k: k, f: newFeature(k.catalog)})
	if k.lineage = cfg.Lineage; k.lineage == nil {
		k.lineage = emptyLineage{}
	}
	k.lineageHost = &host{k: k, f: newFeature(k.lineage)}
	all := k.features.all
	if k.versions != nil {
		h := &host{k: k, f: newFeature(k.versions)}
		k.versions.Bind(h)
		all = append(all[:len(all):len(all)], h.f)
	}
	for _, f := range all {
		for i := range f.spec.Boundaries {
			k.reserved = append(k.reserved, &f.spec.Boundaries[i])
		}
	}
}

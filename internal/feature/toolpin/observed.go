// Package toolpin keeps what tools of servers said of themselves at first sight, and which
// changed since (D37).
package toolpin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Catalog knows the boundaries that a frontend saw rather than configuration: the tools of
// listed MCP servers (D37). It implements kernel.Catalog, and is safe for concurrent use.
type Catalog struct {
	host   kernel.PortHost
	redact *redact.Engine
	// turn is held while sights are compared, written and activated, and while one is
	// accepted: of two at the same time neither undoes the other.
	turn  sync.Mutex
	mu    sync.RWMutex
	seen  map[string]*sight   // guarded by mu; by boundary
	per   map[string]*brought // guarded by mu; by server
	bytes int                 // guarded by mu; of all servers
}

// New returns a Catalog, which kernel.New binds by Bind.
func New(engine *redact.Engine) *Catalog {
	return &Catalog{redact: engine, seen: map[string]*sight{}, per: map[string]*brought{}}
}

// Bind implements kernel.Catalog.
func (t *Catalog) Bind(h kernel.PortHost) { t.host = h }

// Spec implements kernel.Feature.
func (*Catalog) Spec() kernel.Spec { return kernel.Spec{Name: "tool_pin", Tables: Tables()} }

// sight is one observed boundary, as it was last seen.
type sight struct {
	as holdfast.Contract
	// drifted says that it is not what it was at first sight: it is put to
	// a person, whatever its hints and its contract say.
	drifted bool
	// told is when a text of the drifted boundary was first written in this
	// minute, tellings how many were.
	told     time.Time
	tellings int
	under    *contract.Set
	made     *contract.Contract
}

// Observe takes boundaries that a frontend saw, such as the tools of an MCP server, and returns
// them as they are active: what configuration lists of a boundary wins over what was seen. The
// first sight of a boundary is kept by its pin until a person accepts another (Accept). One that
// comes with another pin is an event, and is held from then on until a person accepts it,
// whatever its texts are later. Of one boundary that is twice in cs the first is active; if the
// second differs, it has changed. A schema that does not compile is not an error here: crossing
// that boundary is refused. One whose name holds a secret is prohibited, and not kept. It returns
// a ConflictError, and keeps nothing of cs, if a server brings more than is kept of it.
func (t *Catalog) Observe(ctx context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	return t.ObserveFor(ctx, "", "", cs)
}

// ObserveFor is Observe for one agent and its kind: a boundary that patterns of risk prohibit to
// it is returned as prohibited.
func (t *Catalog) ObserveFor(ctx context.Context, agent, kind string,
	cs []holdfast.Contract) ([]holdfast.Contract, error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	if err := t.room(cs); err != nil {
		return nil, err
	}
	named := make([]holdfast.Contract, 0, len(cs))
	for _, c := range cs {
		if !t.redact.TellsSecret(c.Boundary) {
			named = append(named, c)
		}
	}
	drifted, err := t.pin(ctx, named)
	if err != nil {
		return nil, err
	}
	set, stir := t.host.Contracts(), false
	out, put := make([]holdfast.Contract, 0, len(cs)), make(map[string]*contract.Contract, len(cs))
	for _, c := range cs {
		if t.redact.TellsSecret(c.Boundary) {
			c.Risk = holdfast.Prohibited // it is listed nowhere
			out = append(out, c)
			continue
		}
		made := put[c.Boundary]
		if made == nil {
			var changed bool
			made, changed = t.put(set, c, drifted[c.Boundary])
			put[c.Boundary], stir = made, stir || changed
		}
		out = append(out, set.ListedAs(made.Contract, agent, kind))
	}
	if stir {
		t.host.WakeAll()
	}
	return out, nil
}

// put keeps what was seen. It reports whether the active contract of a drifted boundary has
// changed. The caller has checked that it fits.
func (t *Catalog) put(set *contract.Set, c holdfast.Contract, drifted bool) (*contract.Contract, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[c.Boundary]
	if s == nil {
		s = &sight{}
		t.seen[c.Boundary] = s
		t.per[serverOf(c.Boundary)].count++
	} else if s.under == set && s.as.Pin == c.Pin && s.as.Risk == c.Risk && s.drifted == drifted {
		return s.made, false
	}
	more := weight(&c) - weight(&s.as)
	t.per[serverOf(c.Boundary)].bytes += more
	t.bytes += more
	stir := drifted && (!s.drifted || s.as.Pin != c.Pin)
	c.About = nil // it is kept with the sight, in part
	s.as, s.drifted = c, drifted
	return s.compile(set), stir
}

// compile makes the active contract under set. The caller holds the lock.
func (s *sight) compile(set *contract.Set) *contract.Contract {
	s.under, s.made = set, set.CompileSeen(s.as, s.drifted)
	return s.made
}

// Misfits names the rules that could never speak at a tool that showed itself
// after they were loaded, one sentence each: all its calls are refused.
func (t *Catalog) Misfits() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []string
	for name, s := range t.seen {
		for _, m := range s.made.Misfits {
			out = append(out, name+": "+m)
		}
	}
	slices.Sort(out)
	return out
}

// serverOf is the part of a boundary's name before its last segment.
func serverOf(boundary string) string {
	if i := strings.LastIndexByte(boundary, '/'); i >= 0 {
		return boundary[:i]
	}
	return boundary
}

// Find implements kernel.Catalog: what was last seen is compiled again after a policy change.
func (t *Catalog) Find(set *contract.Set, boundary string) *contract.Contract {
	t.mu.RLock()
	s := t.seen[boundary]
	if s == nil || s.under == set {
		defer t.mu.RUnlock()
		if s == nil {
			return nil
		}
		return s.made
	}
	t.mu.RUnlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.under == set {
		return s.made
	}
	return s.compile(set)
}

package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
)

// observed are the boundaries that a door saw rather than configuration: the
// tools of listed MCP servers (D37).
type observed struct {
	// turn is held while sights are compared, written and put in force, and
	// while one is accepted: of two at once neither undoes the other.
	turn  sync.Mutex
	mu    sync.RWMutex
	seen  map[string]*sight   // guarded by mu; by boundary
	per   map[string]*brought // guarded by mu; by server
	bytes int                 // guarded by mu; of all servers
}

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
	under    *policy
	made     *contract.Contract
}

// Observe tells the kernel of boundaries that a door saw, such as the tools of
// an MCP server, and returns them as they are in force: what configuration
// says of a boundary wins over what was seen. The first sight of a boundary is
// kept by its pin until a person accepts another (Accept); one that comes with
// another pin is an event, and is held from then on until a person accepts it,
// whatever it says later. Of one boundary that stands twice in cs the first is
// in force; where the second differs, it has changed. A schema that does not
// compile is no error here: crossing that boundary is refused. One whose name holds a secret is prohibited, and not
// kept. Errors:
// ConflictError where a server brings more than is kept of it; nothing of cs is
// kept then.
func (k *Kernel) Observe(ctx context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	return k.ObserveFor(ctx, "", "", cs)
}

// ObserveFor is Observe for one agent and its kind: what patterns of risk
// prohibit to that one, and what they prohibit to everybody but that one, is
// returned as that one may list it.
func (k *Kernel) ObserveFor(ctx context.Context, agent, kind string, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	k.seen.turn.Lock()
	defer k.seen.turn.Unlock()
	if err := k.seen.room(cs); err != nil {
		return nil, err
	}
	named := make([]holdfast.Contract, 0, len(cs))
	for _, c := range cs {
		if !k.telling(c.Boundary) {
			named = append(named, c)
		}
	}
	drifted, err := k.pin(ctx, named)
	if err != nil {
		return nil, err
	}
	pol, stir := k.policy.Load(), false
	out, put := make([]holdfast.Contract, 0, len(cs)), make(map[string]*contract.Contract, len(cs))
	for _, c := range cs {
		if k.telling(c.Boundary) {
			c.Risk = holdfast.Prohibited // it is listed nowhere
			out = append(out, c)
			continue
		}
		made := put[c.Boundary]
		if made == nil {
			var changed bool
			made, changed = k.seen.put(pol, c, drifted[c.Boundary])
			put[c.Boundary], stir = made, stir || changed
		}
		out = append(out, pol.listedAs(made.Contract, agent, kind))
	}
	if stir {
		k.stirAll()
	}
	return out, nil
}

// put keeps what was seen. It says whether what is in force of a drifted
// boundary is another now. There is room for it.
func (o *observed) put(pol *policy, c holdfast.Contract, drifted bool) (*contract.Contract, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[c.Boundary]
	if s == nil {
		s = &sight{}
		o.seen[c.Boundary] = s
		o.per[serverOf(c.Boundary)].count++
	} else if s.under == pol && s.as.Pin == c.Pin && s.as.Risk == c.Risk && s.drifted == drifted {
		return s.made, false
	}
	more := weight(&c) - weight(&s.as)
	o.per[serverOf(c.Boundary)].bytes += more
	o.bytes += more
	stir := drifted && (!s.drifted || s.as.Pin != c.Pin)
	c.About = nil // it is kept with the sight, in part
	s.as, s.drifted = c, drifted
	return s.compile(pol), stir
}

// compile makes the contract in force under pol. The caller holds the lock.
func (s *sight) compile(pol *policy) *contract.Contract {
	c := pol.contracts.Overlay(s.as)
	if s.drifted && c.Risk > holdfast.High {
		c.Risk = holdfast.High
	}
	if s.drifted {
		c.ReadRisk = holdfast.Prohibited // it is not known to read
	}
	s.under, s.made = pol, contract.Compile(c, pol.Rules)
	s.made.Drifted = s.drifted
	if len(c.Schema) > 0 && s.made.SchemaErr == nil {
		// Of a schema that cannot be read so, nothing is known.
		s.made.Misfits, _ = pol.Rules.Misfits(constitution.Boundary{Name: c.Boundary, Schema: c.Schema})
	}
	return s.made
}

// Misfits names the rules that could never speak at a tool that showed itself
// after they were loaded, one sentence each: all its calls are refused.
func (k *Kernel) Misfits() []string {
	k.seen.mu.RLock()
	defer k.seen.mu.RUnlock()
	var out []string
	for name, s := range k.seen.seen {
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

// find returns the observed contract under pol, compiling what was last seen
// anew after a policy change.
func (o *observed) find(pol *policy, boundary string) *contract.Contract {
	o.mu.RLock()
	s := o.seen[boundary]
	if s == nil || s.under == pol {
		defer o.mu.RUnlock()
		if s == nil {
			return nil
		}
		return s.made
	}
	o.mu.RUnlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.under == pol {
		return s.made
	}
	return s.compile(pol)
}

// lookup finds the contract in force for a boundary, or nil.
func (k *Kernel) lookup(pol *policy, boundary string) *contract.Contract {
	if c := k.seen.find(pol, boundary); c != nil {
		return c
	}
	return pol.contracts.Under(boundary, func(name string) bool { return k.redact.Text([]byte(name)).Found() })
}

// Contract returns the contract in force for a boundary.
func (k *Kernel) Contract(boundary string) (holdfast.Contract, bool) {
	c := k.lookup(k.policy.Load(), boundary)
	if c == nil {
		return holdfast.Contract{}, false
	}
	return c.Contract, true
}

// governs is what an approval is bound to beside the request: the policy, and
// for a tool that was observed what it said of itself (D11, D37).
func (j *judgement) governs() string { return governs(j.pol, j.contract) }

// governs is the same for a boundary as it is now.
func (k *Kernel) governs(boundary string) string {
	pol := k.policy.Load()
	return governs(pol, k.lookup(pol, boundary))
}

func governs(pol *policy, c *contract.Contract) string {
	if c == nil || c.Pin == "" {
		return pol.Version
	}
	sum := sha256.Sum256([]byte(pol.Version + " " + c.Pin))
	return hex.EncodeToString(sum[:])
}

package contract

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/lookalike"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Listing is what configuration lists.
type Listing struct {
	Contracts []holdfast.Contract
	Rules     Rules
	Risks     []review.Pattern
	// Weakened are all weakenings, those of the contracts included.
	Weakened []string
}

// Set is the contracts that configuration lists. It is immutable.
type Set struct {
	rules    Rules
	risks    []review.Pattern
	exact    map[string]*Contract
	folded   map[string]string // the exact names by their folded form
	patterns []*Contract       // longest first
	general  []string          // the weakenings that are of no single contract
}

// NewSet compiles every contract. One that does not compile refuses all (D49).
func NewSet(l Listing) (*Set, error) {
	s := &Set{rules: l.Rules, risks: l.Risks, exact: map[string]*Contract{}, folded: map[string]string{}}
	for i := range l.Contracts {
		c := Compile(l.Contracts[i], l.Rules)
		if err := c.firstError(); err != nil {
			return nil, fmt.Errorf("%s: contract %s: %w", c.Source, c.Boundary, err)
		}
		if strings.HasSuffix(c.Boundary, "*") {
			s.patterns = append(s.patterns, c)
			continue
		}
		if _, twice := s.exact[c.Boundary]; twice {
			return nil, fmt.Errorf("%s: the boundary %s is listed twice", c.Source, c.Boundary)
		}
		s.exact[c.Boundary], s.folded[lookalike.Fold(c.Boundary)] = c, c.Boundary
	}
	s.shareWeakened(l.Contracts, l.Weakened)
	sort.SliceStable(s.patterns, func(i, k int) bool {
		return len(s.patterns[i].Boundary) > len(s.patterns[k].Boundary)
	})
	return s, nil
}

// shareWeakened gives each contract the weakenings that apply where it governs: the general
// ones, and its own.
func (s *Set) shareWeakened(cs []holdfast.Contract, weakened []string) {
	own := map[string]bool{}
	for _, c := range cs {
		own[c.Weakened] = c.Weakened != ""
	}
	for _, w := range weakened {
		if !own[w] {
			s.general = append(s.general, w)
		}
	}
	share := func(c *Contract) {
		c.Loosened = s.general
		if c.Weakened != "" {
			c.Loosened = append(slices.Clone(s.general), c.Weakened)
		}
	}
	for _, c := range s.exact {
		share(c)
	}
	for _, c := range s.patterns {
		share(c)
	}
}

// LoosenedFor returns what is loosened for a crossing by c, which may be nil.
func (s *Set) LoosenedFor(c *Contract) []string {
	if c != nil && c.Loosened != nil {
		return c.Loosened
	}
	return s.general
}

// Find returns what configuration says of a boundary, or nil. An exact name wins over a
// pattern, a longer pattern over a shorter one.
func (s *Set) Find(boundary string) *Contract {
	if c, ok := s.exact[boundary]; ok {
		return c
	}
	for _, c := range s.patterns {
		if strings.HasPrefix(boundary, strings.TrimSuffix(c.Boundary, "*")) {
			return c
		}
	}
	return nil
}

// Under returns the contract by which a boundary is crossed: the one of its exact name, or a
// copy, under its own name, of a pattern's. A pattern does not cover a name that is not
// plain, or that differs only in case from a listed one, or that isSecret refuses: the name
// is an agent's text and is written down unchanged.
func (s *Set) Under(boundary string, isSecret func(string) bool) *Contract {
	c := s.Find(boundary)
	if c == nil || c == s.exact[boundary] {
		return c
	}
	if !s.covers(boundary) || isSecret(boundary) {
		return nil
	}
	own := *c
	own.Boundary = boundary
	return &own
}

// Listed returns what configuration says of a boundary, under the name or the pattern that
// lists it. No pattern lists a name that could not be crossed.
func (s *Set) Listed(boundary string) (holdfast.Contract, bool) {
	c := s.Find(boundary)
	if c == nil || strings.HasSuffix(c.Boundary, "*") && !s.covers(boundary) {
		return holdfast.Contract{}, false
	}
	return c.Contract, true
}

// covers reports whether a pattern may cover a name.
func (s *Set) covers(boundary string) bool {
	exact, ok := s.folded[lookalike.Fold(boundary)]
	return isPlain(boundary) && !(ok && exact != boundary)
}

// CompileSeen makes ready the contract of a boundary that a server listed. One that drifted
// goes to a person, whatever its hints and its contract say.
func (s *Set) CompileSeen(seen holdfast.Contract, drifted bool) *Contract {
	c := s.overlay(seen)
	if drifted {
		c.Risk, c.ReadRisk = min(c.Risk, holdfast.High), holdfast.Prohibited // it is not known to read
	}
	made := Compile(c, s.rules)
	made.Drifted = drifted
	if len(c.Schema) > 0 && made.SchemaErr == nil {
		// Of a schema that rules cannot read nothing is known.
		made.Misfits, _ = s.rules.Misfits(constitution.Boundary{Name: c.Boundary, Schema: c.Schema})
	}
	return made
}

// ListedAs returns a contract as an agent sees it that lists boundaries: one that a pattern
// prohibits to it by name is not listed (D37). Without an agent and a kind only the patterns
// for all agents apply.
func (s *Set) ListedAs(c holdfast.Contract, agent, kind string) holdfast.Contract {
	class := review.Classify(s.risks, review.Acting{Boundary: c.Boundary, Operation: c.Operation, Agent: agent,
		Kind: kind})
	if class != nil && class.Risk == holdfast.Prohibited {
		c.Risk = holdfast.Prohibited
	}
	return c
}

// overlay returns a boundary that a server listed as configuration wants it: the server
// knows the schemas, configuration decides everything else that it names.
func (s *Set) overlay(seen holdfast.Contract) holdfast.Contract {
	c := s.Find(seen.Boundary)
	if c == nil {
		return seen
	}
	out := c.Contract
	out.Boundary, out.Pin = seen.Boundary, seen.Pin
	if out.Schema == nil {
		out.Schema, out.SchemaID = seen.Schema, seen.SchemaID
	}
	if out.OutputSchema == nil {
		out.OutputSchema = seen.OutputSchema
	}
	if out.Permissions == nil {
		out.Permissions = seen.Permissions
	}
	if out.Consumes == nil {
		out.Consumes = seen.Consumes
	}
	if out.Predicates == nil {
		out.Predicates = seen.Predicates
	}
	return out
}

// maxName bounds the name of a boundary that only a pattern lists, in bytes.
const maxName = 512

// isPlain reports whether a name has the one spelling that a name has: segments of plain
// characters, none empty, none that climbs. A boundary that is listed by itself must not
// pass under a pattern in another spelling.
func isPlain(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsFunc(segment, isOdd) {
			return false
		}
	}
	return true
}

func isOdd(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		strings.ContainsRune("-._~%+@:=,", r))
}

package survey

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// lookedBack is how many of a tenant's newest leaves tell what is drawn on now.
const lookedBack = 500

// survey finds how one tenant's budgets stand.
type survey struct {
	tx     kernel.Reader
	p      *kernel.Policy
	ask    Ask
	now    time.Time
	tenant string
	out    *Standings

	agents map[string]holdfast.Agent
	agent  holdfast.Agent // who is asked for; base is with whose token it asks
	base   string
	// held is what begins without an entry took; unheld is why that is not known.
	held   map[windowOf]int64
	unheld string
	// lately are the keys that those asked for drew on last, or hold, with the kind of
	// agent that did.
	lately map[string]string
	// shown are the keys of rows, covered the limits that have one.
	shown, covered map[string]bool
}

// windowOf is a counter in one of its windows.
type windowOf struct {
	key    string
	window int64
}

func (s *survey) all(size int64) error {
	if err := s.whom(); err != nil {
		return err
	}
	s.held, s.lately = map[windowOf]int64{}, map[string]string{}
	if err := s.newest(size); err != nil {
		return err
	}
	if err := s.reserved(); err != nil {
		s.unheld = "what is reserved cannot be read"
	}
	for _, key := range slices.Sorted(maps.Keys(s.lately)) {
		s.one(key)
	}
	for _, scope := range []budget.Scope{budget.Tenant, budget.Tier, budget.Intent, budget.Kind, budget.Agent, budget.Session, budget.Chain} {
		s.scope(scope)
	}
	if !s.ask.Live {
		s.untouched()
	}
	return nil
}

// whom reads the agents.
func (s *survey) whom() error {
	as, err := s.tx.Agents(s.tenant)
	if err != nil {
		return err
	}
	s.agents = make(map[string]holdfast.Agent, len(as))
	for _, a := range as {
		s.agents[a.Name] = a
	}
	if s.ask.Agent == "" {
		return nil
	}
	a, known := s.agents[s.ask.Agent]
	if !known {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no agent " + excerpt.Of(s.ask.Agent,
			maxAgentName) + " of tenant " + s.tenant, Hint: "`holdfast agent ls` lists those that were seen",
			Err: kernel.ErrNotFound}
	}
	s.agent, s.base = a, cmp.Or(a.Owner, a.Name)
	return nil
}

// asked says whether a record's agent is one that is asked for.
func (s *survey) asked(agent, sub string) bool {
	return s.ask.Agent == "" || agent == s.base && (s.ask.Agent == s.base || holdfast.SubName(agent, sub) == s.ask.Agent)
}

// newest notes what was drawn on last. What cannot be read there tells nothing:
// whoever verifies the ledger names it.
func (s *survey) newest(size int64) error {
	return s.tx.Leaves(s.tenant, max(0, size-lookedBack), size, func(l ledger.Stored) error {
		switch l.Kind {
		case ledger.KindBegin:
			if b, err := ledger.ParseBegin(l.Record); err == nil {
				s.drew(b)
			}
		case ledger.KindEntry:
			e, err := ledger.ParseEntry(l.Record)
			if err != nil {
				return nil
			}
			if agent, sub := e.Who(); s.asked(agent, sub) {
				for i := range e.Uses {
					s.lately[e.Uses[i].Draw.Key] = e.AgentKind
				}
			}
		}
		return nil
	})
}

func (s *survey) drew(b *ledger.Begin) {
	if agent, sub := b.Who(); s.asked(agent, sub) {
		for i := range b.Draws {
			s.lately[b.Draws[i].Key] = b.AgentKind
		}
	}
}

// reserved adds up what begins without an entry took.
func (s *survey) reserved() error {
	return s.tx.Open(func(l ledger.Stored) error {
		if l.Tenant != s.tenant {
			return nil
		}
		b, err := ledger.ParseBegin(l.Record)
		if err != nil {
			return err
		}
		s.drew(b)
		for _, d := range b.Draws {
			at := windowOf{d.Key, d.Window}
			s.held[at] = budget.AddCapped(s.held[at], d.Amount)
		}
		return nil
	})
}

// errFound ends a search.
var errFound = errors.New("found")

// one adds the counter of a key that was drawn on.
func (s *survey) one(key string) {
	h, ok := budget.ParseKey(key)
	if !ok || h.Tenant != s.tenant {
		return
	}
	c := budget.Counter{}
	err := s.tx.Counters(key, func(k string, v budget.Counter) error {
		if k == key {
			c = v
		}
		return errFound // of those that begin so the key itself is the first
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	if l := s.limit(key, &h); l != nil {
		s.add(row{key: key, held: h, limit: l, counter: c, bad: err != nil})
	}
}

// scope adds the counters of a scope, of those that the asked agent draws on. Of
// intents, tiers and chains nothing but its records tells which those are.
func (s *survey) scope(scope budget.Scope) {
	prefixes := []string{budget.KeysOf(s.tenant, scope)}
	perAgent := scope == budget.Session || scope == budget.Chain
	switch {
	case s.ask.Live && perAgent, !s.limited(scope):
		return
	case s.ask.Agent == "", scope == budget.Tenant:
	case scope == budget.Agent:
		prefixes = []string{budget.KeysOf(s.tenant, scope, s.base), budget.KeysWithin(s.tenant, s.base)}
	case scope == budget.Session:
		prefixes = []string{budget.KeysOf(s.tenant, scope, s.base)}
	case scope == budget.Kind:
		prefixes = []string{budget.KeysOf(s.tenant, scope, s.agent.Kind)}
	default:
		return
	}
	for _, prefix := range prefixes {
		err := s.tx.Counters(prefix, func(key string, c budget.Counter) error {
			h, ok := budget.ParseKey(key)
			if l := s.limit(key, &h); ok && l != nil && !s.shown[key] {
				s.add(row{key: key, held: h, limit: l, counter: c})
			}
			return nil
		})
		if err != nil {
			s.unread(scope)
		}
	}
}

// limited says whether any limit has that scope.
func (s *survey) limited(scope budget.Scope) bool {
	return scope == budget.Session || slices.ContainsFunc(s.p.Limits, func(l budget.Limit) bool { return l.Scope == scope })
}

// unread adds every limit of a scope whose counters cannot be read.
func (s *survey) unread(scope budget.Scope) {
	for _, l := range s.limits() {
		if l.Scope == scope && s.concerns(l) {
			s.add(row{key: "unread " + limitID(l), held: s.whoseIs(l), limit: l, bad: true})
		}
	}
}

// limits are the policy's, and the iterations of the kinds that are asked for.
func (s *survey) limits() []*budget.Limit {
	var out []*budget.Limit
	for i := range s.p.Limits {
		out = append(out, &s.p.Limits[i])
	}
	for _, kind := range s.kinds() {
		out = append(out, new(s.p.IterationLimit(kind)))
	}
	return out
}

// limit is what holds for a counter, or nil: the smallest of those that do.
func (s *survey) limit(key string, h *budget.Held) *budget.Limit {
	var out *budget.Limit
	for i := range s.p.Limits {
		if l := &s.p.Limits[i]; l.Holds(h) && (out == nil || l.Amount < out.Amount) {
			out = l
		}
	}
	if h.Scope != budget.Session {
		return out
	}
	kind, known := s.lately[key]
	if !known {
		kind = s.agents[h.Agent].Kind
	}
	if l := s.p.IterationLimit(kind); l.Holds(h) && (out == nil || l.Amount < out.Amount) {
		out = &l
	}
	return out
}

// limitID tells limits apart that have rows of their own.
func limitID(l *budget.Limit) string {
	return strings.Join([]string{string(l.Scope), l.Match, string(l.Resource), l.Boundary, l.Window.String(), l.Source}, "\x00")
}

// row is a counter and the limit that holds for it; bad is one that cannot be read.
type row struct {
	key     string
	held    budget.Held
	limit   *budget.Limit
	counter budget.Counter
	bad     bool
}

// add adds a row, unless nobody asked for it.
func (s *survey) add(r row) {
	h, l, c := &r.held, r.limit, r.counter
	if h.Scope == budget.Agent && s.ask.Agent != "" && h.Of != s.base && s.ask.Agent != s.base && h.Name() != s.ask.Agent {
		return
	}
	d, over := l.Draw(h, s.now), false
	d.Key = r.key
	switch {
	case c.Window > d.Window:
		d.Window = c.Window // the clock went backwards: the newer window is drawn on
	case c.Window < d.Window:
		over, c = c.Window > 0, budget.Counter{Window: d.Window}
	}
	held := s.held[windowOf{r.key, d.Window}]
	switch {
	case r.bad || held > 0 || c.Used != 0:
	case s.ask.Live, over && h.Scope != budget.Tenant && s.ask.Agent == "":
		return // whoever drew on it may be long gone
	}
	s.shown[r.key], s.covered[limitID(l)] = true, true
	out := Standing{Tenant: s.tenant, Scope: h.Scope, Of: h.Name(), Agent: h.Agent, Resource: h.Resource, Boundary: h.Boundary, Exceed: cmp.Or(l.Exceed, budget.Refuse), Source: l.Source}
	if d.Window > 0 {
		out.Ends = time.Unix(d.Window, 0).Add(l.Window).UTC()
	}
	s.fill(&out, l, d, c, held, r.bad)
	s.out.Rows = append(s.out.Rows, out)
	if len(s.out.Rows) > 4*MaxStandings {
		s.out.cut()
	}
}

// fill adds the amounts.
func (s *survey) fill(row *Standing, l *budget.Limit, d budget.Draw, c budget.Counter, held int64, bad bool) {
	row.Limit = l.Amount
	if l.Exceed == budget.PauseAgent {
		g, err := exceed.ReadGrant(s.tx, &d)
		if err != nil {
			row.Unknown = "what people granted cannot be read"
			return
		}
		row.Limit, row.Granted = budget.AddCapped(row.Limit, g), g
	}
	switch {
	case bad:
		row.Unknown = "the counter cannot be read"
		return
	case c.Used < 0:
		row.Unknown = "the counter is damaged"
		return
	}
	row.Left = new(max(0, row.Limit-c.Used))
	if s.unheld != "" {
		row.Unknown = s.unheld
		return
	}
	held = min(held, c.Used)
	row.Used, row.Reserved = new(c.Used-held), &held
}

// untouched adds the limits on which nobody draws.
func (s *survey) untouched() {
	for _, l := range s.limits() {
		if s.covered[limitID(l)] || !s.concerns(l) {
			continue
		}
		h := s.whoseIs(l)
		key := "each " + limitID(l)
		if h.Of != "" {
			key = l.Draw(&h, s.now).Key
			l = cmp.Or(s.limit(key, &h), l)
		}
		if !s.shown[key] {
			s.add(row{key: key, held: h, limit: l})
		}
	}
}

// kinds are those of the agents that are asked for.
func (s *survey) kinds() []string {
	if s.ask.Agent != "" {
		return []string{s.agent.Kind}
	}
	kinds := map[string]bool{}
	for _, a := range s.agents {
		if a.Owner == "" {
			kinds[a.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// whoseIs is the owner whose counter a limit is for; one without a name where each
// has its own.
func (s *survey) whoseIs(l *budget.Limit) budget.Held {
	h := budget.Held{Tenant: s.tenant, Scope: l.Scope, Resource: l.Resource, Window: l.Window, Boundary: l.Boundary}
	switch {
	case l.Scope == budget.Tenant:
		h.Of = s.tenant
	case l.Match != "" && l.Match != "*":
		h.Of = l.Match
		if a := s.agents[l.Match]; l.Scope == budget.Agent && a.Owner != "" {
			h.Of = a.Owner + "\x00" + strings.TrimPrefix(a.Name, a.Owner+"/")
		}
	case s.ask.Agent != "" && l.Scope == budget.Agent:
		h.Of = s.base
	case s.ask.Agent != "" && l.Scope == budget.Kind:
		h.Of = s.agent.Kind
	}
	return h
}

// concerns says whether a limit can be drawn on by those asked for.
func (s *survey) concerns(l *budget.Limit) bool {
	every := l.Match == "" || l.Match == "*"
	switch {
	case l.Scope == budget.Tenant:
		return every || l.Match == s.tenant
	case s.ask.Agent == "" || every:
		return true
	case l.Scope == budget.Agent:
		return l.Match == s.base || l.Match == s.ask.Agent || s.ask.Agent == s.base && strings.HasPrefix(l.Match, s.base+"/")
	case l.Scope == budget.Kind:
		return l.Match == s.agent.Kind
	}
	return false
}

package budget

import (
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Ask is what one crossing wants of K3.
type Ask struct {
	Who holdfast.Identity
	// Within are the ids of the agents within Who's agent that the request stands
	// beneath, its own first. What they take the agent takes; limits that name one
	// come beside, and cover nothing.
	Within   []string
	Boundary string
	// Consumes is what the contract and the request ask together.
	Consumes map[holdfast.Resource]int64
	// PerMinute and Cooldown are the contract's own, counted per agent.
	PerMinute int
	Cooldown  time.Duration
	Now       time.Time
}

// Plan lists the counters and rates that the ask draws on, in a fixed order,
// each counter once under the smallest of its limits.
// An amount below zero, a limit below zero and a resource that no limit covers
// are refusals. Amounts of zero draw nothing.
func Plan(limits []Limit, rates []RateLimit, ask Ask) ([]Draw, []Rate, *Refusal) {
	draws, refusal := planDraws(limits, ask)
	if refusal != nil {
		return nil, nil, refusal
	}
	return draws, planRates(rates, ask), nil
}

func planDraws(limits []Limit, ask Ask) ([]Draw, *Refusal) {
	var draws []Draw
	for _, res := range resources(ask.Consumes) {
		amount := ask.Consumes[res]
		if amount < 0 {
			return nil, &Refusal{Kind: holdfast.KindValue, Draw: Draw{Resource: res, Amount: amount}}
		}
		if amount == 0 {
			continue
		}
		covered := false
		for i := range limits {
			l := &limits[i]
			value := scopeValue(l.Scope, &ask.Who)
			if l.Resource != res || value == "" || !matches(l.Match, value) || !MatchBoundary(l.Boundary, ask.Boundary) {
				continue
			}
			d := l.draw(&ask.Who, amount, ask.Now)
			if l.Amount < 0 {
				return nil, &Refusal{Kind: holdfast.KindInvalidBudget, Draw: d}
			}
			covered = true
			draws = addDraw(draws, d)
		}
		if !covered {
			return nil, &Refusal{Kind: holdfast.KindBudgetNotFound, Draw: Draw{Resource: res, Amount: amount}}
		}
		var no *Refusal
		if draws, no = planWithin(draws, limits, &ask, res); no != nil {
			return nil, no
		}
	}
	return draws, nil
}

// planWithin adds the draws on limits that name an agent within the asking one.
func planWithin(draws []Draw, limits []Limit, ask *Ask, res holdfast.Resource) ([]Draw, *Refusal) {
	for _, id := range ask.Within {
		who, name := within(ask.Who, id)
		for i := range limits {
			l := &limits[i]
			if l.Scope != Agent || l.Resource != res || l.Match != name || !MatchBoundary(l.Boundary, ask.Boundary) {
				continue
			}
			d := l.draw(&who, ask.Consumes[res], ask.Now)
			d.Of = name
			if l.Amount < 0 {
				return nil, &Refusal{Kind: holdfast.KindInvalidBudget, Draw: d}
			}
			draws = addDraw(draws, d)
		}
	}
	return draws, nil
}

// within is who an agent within another is to counters, and what limits call it. No
// token's agent has a NUL in its name, so that none is counted with it, not even
// one that bears its name.
func within(who holdfast.Identity, id string) (holdfast.Identity, string) {
	name := holdfast.SubName(who.Agent, id)
	who.Agent += "\x00" + id
	return who, name
}

// addDraw adds d, or, where the same counter is drawn on already, keeps the
// smaller of the two limits: a counter is drawn on once.
func addDraw(draws []Draw, d Draw) []Draw {
	for i := range draws {
		if draws[i].Key != d.Key {
			continue
		}
		if d.Limit < draws[i].Limit {
			draws[i] = d
		}
		return draws
	}
	return append(draws, d)
}

func (l *Limit) draw(who *holdfast.Identity, amount int64, now time.Time) Draw {
	parts := slices.Concat([]string{who.Tenant, string(l.Scope)}, owner(l.Scope, who), []string{string(l.Resource), strconv.FormatInt(int64(l.Window/time.Second), 10)})
	if l.Boundary != "" {
		parts = append(parts, l.Boundary)
	}
	return Draw{
		Key:      key(parts...),
		Resource: l.Resource,
		Amount:   amount,
		Limit:    l.Amount,
		Window:   WindowStart(l.Window, now),
		Name:     l.name(),
		Exceed:   l.Exceed,
	}
}

func (l *Limit) name() string {
	n := string(l.Resource) + " per " + string(l.Scope)
	if l.Boundary != "" {
		n += " at " + l.Boundary
	}
	if l.Window > 0 {
		n += " in " + l.Window.String()
	}
	if l.Source != "" {
		n += " (" + l.Source + ")"
	}
	return n
}

// End is when the window ends that d draws on, unix seconds; 0 where it never
// does, and where none of the limits made d.
func End(limits []Limit, d Draw) int64 {
	for i := range limits {
		if l := &limits[i]; d.Window > 0 && l.Window >= time.Second && l.name() == d.Name {
			return d.Window + int64(l.Window/time.Second)
		}
	}
	return 0
}

// WindowStart is the unix second in which the window that holds now began; 0
// for a window of zero, which never ends. Windows are aligned to the unix
// epoch, so that a day is a UTC day (D9).
func WindowStart(window time.Duration, now time.Time) int64 {
	w := int64(window / time.Second)
	if w <= 0 {
		return 0
	}
	s := now.Unix()
	return s - s%w
}

func planRates(rates []RateLimit, ask Ask) []Rate {
	var out []Rate
	once := func(r Rate) {
		for i := range out {
			if out[i].Key == r.Key {
				return
			}
		}
		out = append(out, r)
	}
	add := func(who *holdfast.Identity, scope Scope, boundary, source string, perMinute int, cooldown time.Duration) {
		named := func(what, bound string) string {
			return key(slices.Concat([]string{who.Tenant, what, string(scope)}, owner(scope, who), []string{boundary, bound})...)
		}
		if perMinute > 0 {
			once(Rate{Key: named("rate", strconv.Itoa(perMinute)),
				Limit: perMinute, Window: time.Minute, Name: strconv.Itoa(perMinute) + " a minute per " + string(scope) + " (" + source + ")"})
		}
		if cooldown > 0 {
			once(Rate{Key: named("cooldown", cooldown.String()),
				Limit: 1, Window: cooldown, Name: "cooldown of " + cooldown.String() + " per " + string(scope) + " (" + source + ")"})
		}
	}
	for i := range rates {
		r := &rates[i]
		value := scopeValue(r.Scope, &ask.Who)
		if value == "" || !matches(r.Match, value) || !MatchBoundary(r.Boundary, ask.Boundary) {
			continue
		}
		add(&ask.Who, r.Scope, r.Boundary, r.Source, r.PerMinute, r.Cooldown)
	}
	for _, id := range ask.Within {
		who, name := within(ask.Who, id)
		for i := range rates {
			if r := &rates[i]; r.Scope == Agent && r.Match == name && MatchBoundary(r.Boundary, ask.Boundary) {
				add(&who, r.Scope, r.Boundary, r.Source, r.PerMinute, r.Cooldown)
			}
		}
	}
	add(&ask.Who, Agent, ask.Boundary, "contract", ask.PerMinute, ask.Cooldown)
	return out
}

// MatchBoundary says whether a boundary matches a pattern: empty and "*" match
// all, a trailing "/*" or "*" matches the rest, anything else is exact.
func MatchBoundary(pattern, boundary string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(boundary, prefix)
	}
	return pattern == boundary
}

func matches(match, value string) bool { return match == "" || match == "*" || match == value }

func scopeValue(s Scope, who *holdfast.Identity) string {
	switch s {
	case Tenant:
		return who.Tenant
	case Tier:
		return who.Tier
	case Intent:
		return who.Intent
	case Kind:
		return who.Kind
	case Agent:
		return who.Agent
	case Session:
		return who.Session
	case Chain:
		return who.Chain
	}
	return ""
}

// owner is whose counter it is: the scope's value, and of a session its agent
// too. A session is one agent's (spec 001, layer 1: "per agent session"), so that
// an agent that bears the name of another's session spends nothing of that one.
// What counts over agents is the chain.
func owner(s Scope, who *holdfast.Identity) []string {
	if s == Session {
		return []string{who.Agent, who.Session}
	}
	return []string{scopeValue(s, who)}
}

// key joins parts so that no value can reach into another's place.
func key(parts ...string) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

func resources(m map[holdfast.Resource]int64) []holdfast.Resource {
	rs := make([]holdfast.Resource, 0, len(m))
	for r := range m {
		rs = append(rs, r)
	}
	sort.Slice(rs, func(i, j int) bool { return rs[i] < rs[j] })
	return rs
}

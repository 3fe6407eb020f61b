package mapping

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"
)

// The bounds of what is kept.
const (
	maxGroups  = 1024
	maxEntries = 1 << 16        // of one session at one row; the oldest go first
	maxValue   = 64 << 10       // bytes; a longer value is replaced in one direction
	maxBytes   = 16 << 20       // of the values of one session at one row; the oldest go first
	maxTotal   = 256 << 20      // bytes of all values in memory; the sessions not used for longest go first
	maxAge     = 24 * time.Hour // since the session's last request
)

// Sessions keeps the mappings of all owners. It may be used by several goroutines.
type Sessions struct {
	key    []byte
	now    func() time.Time
	keeper Keeper // nil keeps values in memory alone

	mu     sync.Mutex
	groups map[groupKey]*group          // guarded by mu
	signed map[signedOwner]*signedParts // guarded by mu
	swept  time.Time                    // guarded by mu; when old sessions were last looked for
}

// NewSessions returns one whose placeholders are derived under key, which stays with the state and is known
// to no one else. now is the clock.
func NewSessions(key []byte, now func() time.Time) *Sessions {
	return &Sessions{key: bytes.Clone(key), now: now, groups: map[groupKey]*group{},
		signed: map[signedOwner]*signedParts{}}
}

// UseKeeper has a keeper keep the values. It is called before the first Find.
func (s *Sessions) UseKeeper(k Keeper) { s.keeper = k }

// groupKey is one session of an agent.
type groupKey struct{ tenant, agent, session string }

// group is the mappings of one session of an agent, one for each row.
type group struct {
	all    *Sessions
	key    groupKey
	signed *signedParts
	used   time.Time // guarded by Sessions.mu

	load, save sync.Mutex // one at a time
	loaded     bool       // guarded by load

	mu   sync.Mutex
	rows map[string]*Session // guarded by mu

	elsewhere   Elsewhere // guarded by mu; of the values of all rows
	elsewhereOf int       // guarded by mu; what countSought was when elsewhere was made
}

// Find returns the session of an owner, a new one for a new owner. Sessions that were not used for a day
// are forgotten, and the one that was not used for longest where there are too many.
func (s *Sessions) Find(o Owner) *Session { return s.findGroup(o).findRow(o) }

func (s *Sessions) findGroup(o Owner) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, k := s.now(), groupKey{o.Tenant, o.Agent, o.Session}
	if g := s.groups[k]; g != nil && now.Sub(g.used) < maxAge {
		g.used = now
		return g
	}
	g := &group{all: s, key: k, used: now, signed: s.findSigned(o), rows: map[string]*Session{}}
	s.groups[k] = g
	s.dropIdle(now, g)
	return g
}

// Sweep forgets sessions that were not used for a day.
func (s *Sessions) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.swept) >= sweepEvery || now.Before(s.swept) {
		s.dropIdle(now, nil)
	}
}

// sweepEvery is the least time between two looks at all sessions.
const sweepEvery = time.Minute

// dropIdle forgets sessions that were not used for a day, and those not used for longest where there are too many or
// where they have too many bytes, except kept. mu must be held.
func (s *Sessions) dropIdle(now time.Time, kept *group) {
	s.swept = now
	list := slices.SortedFunc(maps.Values(s.groups), func(a, b *group) int { return b.used.Compare(a.used) })
	total, room := 0, maxGroups
	if kept != nil {
		room-- // kept need not be the first of those that were used now
	}
	for _, g := range list {
		if total += g.countBytes(); g == kept {
			continue
		}
		if room--; room < 0 || total > maxTotal || now.Sub(g.used) >= maxAge {
			delete(s.groups, g.key)
		}
	}
	for k, p := range s.signed {
		if now.Sub(p.used) >= maxAge {
			delete(s.signed, k)
		}
	}
}

// countBytes returns the bytes of the values in memory.
func (g *group) countBytes() (n int) {
	for _, s := range g.listRows() {
		s.mu.Lock()
		n += s.bytes
		s.mu.Unlock()
	}
	return n
}

func (g *group) listRows() []*Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.rows))
}

// findRow returns the session's mapping at the owner's row.
func (g *group) findRow(o Owner) *Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	if have := g.rows[o.Row]; have != nil {
		return have
	}
	mac := hmac.New(sha256.New, g.all.key)
	for _, part := range []string{o.Tenant, o.Agent, o.Session, o.Row} {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	made := &Session{key: mac.Sum(nil), owner: o, group: g, againOf: -1, byValue: map[string]*entry{},
		byPlaceholder: map[string]*entry{}}
	g.rows[o.Row] = made
	return made
}

// Forget forgets the values of one session of an agent, at all rows.
func (s *Sessions) Forget(tenant, agent, session string) {
	s.mu.Lock()
	g := s.groups[groupKey{tenant, agent, session}]
	delete(s.groups, groupKey{tenant, agent, session})
	s.mu.Unlock()
	if g == nil {
		return
	}
	for _, row := range g.listRows() {
		row.mu.Lock()
		row.forgotten = true // a request that is on its way saves nothing of it
		row.mu.Unlock()
	}
}

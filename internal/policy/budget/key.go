package budget

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Held says what a counter counts, as its key has it.
type Held struct {
	Tenant string
	Scope  Scope
	// Of is the scope's value, such as an agent's name; of one within an agent the
	// agent's name, a NUL and its id. Agent is whose session it is.
	Of, Agent string
	Resource  holdfast.Resource
	Window    time.Duration
	Boundary  string
}

// ParseKey reads a counter's key as Plan writes it; ok is false for any other.
func ParseKey(key string) (h Held, ok bool) {
	var parts []string
	for text := range strings.SplitSeq(key, "/") {
		p, err := url.PathUnescape(text)
		if err != nil {
			return Held{}, false
		}
		parts = append(parts, p)
	}
	if len(parts) < 2 {
		return Held{}, false
	}
	h.Tenant, h.Scope = parts[0], Scope(parts[1])
	rest := parts[2:]
	if h.Scope == Session && len(rest) > 0 {
		h.Agent, rest = rest[0], rest[1:]
	}
	if len(rest) != 3 && len(rest) != 4 {
		return Held{}, false
	}
	seconds, err := strconv.ParseInt(rest[2], 10, 64)
	if err != nil || seconds < 0 || seconds > int64(1<<63-1)/int64(time.Second) {
		return Held{}, false
	}
	h.Of, h.Resource, h.Window = rest[0], holdfast.Resource(rest[1]), time.Duration(seconds)*time.Second
	if len(rest) == 4 {
		h.Boundary = rest[3]
	}
	return h, true
}

// KeysOf is what the keys of a scope's counters begin with; of names those that are
// counted for such an owner: the scope's value, of a session its agent first.
func KeysOf(tenant string, s Scope, names ...string) string {
	return key(append([]string{tenant, string(s)}, names...)...) + "/"
}

// KeysWithin is what the keys of the counters begin with of all within an agent.
func KeysWithin(tenant, agent string) string {
	return key(tenant, string(Agent), agent+"\x00")
}

// Name is the owner as people and limits call it: AGENT/ID of one within an agent.
func (h *Held) Name() string { return strings.Replace(h.Of, "\x00", "/", 1) }

// Holds says whether the limit is one of those that this counter is held to.
func (l *Limit) Holds(h *Held) bool {
	if l.Scope != h.Scope || l.Resource != h.Resource || l.Window/time.Second != h.Window/time.Second || l.Boundary != h.Boundary {
		return false
	}
	if h.Scope == Agent && strings.Contains(h.Of, "\x00") {
		return l.Match == h.Name() // as planWithin
	}
	return matches(l.Match, h.Of)
}

// Draw is what draws on that counter under the limit, of nothing.
func (l *Limit) Draw(h *Held, now time.Time) Draw {
	who := holdfast.Identity{Tenant: h.Tenant}
	switch h.Scope {
	case Tier:
		who.Tier = h.Of
	case Intent:
		who.Intent = h.Of
	case Kind:
		who.Kind = h.Of
	case Agent:
		who.Agent = h.Of
	case Session:
		who.Agent, who.Session = h.Agent, h.Of
	case Chain:
		who.Chain = h.Of
	}
	return l.draw(&who, 0, now)
}

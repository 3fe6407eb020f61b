package toolpin

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Bounds of what servers may bring. A listing that goes beyond one of them is
// refused before anything of it is kept.
const (
	maxObserved      = 1_000    // boundaries of one server, in this process
	maxPins          = 2_000    // first sights of one server in the store, for ever
	maxServerSchemas = 4 << 20  // bytes of the schemas of one server
	maxSchemas       = 64 << 20 // bytes of the schemas of all servers
	maxTellings      = 8        // texts of one drifted boundary written in a minute
)

// brought is what one server has brought.
type brought struct {
	count, bytes int
	// noticed is when people were last told that something of it drifts;
	// since then, unnoticed more have begun to.
	noticed   time.Time
	unnoticed int
}

// weight is what is kept of a contract that its server chose, in bytes.
func weight(c *holdfast.Contract) int { return len(c.Schema) + len(c.OutputSchema) }

// room refuses boundaries beyond what may be kept of their server.
func (t *Catalog) room(cs []holdfast.Contract) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, more, met := t.bytes, map[string]brought{}, map[string]bool{}
	for i := range cs {
		c := &cs[i]
		if met[c.Boundary] {
			continue
		}
		met[c.Boundary] = true
		server := serverOf(c.Boundary)
		m, bytes := more[server], weight(c)
		if s := t.seen[c.Boundary]; s != nil {
			bytes -= weight(&s.as)
		} else {
			m.count++
		}
		m.bytes += bytes
		all += bytes
		more[server] = m
	}
	for server, m := range more {
		had := t.per[server]
		if had == nil {
			had = &brought{}
		}
		switch {
		case m.count > 0 && had.count+m.count > maxObserved:
			return tooMuch(server, fmt.Sprintf("lists more than %d boundaries", maxObserved),
				"put a server with fewer tools behind holdfast")
		case m.bytes > 0 && had.bytes+m.bytes > maxServerSchemas:
			return tooMuch(server, fmt.Sprintf("lists more than %d MiB of schemas", maxServerSchemas>>20),
				"put a server with fewer tools behind holdfast")
		case m.bytes > 0 && all > maxSchemas:
			return tooMuch(server, fmt.Sprintf("brings the schemas of all servers above %d MiB", maxSchemas>>20),
				"put fewer servers behind holdfast, and start it anew")
		}
	}
	for server := range more {
		if t.per[server] == nil {
			t.per[server] = &brought{}
		}
	}
	return nil
}

func tooMuch(server, why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K1, Rule: "tool/too_much",
		Why: "the server of " + excerpt.Of(server, 64) + " " + why, Hint: hint}
}

// mayTell reports whether another text of a drifted boundary is written now; one that is not is
// held like any other.
func (t *Catalog) mayTell(boundary string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[boundary]
	if s == nil {
		return true
	}
	if minuteOver(s.told, now) {
		s.told, s.tellings = now, 0
	}
	s.tellings++
	return s.tellings <= maxTellings
}

// mayNotice returns the number of a server's boundaries that began to drift of which people are
// notified now; 0 means with the next one.
func (t *Catalog) mayNotice(server string, n int, now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.per[server]
	if b == nil {
		return n
	}
	b.unnoticed += n
	if !minuteOver(b.noticed, now) {
		return 0
	}
	n = b.unnoticed
	b.noticed, b.unnoticed = now, 0
	return n
}

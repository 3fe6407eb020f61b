package streamable

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
)

// seat is one core with its client: a session, or what all stateless requests
// of an identity share.
type seat struct {
	id     string // of the session; "" for a shared one
	who    string
	client *httpClient
	// done is closed when the core has ended; err is why, and may be read
	// after.
	done chan struct{}
	err  error
	// version is what the session agreed on; nil before.
	version atomic.Pointer[string]

	// The rest belongs to the front's lock.
	users int // exchanges
	idle  *time.Timer
	since time.Time // when the last exchange ended
	over  bool      // nobody finds it any more
}

// seats are all cores that run.
func (h *Handler) seats() []*seat {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(h.found())
}

// find returns a session of the guest's own, in use. To anybody else it is not
// there.
func (g *guest) find(id string) (*seat, error) {
	h := g.h
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil || s.who != g.who {
		return nil, noSession()
	}
	h.use(s)
	return s, nil
}

// create begins a session, in use.
func (g *guest) create() (*seat, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return g.start(rand.Text())
}

// share returns the core of the identity's stateless requests, in use.
func (g *guest) share() (*seat, error) {
	h := g.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.shared[g.who]; s != nil {
		h.use(s)
		return s, nil
	}
	return g.start("")
}

// start runs a new core. The caller holds the front's lock.
func (g *guest) start(id string) (*seat, error) {
	h := g.h
	if h.closed || h.life.Err() != nil {
		return nil, &httpError{status: http.StatusServiceUnavailable, why: "holdfast is going down"}
	}
	if !h.room(g.who) {
		return nil, &httpError{status: http.StatusServiceUnavailable, why: "busy: too many MCP sessions", hint: "end one with DELETE, then try again", later: true}
	}
	l := h.enlist(h.group(g.who))
	s := &seat{id: id, who: g.who, client: newHTTPClient(id != "", l.out), done: make(chan struct{})}
	s.client.load = l
	s.idle = time.AfterFunc(h.Idle, func() { h.guard(func() { h.expire(s) }) })
	if id == "" {
		h.shared[g.who] = s
	} else {
		h.sessions[id] = s
	}
	h.use(s)
	h.running++
	s.client.load.runs++
	h.work.Add(1)
	go func() { h.guard(func() { h.serve(s, g.run) }) }()
	return s, nil
}

// room says whether one more core may run for who, and makes room where it can
// by ending one that is idle. No group has more than half of all, and the last
// eighth is for groups that have none, so that nobody shuts the others out; cores
// that are ending count beside the ones that can be found. The caller holds the
// front's lock.
func (h *Handler) room(who string) bool {
	group, has, all := h.group(who), map[string]int{}, 0
	for s := range h.found() {
		has[h.group(s.who)]++
		all++
	}
	own, most := has[group], h.MaxSessions
	if own > 0 {
		most -= h.MaxSessions / 8
	}
	switch {
	case h.running >= 2*h.MaxSessions || h.cores(group) >= max(2, h.MaxSessions):
		return false
	case own >= max(1, h.MaxSessions/2):
		return h.evict(map[string]int{group: own})
	case all >= most:
		// Who has fewer than the caller gives nothing.
		maps.DeleteFunc(has, func(g string, n int) bool { return g != group && n <= own })
		return h.evict(has)
	}
	return true
}

// cores is how many cores of a group run. The caller holds the front's lock.
func (h *Handler) cores(group string) int {
	if l := h.loads[group]; l != nil {
		return l.runs
	}
	return 0
}

// found are the cores that can be found. The caller holds the front's lock.
func (h *Handler) found() iter.Seq[*seat] {
	return func(yield func(*seat) bool) {
		for _, m := range []map[string]*seat{h.sessions, h.shared} {
			for _, s := range m {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// group is whose seats count together.
func (h *Handler) group(who string) string {
	if h.Group == nil {
		return who
	}
	return h.Group(who)
}

// serve runs a core until it ends.
func (h *Handler) serve(s *seat, run func(context.Context, gateway.Client) error) {
	defer h.work.Done()
	err := mcp.Guard(h.Panicked, func() error { return run(h.life, s.client) })
	h.mu.Lock()
	h.forget(s)
	h.running--
	s.client.load.runs--
	h.dismiss(h.group(s.who))
	h.mu.Unlock()
	if err != nil {
		h.odd("an MCP session over HTTP ended", err)
	}
	s.err = err
	close(s.done)
	s.client.Close()
}

// use keeps a seat from growing idle. The caller holds the front's lock.
func (h *Handler) use(s *seat) {
	s.users++
	s.idle.Stop()
}

// release is the end of use.
func (h *Handler) release(s *seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.since = time.Now()
	if s.users--; s.users == 0 && !s.over {
		s.idle.Reset(h.Idle)
	}
}

// expire ends a seat that nobody uses.
func (h *Handler) expire(s *seat) {
	h.mu.Lock()
	idle := s.users == 0
	if idle {
		h.forget(s)
	}
	h.mu.Unlock()
	if idle {
		s.client.Close()
	}
}

// evict ends a core that nobody uses: of the groups in has, by their number of
// seats, that of the one which has most, and there the one that is idle longest.
// So a client which forgets its sessions locks neither itself out nor others. The
// caller holds the front's lock.
func (h *Handler) evict(has map[string]int) bool {
	var out *seat
	most := 0
	for s := range h.found() {
		n := has[h.group(s.who)]
		if n > 0 && s.users == 0 && (out == nil || n > most || (n == most && s.since.Before(out.since))) {
			out, most = s, n
		}
	}
	if out == nil {
		return false
	}
	h.forget(out)
	out.client.Close()
	return true
}

// remove makes a seat one that nobody finds.
func (h *Handler) remove(s *seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(s)
}

// forget is remove for who holds the front's lock.
func (h *Handler) forget(s *seat) {
	s.over = true
	s.idle.Stop()
	if h.sessions[s.id] == s {
		delete(h.sessions, s.id)
	}
	if h.shared[s.who] == s {
		delete(h.shared, s.who)
	}
}

// gone is the answer where a core has ended, with the reason where there is
// one. A session that has ended is not there.
func (s *seat) gone(err error) error {
	if !errors.Is(err, errEnded) {
		return err
	}
	if s.version.Load() != nil {
		return noSession()
	}
	t := time.NewTimer(endFor)
	defer t.Stop()
	select {
	case <-s.done:
		return lost(s.err)
	case <-t.C:
		return lost(nil)
	}
}

func noSession() error {
	return &httpError{status: http.StatusNotFound, why: "there is no such session", hint: "begin a new one with initialize"}
}

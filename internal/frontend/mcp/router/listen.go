package router

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// maxListened bounds the resources that one request listens for.
const maxListened = 256

// listening is one subscriptions/listen of the client (MCP since 2026-07-28),
// for as long as it is in flight: a request to each server, which is made anew
// when a server comes back, and one stream to the client.
type listening struct {
	r       *router
	f       *routed
	params  []byte
	wanted  []byte // params.notifications
	changes []string
	of      map[*member][]string // the resources, by their servers

	mu       sync.Mutex
	open     int  // servers that are listened to
	expected int  // servers whose word the client waits for
	told     bool // the client has been told what is listened for
	missed   bool // a server came back before that
	agreed   map[string]bool
	refused  []byte // the error of a server that refused
}

// listen answers subscriptions/listen for as long as a server does.
func (r *router) listen(f *routed, m mcp.Message) {
	l := &listening{r: r, f: f, params: m.Params, wanted: mcp.Get(m.Params, "notifications"), of: map[*member][]string{}, agreed: map[string]bool{}}
	if _, err := mcp.Members(l.wanted); err != nil {
		r.refuse(f, mcp.CodeBadParams, "params.notifications is not an object", "")
		return
	}
	for _, name := range []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"} {
		if string(mcp.Get(l.wanted, name)) == "true" {
			l.changes = append(l.changes, name)
		}
	}
	uris := words(mcp.Get(l.wanted, "resourceSubscriptions"))
	if len(uris) > maxListened {
		r.refuse(f, mcp.CodeBadParams, "params.notifications.resourceSubscriptions is too long", "")
		return
	}
	for _, uri := range uris {
		mem, why, hint := r.owner(f, uri)
		if mem == nil {
			r.refuse(f, mcp.CodeBadParams, why, hint)
			return
		}
		l.of[mem] = append(l.of[mem], uri)
	}
	l.begin()
}

// begin asks every server that is there, and tells the client what is listened
// for once all of them have said so or have taken too long.
func (l *listening) begin() {
	var sides []*side
	for _, m := range l.r.members {
		if s := m.live(); s != nil {
			sides = append(sides, s)
		}
	}
	l.expected = len(sides)
	l.r.mu.Lock()
	l.r.listens[l] = true
	l.r.mu.Unlock()
	for _, s := range sides {
		l.r.spawn(func() { l.at(s) })
	}
	wait, cancel := context.WithTimeout(l.f.ctx, l.r.pace.list)
	context.AfterFunc(wait, func() { l.r.guard(func() { l.tell(true) }) })
	l.r.spawn(func() {
		defer cancel()
		<-l.f.ctx.Done()
		l.r.mu.Lock()
		delete(l.r.listens, l)
		l.r.mu.Unlock()
	})
}

// join listens to a server that came back, and tells the client that what it
// lists may have changed.
func (l *listening) join(m *member, s *side) {
	l.mu.Lock()
	told := l.told
	l.missed = l.missed || !told
	l.mu.Unlock()
	if told {
		l.changed()
	}
	l.at(s)
}

// changed tells the client that every list that it listens for may be another.
func (l *listening) changed() {
	for _, name := range l.changes {
		kind := strings.TrimSuffix(name, "ListChanged")
		_ = l.r.write(l.f.key, mcp.Message{Method: "notifications/" + kind + "/list_changed", Params: l.about(nil)}.Line())
	}
}

// about is the params of a notification of this request's.
func (l *listening) about(o *mcp.Builder) []byte {
	if o == nil {
		o = &mcp.Builder{}
	}
	var meta mcp.Builder
	meta.Add(mcp.MetaSubscription, l.f.id)
	o.Add("_meta", meta.Bytes())
	return o.Bytes()
}

// at listens to one life of a server until it ends.
func (l *listening) at(s *side) {
	part, err := l.part(s.m)
	if err != nil {
		return
	}
	l.mu.Lock()
	l.open++
	l.mu.Unlock()
	a, err := l.r.attend(l, s, mcp.Message{Method: "subscriptions/listen", Params: part})
	l.mu.Lock()
	l.open--
	if err == nil && a.Error != nil {
		l.refused = a.Error
	}
	over := l.open == 0 && err == nil && len(l.changes) == 0
	l.mu.Unlock()
	l.heard()
	if over {
		l.end(a)
	}
}

// attend is ask for a request that lasts.
func (r *router) attend(l *listening, s *side, m mcp.Message) (mcp.Message, error) {
	p := r.expect(s, l.f, make(chan mcp.Message, 1))
	r.mu.Lock()
	p.listen = l
	r.mu.Unlock()
	return r.wait(l.f.ctx, p, m)
}

// part is what one server is asked to tell.
func (l *listening) part(m *member) ([]byte, error) {
	wanted, err := mcp.Keep(l.wanted, func(name string) bool { return name != "resourceSubscriptions" })
	if uris := l.of[m]; err == nil && len(uris) > 0 {
		wanted, err = mcp.Set(wanted, mcp.Encode(uris), "resourceSubscriptions")
	}
	if err != nil {
		return nil, err
	}
	return mcp.Set(l.params, wanted, "notifications")
}

// acknowledged takes a server's word of what it will tell.
func (l *listening) acknowledged(_ *side, what []byte) {
	l.mu.Lock()
	for _, uri := range words(mcp.Get(what, "resourceSubscriptions")) {
		l.agreed[uri] = true
	}
	l.mu.Unlock()
	l.heard()
}

// heard counts one server's word.
func (l *listening) heard() {
	l.mu.Lock()
	l.expected--
	l.mu.Unlock()
	l.tell(false)
}

// tell says to the client, once, what is listened for. Changes of lists always
// are, since servers come back.
func (l *listening) tell(late bool) {
	l.mu.Lock()
	if l.told || l.expected > 0 && !late || l.open == 0 && l.refused != nil && len(l.changes) == 0 {
		l.mu.Unlock()
		return
	}
	l.told = true
	missed := l.missed
	var what mcp.Builder
	for _, name := range l.changes {
		what.Add(name, []byte("true"))
	}
	if len(l.agreed) > 0 {
		var uris []string
		for uri := range l.agreed {
			uris = append(uris, uri)
		}
		slices.Sort(uris)
		what.Add("resourceSubscriptions", mcp.Encode(uris))
	}
	l.mu.Unlock()
	if l.f.ctx.Err() != nil {
		return
	}
	var o mcp.Builder
	o.Add("notifications", what.Bytes())
	_ = l.r.write(l.f.key, mcp.Message{Method: "notifications/subscriptions/acknowledged", Params: l.about(&o)}.Line())
	if missed {
		l.changed()
	}
}

// end answers the request: nobody is left who would tell anything.
func (l *listening) end(last mcp.Message) {
	l.mu.Lock()
	told := l.told
	l.mu.Unlock()
	if !told && last.Error != nil {
		_ = l.r.answer(l.f, mcp.Message{ID: l.f.id, Error: last.Error}.Line())
		return
	}
	l.tell(true)
	var o mcp.Builder
	o.Add("resultType", []byte(`"complete"`))
	_ = l.r.answer(l.f, mcp.Respond(l.f.id, l.about(&o)))
}

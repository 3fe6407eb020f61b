package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of what a client may subscribe to.
const (
	maxAddress = 4 << 10 // bytes of an address
	maxSubs    = 256     // addresses of one session, and of one subscription
)

// subscribed is the addresses of which a client hears when they change.
type subscribed struct {
	mu   sync.Mutex
	uris map[string]int // how often each
}

// room says whether an address can be added.
func (s *subscribed) room(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(uri) > 0 && len(uri) <= maxAddress && (s.uris[uri] > 0 || len(s.uris) < maxSubs)
}

func (s *subscribed) add(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uris == nil {
		s.uris = map[string]int{}
	}
	s.uris[uri]++
}

func (s *subscribed) remove(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uris, uri)
}

// covers says whether an address is one of them, or lies below one.
func (s *subscribed) covers(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.uris {
		if uri == sub || strings.HasPrefix(uri, strings.TrimSuffix(sub, "/")+"/") {
			return len(uri) <= maxAddress
		}
	}
	return false
}

// subscription is what a subscriptions/listen asks for.
type subscription struct {
	flags []string // the kinds of change, as the protocol spells them
	uris  []string
}

// kinds are the kinds of change that a client can ask to hear of.
func kinds() []string {
	return []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"}
}

// readSubscription reads what is asked for, or what a server agrees to.
func readSubscription(v []byte) (subscription, error) {
	var sub subscription
	o, err := readObject(v)
	if err != nil {
		return sub, err
	}
	for _, k := range kinds() {
		if string(o.Get(k)) == "true" {
			sub.flags = append(sub.flags, k)
		}
	}
	uris := o.Get("resourceSubscriptions")
	if uris == nil {
		return sub, nil
	}
	items, err := mcp.Elements(uris)
	if err != nil || len(items) > maxSubs {
		return sub, fmt.Errorf("has resourceSubscriptions that are not a list of at most %d", maxSubs)
	}
	for _, item := range items {
		uri, ok := mcp.Text(item)
		if !ok || uri == "" || len(uri) > maxAddress {
			return sub, fmt.Errorf("has a resource that is not a string of at most %d bytes", maxAddress)
		}
		sub.uris = append(sub.uris, uri)
	}
	return sub, nil
}

// only keeps of what a server agrees to what was asked for.
func (sub subscription) only(asked subscription) subscription {
	var out subscription
	for _, f := range sub.flags {
		for _, a := range asked.flags {
			if a == f {
				out.flags = append(out.flags, f)
			}
		}
	}
	for _, u := range sub.uris {
		for _, a := range asked.uris {
			if a == u {
				out.uris = append(out.uris, u)
			}
		}
	}
	return out
}

// json writes it as the protocol does.
func (sub subscription) json() []byte {
	var out mcp.Builder
	for _, f := range sub.flags {
		out.Add(f, []byte("true"))
	}
	if sub.uris != nil {
		out.Add("resourceSubscriptions", mcp.Encode(sub.uris))
	}
	return out.Bytes()
}

// listen opens a subscription: each address in it is a crossing, what else it
// asks for is of the protocol. It returns the line for the client, which comes
// when the subscription has ended.
func (s *session) listen(ctx context.Context, f *flight, m mcp.Message, p params) []byte {
	if !p.stateless {
		return mcp.Failure(m.ID, mcp.CodeNoMethod, "subscriptions/listen is not of this protocol version", "")
	}
	v := p.Get("notifications")
	sub, err := readSubscription(v)
	if err == nil && jsontext.Value(v).Kind() != '{' {
		err = errors.New("is not an object")
	}
	if err != nil {
		return mcp.Failure(m.ID, mcp.CodeBadParams, "params.notifications "+err.Error(), "")
	}
	if len(sub.uris) > 0 {
		if err := s.introduce(ctx); err != nil {
			return s.failed(m.ID, err)
		}
	}
	c, end := &call{Message: m, params: p}, time.Now().Add(s.Wait)
	for _, uri := range sub.uris {
		var payload mcp.Builder
		payload.Add("uri", mcp.Quote(uri))
		if line := s.permit(ctx, f, c, end, s.boundaryOf(mcp.MethodSubscribe), payload.Bytes(),
			holdfast.Output{Body: []byte("{}")}); line != nil {
			return line
		}
	}
	meta, err := s.handshake(p)
	if err != nil {
		return mcp.Failure(m.ID, mcp.CodeBadParams, err.Error(), "")
	}
	var out mcp.Builder
	out.Add("notifications", sub.json())
	out.Add("_meta", meta)
	r, err := s.subscription(ctx, f, sub, mcp.Message{Method: mcp.MethodListen, Params: out.Bytes()})
	switch {
	case err != nil:
		return s.failed(m.ID, err)
	case r.Error != nil:
		return mcp.Message{ID: m.ID, Error: r.Error}.Line()
	}
	var result mcp.Builder
	result.Add("resultType", mcp.Quote("complete"))
	result.Add("_meta", s.subscriptionMeta(f))
	return mcp.Respond(m.ID, result.Bytes())
}

// subscription asks the server and waits until the subscription ends.
func (s *session) subscription(ctx context.Context, f *flight, sub subscription, m mcp.Message) (mcp.Message, error) {
	w, err := s.expect(f)
	if err != nil {
		return mcp.Message{}, err
	}
	s.mu.Lock()
	s.listens["n"+w.id] = f
	f.sub = &sub
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listens, "n"+w.id)
		s.mu.Unlock()
	}()
	m.ID = []byte(w.id)
	if w.line, err = s.toServer.put(ctx, "", m.Line()); err != nil {
		s.forget(w)
		return mcp.Message{}, err
	}
	return s.await(ctx, w)
}

// subscriptionMeta names a subscription as its client does.
func (s *session) subscriptionMeta(f *flight) []byte {
	var meta mcp.Builder
	meta.Add(mcp.MetaSubscription, f.id)
	return meta.Bytes()
}

// listener is the subscription that a notification of the server names, nil for
// none.
func (s *session) listener(params []byte) *flight {
	key := mcp.IDKey(mcp.Get(params, "_meta", mcp.MetaSubscription))
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" {
		return nil
	}
	return s.listens[key]
}

// changed passes on that something has changed: to the subscription that it
// names, else to a client with a session. params are what may be said of it.
func (s *session) changed(ctx context.Context, m mcp.Message, kind string, params mcp.Builder) {
	f := s.listener(m.Params)
	if f == nil {
		if mcp.Get(m.Params, "_meta", mcp.MetaSubscription) != nil {
			s.odd("a notification of the MCP server was not passed", "method", m.Method, "why", "it is of no subscription")
			return
		}
		s.pass(ctx, "", mcp.Message{Method: m.Method, Params: params.BytesOrNil()})
		return
	}
	if kind != "" && !slices.Contains(f.sub.flags, kind) {
		s.odd("a notification of the MCP server was not passed", "method", m.Method, "why", "the client did not ask for it")
		return
	}
	params.Add("_meta", s.subscriptionMeta(f))
	s.pass(ctx, f.key, mcp.Message{Method: m.Method, Params: params.Bytes()})
}

// acknowledged passes on what a server agrees to tell of.
func (s *session) acknowledged(ctx context.Context, m mcp.Message) {
	f := s.listener(m.Params)
	agreed, err := readSubscription(mcp.Get(m.Params, "notifications"))
	if f == nil || err != nil {
		s.odd("a notification of the MCP server was not passed", "method", m.Method, "why", "it is of no subscription")
		return
	}
	agreed = agreed.only(*f.sub)
	if s.Swapped != nil && slices.Contains(f.sub.flags, toolsChanged) && !slices.Contains(agreed.flags, toolsChanged) {
		agreed.flags = append(agreed.flags, toolsChanged)
	}
	var p mcp.Builder
	p.Add("notifications", agreed.json())
	p.Add("_meta", s.subscriptionMeta(f))
	s.pass(ctx, f.key, mcp.Message{Method: m.Method, Params: p.Bytes()})
}

// updated passes on that a resource has changed to who subscribed to it.
func (s *session) updated(ctx context.Context, m mcp.Message) {
	uri, _ := mcp.Text(mcp.Get(m.Params, "uri"))
	covers := s.subs.covers
	if f := s.listener(m.Params); f != nil {
		of := subscribed{}
		for _, u := range f.sub.uris {
			of.add(u)
		}
		covers = of.covers
	}
	if !covers(uri) {
		s.odd("a notification of the MCP server was not passed", "method", m.Method, "why", "nobody subscribed to it")
		return
	}
	var p mcp.Builder
	p.Add("uri", mcp.Quote(uri))
	s.changed(ctx, m, "", p)
}

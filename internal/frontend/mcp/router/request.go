package router

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// request takes one request of the client. The error is of the client's stream.
func (r *router) request(ctx context.Context, m mcp.Message) error {
	f, err := r.take(ctx, m)
	if err != nil {
		return r.write(m.Key(), mcp.Failure(m.ID, errorcode.Refused, err.Error(),
			"wait for an answer, then send it again under a new id"))
	}
	if kind, _, _ := mcp.ListShape(m.Method); kind != "" {
		r.looked(m.Method)
	}
	switch {
	case m.Method == "initialize":
		r.spawn(func() { r.initialize(ctx, f, m) })
	case r.solo():
		r.direct(f, r.members[0], m)
	default:
		r.route(f, m)
	}
	return nil
}

// route finds who answers a request.
func (r *router) route(f *routed, m mcp.Message) {
	switch m.Method {
	case "server/discover":
		r.spawn(func() { r.discover(f, m) })
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		r.spawn(func() { r.list(f, m) })
	case "ping":
		_ = r.answer(f, mcp.Respond(f.id, []byte("{}")))
	case "logging/setLevel":
		r.spawn(func() { r.setLevel(f, m) })
	case "tools/call", "prompts/get":
		r.named(f, m, "name")
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		uri, _ := mcp.Text(mcp.Get(m.Params, "uri"))
		r.owned(f, m, uri)
	case "completion/complete":
		r.complete(f, m)
	case "subscriptions/listen":
		r.spawn(func() { r.listen(f, m) })
	default:
		r.refuse(f, mcp.CodeNoMethod, fmt.Sprintf("holdfast does not know which of the MCP servers %s is for", m.Method),
			"an endpoint of one server passes it, where a contract names it: `holdfast mcp NAME`")
	}
}

// named routes by a name of the form SERVER__NAME, which reaches the server
// without the first part.
func (r *router) named(f *routed, m mcp.Message, path ...string) {
	full, _ := mcp.Text(mcp.Get(m.Params, path...))
	for _, mem := range r.members {
		name, ok := strings.CutPrefix(full, mem.name+between)
		if !ok {
			continue
		}
		params, err := mcp.Set(m.Params, mcp.Quote(name), path...)
		if err != nil {
			break
		}
		m.Params = params
		r.direct(f, mem, m)
		return
	}
	r.refuse(f, mcp.CodeBadParams, fmt.Sprintf("no MCP server here has %.200q", full), "names here begin with the server's: "+r.prefixes())
}

func (r *router) prefixes() string {
	var out []string
	for _, m := range r.members {
		out = append(out, m.name+between)
	}
	return strings.Join(out, ", ")
}

// complete routes by what is to be completed.
func (r *router) complete(f *routed, m mcp.Message) {
	switch kind, _ := mcp.Text(mcp.Get(m.Params, "ref", "type")); kind {
	case "ref/prompt":
		r.named(f, m, "ref", "name")
	case "ref/resource":
		uri, _ := mcp.Text(mcp.Get(m.Params, "ref", "uri"))
		r.owned(f, m, uri)
	default:
		r.refuse(f, mcp.CodeBadParams, "params.ref.type is neither ref/prompt nor ref/resource", "")
	}
}

// owned routes by a resource. One that no list has named yet is looked for: a
// template gives it to no server before all have said what they list.
func (r *router) owned(f *routed, m mcp.Message, uri string) {
	if of := r.owners.of(uri); len(of) == 1 && (r.surveyed.Load() || r.owners.lists(uri)) {
		r.direct(f, of[0], m)
		return
	}
	r.spawn(func() {
		mem, why, hint := r.owner(f, uri)
		if mem == nil {
			r.refuse(f, mcp.CodeBadParams, why, hint)
			return
		}
		r.direct(f, mem, m)
	})
}

// owner finds the one server of a resource, or says why there is none.
func (r *router) owner(f *routed, uri string) (*member, string, string) {
	of := r.owners.of(uri)
	if len(of) == 0 || !r.surveyed.Load() && !r.owners.lists(uri) {
		r.survey(f)
		of = r.owners.of(uri)
	}
	if len(of) == 0 {
		of = r.offering("resources")
	}
	if len(of) > 1 && len(r.owners.of(uri)) > 1 {
		r.log.Warn("more than one MCP server lists a resource, which is refused", "uri",
			uri[:min(len(uri), mcp.MaxWord)], "mcp_servers", names(of))
	}
	switch {
	case len(of) == 1:
		return of[0], "", ""
	case len(of) > 1 && len(r.owners.of(uri)) > 1:
		return nil, fmt.Sprintf("the resource %.200q is listed by more than one MCP server: %s", uri, names(of)), "use an endpoint of one of them"
	}
	return nil, fmt.Sprintf("no MCP server here lists the resource %.200q", uri), "ask resources/list and resources/templates/list for what there is"
}

// offering is every server that has a capability, as far as is known.
func (r *router) offering(kind string) []*member {
	var out []*member
	for _, m := range r.members {
		if s := m.live(); s != nil && s.offers(kind) {
			out = append(out, m)
		}
	}
	return out
}

func names(ms []*member) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.name)
	}
	return strings.Join(out, ", ")
}

// survey asks the servers for their first pages of resources.
func (r *router) survey(f *routed) {
	params := []byte(nil)
	if f.meta != nil {
		var o mcp.Builder
		o.Add("_meta", f.meta)
		params = o.Bytes()
	}
	for _, method := range []string{"resources/list", "resources/templates/list"} {
		for _, a := range r.gather(f, r.offering("resources"), func(*member) mcp.Message { return mcp.Message{Method: method, Params: params} }) {
			_, member, _ := mcp.ListShape(method)
			if items, err := mcp.Elements(mcp.Get(a.Result, member)); a.err == nil && err == nil {
				r.owners.listed(a.m, method, items, true)
			}
		}
	}
	r.surveyed.Store(true)
}

// setLevel sets the level of every server that logs. The answer is the first
// error, or that it is done.
func (r *router) setLevel(f *routed, m mcp.Message) {
	var refused []byte
	for _, a := range r.gather(f, r.offering("logging"), func(*member) mcp.Message { return mcp.Message{Method: m.Method, Params: m.Params} }) {
		if a.err != nil {
			r.log.Warn("an MCP server did not take the level of its log", "mcp_server", a.m.name, "why", a.err)
		} else if a.Error != nil && refused == nil {
			refused = a.Error
		}
	}
	if refused != nil {
		_ = r.answer(f, mcp.Message{ID: f.id, Error: refused}.Line())
		return
	}
	_ = r.answer(f, mcp.Respond(f.id, []byte("{}")))
}

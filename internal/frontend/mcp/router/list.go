package router

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// list answers a request for a list with the servers' lists, one after the
// other by the servers' names.
func (r *router) list(f *routed, m mcp.Message) {
	cursors, err := readCursor(mcp.Get(m.Params, "cursor"))
	if err != nil {
		r.refuse(f, mcp.CodeBadParams, err.Error(), "ask without a cursor")
		return
	}
	kind, _, _ := mcp.ListShape(m.Method)
	var members []*member
	for _, mem := range r.members {
		_, more := cursors[mem.name]
		if s := mem.live(); (cursors == nil || more) && (s == nil || s.offers(kind)) {
			members = append(members, mem)
		}
	}
	replies := r.gather(f, members, func(mem *member) mcp.Message {
		return mcp.Message{Method: m.Method, Params: at(m.Params, cursors[mem.name])}
	})
	j := joining{r: r, method: m.Method, from: cursors, next: map[string]string{}, left: leftOut{}}
	for _, a := range replies {
		j.add(a)
	}
	if len(j.results) == 0 && len(members) > 0 {
		j.nothing(f)
		return
	}
	_ = r.answer(f, mcp.Respond(f.id, j.result()))
}

// at is the params of a request for one server's page.
func at(params []byte, cursor string) []byte {
	if params == nil && cursor == "" {
		return nil
	}
	if params == nil {
		params = []byte("{}")
	}
	kept, err := mcp.Keep(params, func(name string) bool { return name != "cursor" })
	if err == nil && cursor != "" {
		kept, err = mcp.Set(kept, mcp.Quote(cursor), "cursor")
	}
	if err != nil {
		return params
	}
	return kept
}

// joining is one answer in the making.
type joining struct {
	r       *router
	method  string
	from    map[string]string // the cursors that this page began at
	next    map[string]string // and where the next one does
	items   [][]byte
	bytes   int
	results [][]byte
	left    leftOut
	unknown []byte // the error of a server that does not know the method
}

// add takes one server's page. One that finds no room any more begins the next
// page.
func (j *joining) add(a reply) {
	_, member, _ := mcp.ListShape(j.method)
	if a.err == nil && a.Error != nil {
		if string(mcp.Get(a.Error, "code")) == strconv.Itoa(mcp.CodeNoMethod) {
			j.unknown = a.Error
			return
		}
		message, _ := mcp.Text(mcp.Get(a.Error, "message"))
		a.err = fmt.Errorf("it answered with an error: %.200s", message)
	}
	items, err := [][]byte(nil), error(nil)
	if a.err == nil {
		items, err = mcp.Elements(mcp.Get(a.Result, member))
		if err != nil {
			a.err = errors.New("its answer holds no list")
		}
	}
	if a.err != nil {
		j.left[a.m.name] = a.err.Error()
		j.r.log.Warn("an MCP server is missing from a list", "mcp_server", a.m.name, "method", j.method, "why", a.err)
		return
	}
	if j.bytes+len(a.Result) > maxJoined && len(j.results) > 0 {
		j.next[a.m.name] = j.from[a.m.name]
		return
	}
	j.bytes += len(a.Result)
	j.results = append(j.results, a.Result)
	j.r.owners.listed(a.m, j.method, items, j.from[a.m.name] == "")
	for _, item := range items {
		j.items = append(j.items, a.m.shown(j.method, item))
	}
	if c := mcp.NextCursor(a.Result); len(c) > mcp.MaxCursor {
		j.left[a.m.name] = "the cursor of its next page is too long"
	} else if c != "" {
		j.next[a.m.name] = c
	}
}

// shown is an item as the client sees it.
func (m *member) shown(method string, item []byte) []byte {
	_, _, name := mcp.ListShape(method)
	if name != "name" {
		return item
	}
	v, _ := mcp.Text(mcp.Get(item, name))
	changed, err := mcp.Set(item, mcp.Quote(m.name+between+v), name)
	if err != nil {
		return item
	}
	return changed
}

// nothing is the answer where no server had a list.
func (j *joining) nothing(f *routed) {
	if len(j.left) == 0 && j.unknown != nil {
		_ = j.r.answer(f, mcp.Message{ID: f.id, Error: j.unknown}.Line())
		return
	}
	var why []string
	for _, m := range j.r.members {
		if w := j.left[m.name]; w != "" {
			why = append(why, m.name+": "+w)
		}
	}
	j.r.refuse(f, errorcode.Refused, "no MCP server could list anything: "+strings.Join(why, "; "), "look at `holdfast status`")
}

func (j *joining) result() []byte {
	_, member, _ := mcp.ListShape(j.method)
	var o mcp.Builder
	list := []byte{'['}
	for i, item := range j.items {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, item...)
	}
	if slices.ContainsFunc(j.results, func(r []byte) bool { return mcp.Get(r, "resultType") != nil }) {
		o.Add("resultType", []byte(`"complete"`))
	}
	o.Add(member, append(list, ']'))
	if len(j.next) > 0 {
		o.Add("nextCursor", mcp.Quote(writeCursor(j.next)))
	}
	return private(o, j.results, j.left)
}

// writeCursor writes the servers' cursors as one; what it holds is no secret
// and gives no right.
func writeCursor(next map[string]string) string {
	return base64.RawURLEncoding.EncodeToString(mcp.Encode(next))
}

// readCursor is the other way. It is nil without a cursor.
func readCursor(v []byte) (map[string]string, error) {
	if v == nil || string(v) == "null" {
		return nil, nil
	}
	bad := errors.New("params.cursor is none of this endpoint's")
	s, ok := mcp.Text(v)
	if !ok || len(s) > maxAllCursors {
		return nil, bad
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || !jsontext.Value(raw).IsValid() {
		return nil, bad
	}
	ms, err := mcp.Members(raw)
	if err != nil || len(ms) == 0 || len(ms) > MaxServers {
		return nil, bad
	}
	out := map[string]string{}
	for _, m := range ms {
		c, ok := mcp.Text(m.Value(raw))
		if !ok || len(c) > mcp.MaxCursor {
			return nil, bad
		}
		out[m.Name] = c
	}
	return out, nil
}

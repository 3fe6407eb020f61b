package router

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of what is joined, in bytes.
const (
	maxWords      = 8 << 10               // one server's instructions
	maxJoined     = mcp.MaxLine - 256<<10 // the lists in one answer
	maxAllCursors = 64 << 10
)

// leftOut is which servers are missing from an answer, and why.
type leftOut map[string]string

// meta is the member of _meta that says so, nil where none is missing.
func (l leftOut) meta() []byte {
	if len(l) == 0 {
		return nil
	}
	var all, out mcp.Builder
	for _, name := range slices.Sorted(maps.Keys(l)) {
		all.Add(name, mcp.Quote(l[name]))
	}
	out.Add(mcp.OwnPrefix+"left-out", all.Bytes())
	return out.Bytes()
}

// inOne says several errors in one line.
func inOne(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// merged is the answer to a handshake at several servers.
func merged(in []*side, version string, left leftOut) []byte {
	var results [][]byte
	for _, s := range in {
		results = append(results, s.hello.Result)
	}
	var o mcp.Builder
	o.Add("protocolVersion", mcp.Quote(version))
	o.Add("capabilities", together(results))
	o.Add("serverInfo", ourselves(in, results))
	if words := instructions(in, results); words != "" {
		o.Add("instructions", mcp.Quote(words))
	}
	o.Add("_meta", left.meta())
	return o.Bytes()
}

// ourselves names the endpoint and, in its version, the servers behind it.
func ourselves(in []*side, results [][]byte) []byte {
	var names []string
	for i, s := range in {
		v, _ := mcp.Text(mcp.Get(results[i], "serverInfo", "version"))
		names = append(names, s.m.name+" "+v)
	}
	all := strings.Join(names, ", ")
	return fmt.Appendf(nil, `{"name":"holdfast","version":%s}`, mcp.Quote(all[:min(len(all), mcp.MaxWord)]))
}

func instructions(in []*side, results [][]byte) string {
	var words []string
	for i, s := range in {
		if w, _ := mcp.Text(mcp.Get(results[i], "instructions")); w != "" {
			words = append(words, s.m.name+": "+strings.ToValidUTF8(w[:min(len(w), maxWords)], ""))
		}
	}
	return strings.Join(words, "\n\n")
}

// together is what the servers can do, each capability that one of them has.
// That lists change is always promised, because servers come back.
func together(results [][]byte) []byte {
	var o mcp.Builder
	for _, kind := range []string{"completions", "logging", "prompts", "resources", "tools"} {
		has, subscribe := false, false
		for _, r := range results {
			c := mcp.Get(r, "capabilities", kind)
			has = has || c != nil
			subscribe = subscribe || string(mcp.Get(c, "subscribe")) == "true"
		}
		switch {
		case !has:
		case kind == "completions" || kind == "logging":
			o.Add(kind, []byte("{}"))
		case kind == "resources" && subscribe:
			o.Add(kind, []byte(`{"subscribe":true,"listChanged":true}`))
		default:
			o.Add(kind, []byte(`{"listChanged":true}`))
		}
	}
	return o.Bytes()
}

// reply is what one server said to a request that all were asked.
type reply struct {
	m *member
	s *side
	mcp.Message
	err error
}

// gather asks servers one thing, all at once, and waits for each for as long as
// it may take.
func (r *router) gather(f *routed, members []*member, make func(*member) mcp.Message) []reply {
	out := slices.Grow([]reply(nil), len(members))[:len(members)]
	within := r.pace.list
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			r.guard(func() {
				ctx, cancel := context.WithTimeoutCause(f.ctx, within, fmt.Errorf("it did not answer within %s", within))
				defer cancel()
				out[i] = reply{m: m}
				s, err := r.come(ctx, m)
				if err == nil {
					out[i].s = s
					out[i].Message, err = r.ask(ctx, s, f, make(m))
				}
				out[i].err = err
			})
		})
	}
	all.Wait()
	return out
}

// come waits for a server: a new one for as long as ctx lives, one that is
// started again not so long.
func (r *router) come(ctx context.Context, m *member) (*side, error) {
	m.mu.Lock()
	fresh := m.lives == 0
	m.mu.Unlock()
	if fresh {
		return m.await(ctx)
	}
	short, cancel := context.WithTimeout(ctx, r.pace.ready)
	defer cancel()
	return m.await(short)
}

// discover answers server/discover where every server speaks it; else the
// client is to make the handshake.
func (r *router) discover(f *routed, m mcp.Message) {
	replies := r.gather(f, r.members, func(*member) mcp.Message { return mcp.Message{Method: m.Method, Params: m.Params} })
	var in []*side
	var results [][]byte
	var versions []string
	left, refused := leftOut{}, []byte(nil)
	for _, a := range replies {
		switch {
		case a.err != nil:
			left[a.m.name] = a.err.Error()
			continue
		case a.Error != nil && string(mcp.Get(a.Error, "code")) != strconv.Itoa(mcp.CodeVersion):
			r.refuse(f, mcp.CodeNoMethod, fmt.Sprintf("the MCP server %q does not speak server/discover", a.m.name), "begin with initialize")
			return
		}
		theirs := words(mcp.Get(a.Result, "supportedVersions"))
		if a.Error != nil {
			refused, theirs = a.Error, words(mcp.Get(a.Error, "data", "supported"))
		} else {
			in, results = append(in, a.s), append(results, a.Result)
		}
		if versions == nil {
			versions = theirs
		} else {
			versions = slices.DeleteFunc(versions, func(v string) bool { return !slices.Contains(theirs, v) })
		}
	}
	if !slices.ContainsFunc(versions, func(v string) bool { return v >= mcp.StatelessSince }) {
		r.refuse(f, mcp.CodeNoMethod, "the MCP servers have no version in common that has no handshake", "begin with initialize")
		return
	}
	if refused != nil {
		if changed, err := mcp.Set(refused, mcp.Encode(versions), "data", "supported"); err == nil {
			refused = changed
		}
		_ = r.answer(f, mcp.Message{ID: f.id, Error: refused}.Line())
		return
	}
	var o mcp.Builder
	o.Add("resultType", []byte(`"complete"`))
	o.Add("supportedVersions", mcp.Encode(versions))
	o.Add("capabilities", together(results))
	if w := instructions(in, results); w != "" {
		o.Add("instructions", mcp.Quote(w))
	}
	_ = r.answer(f, mcp.Respond(f.id, private(o, results, left)))
}

// words reads an array of strings.
func words(v []byte) []string {
	items, err := mcp.Elements(v)
	if err != nil {
		return nil
	}
	var out []string
	for _, item := range items {
		if s, ok := mcp.Text(item); ok && len(s) <= mcp.MaxWord {
			out = append(out, s)
		}
	}
	return out
}

// private finishes an answer that was joined of several: it is kept for as long
// as the shortest-lived of them, and for its reader alone.
func private(o mcp.Builder, results [][]byte, left leftOut) []byte {
	ttl, cached := int64(-1), false
	for _, res := range results {
		if v := mcp.Get(res, "ttlMs"); v != nil {
			cached = true
			if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && (ttl < 0 || n < ttl) {
				ttl = n
			}
		}
		cached = cached || mcp.Get(res, "cacheScope") != nil
	}
	if cached {
		if len(left) > 0 || ttl < 0 {
			ttl = 0
		}
		o.Add("ttlMs", strconv.AppendInt(nil, ttl, 10))
		o.Add("cacheScope", []byte(`"private"`))
	}
	o.Add("_meta", left.meta())
	return o.Bytes()
}

package router

import (
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of what is remembered of the servers' resources.
const (
	maxOwned = 4096    // of one server, and as many templates
	maxURI   = 2 << 10 // bytes
)

// owners is which server listed which resource.
type owners struct {
	mu        sync.Mutex
	uris      map[string][]*member // by URI, and by template as it is written
	templates []template
	count     map[*member]int
}

// template is a family of URIs: what stands before its first variable and after
// its last. Its scheme is a part of what stands before.
type template struct {
	m                      *member
	before, behind, scheme string
}

// readTemplate reads a template that can own resources: one whose scheme is
// written out. Any other fits the resources of every server.
func readTemplate(m *member, uri string) (template, bool) {
	before, rest, _ := strings.Cut(uri, "{")
	scheme, _, ok := strings.Cut(before, ":")
	if !ok || scheme == "" {
		return template{}, false
	}
	return template{m, before, rest[strings.LastIndexByte(rest, '}')+1:], scheme + ":"}, true
}

// whole says whether it fits all that has its scheme.
func (t template) whole() bool { return strings.Trim(t.before[len(t.scheme):], "/") == "" }

func (t template) fits(uri string) bool {
	return len(uri) >= len(t.before)+len(t.behind) && strings.HasPrefix(uri, t.before) && strings.HasSuffix(uri, t.behind)
}

// listed takes a page of a server's list. The first page puts what was known in
// its place.
func (o *owners) listed(m *member, method string, items [][]byte, first bool) {
	_, _, name := mcp.ListShape(method)
	if name != "uri" && name != "uriTemplate" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uris == nil {
		o.uris, o.count = map[string][]*member{}, map[*member]int{}
	}
	if first && name == "uri" {
		o.forget(m)
	}
	if first && name == "uriTemplate" {
		o.templates = slices.DeleteFunc(o.templates, func(t template) bool { return t.m == m })
	}
	for _, item := range items {
		uri, _ := mcp.Text(mcp.Get(item, name))
		if uri == "" || len(uri) > maxURI || o.count[m] >= 2*maxOwned {
			continue
		}
		if !slices.Contains(o.uris[uri], m) {
			o.uris[uri] = append(o.uris[uri], m)
			o.count[m]++
		}
		if name == "uriTemplate" {
			if t, ok := readTemplate(m, uri); ok && !slices.Contains(o.templates, t) {
				o.templates = append(o.templates, t)
			}
		}
	}
}

// forget drops a server's resources. The caller holds mu.
func (o *owners) forget(m *member) {
	for uri, of := range o.uris {
		if !slices.Contains(of, m) || strings.Contains(uri, "{") {
			continue
		}
		o.count[m]--
		if of = slices.DeleteFunc(of, func(x *member) bool { return x == m }); len(of) == 0 {
			delete(o.uris, uri)
		} else {
			o.uris[uri] = of
		}
	}
}

// of returns every server that listed a resource, or, where none did, a
// template that it fits. A template of a whole scheme gives no server what
// another may have: it counts where no other server lists anything of that
// scheme.
func (o *owners) of(uri string) []*member {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of := o.uris[uri]; len(of) > 0 {
		return slices.Clone(of)
	}
	var out []*member
	for _, t := range o.templates {
		if t.fits(uri) && !slices.Contains(out, t.m) && !(t.whole() && o.shared(t)) {
			out = append(out, t.m)
		}
	}
	return out
}

// shared says whether another server lists something of a template's scheme.
// The caller holds mu.
func (o *owners) shared(t template) bool {
	for uri, of := range o.uris {
		if len(uri) >= len(t.scheme) && strings.EqualFold(uri[:len(t.scheme)], t.scheme) &&
			slices.ContainsFunc(of, func(m *member) bool { return m != t.m }) {
			return true
		}
	}
	return false
}

// lists says whether a server listed this very resource.
func (o *owners) lists(uri string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.uris[uri]) > 0
}

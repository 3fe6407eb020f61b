package schema

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// document is one JSON document that holds schemas: the one being compiled, or
// a standard one.
type document struct {
	address   string
	root      *place
	resources map[string]*resource // by address
	// referrer is where the first reference to a standard document is.
	referrer string
}

// resource is a schema with an address of its own. Relative references and
// anchors below it belong to it.
type resource struct {
	address string
	root    *place
	dialect dialect
	anchors map[string]*place // static and dynamic ones
	dynamic map[string]*place // the dynamic ones
	base    *url.URL          // address, parsed; nil until it is needed
	touched bool              // one of its schemas is compiled
	scope   *scope
}

// place is one value in a document. It knows its parent instead of its whole
// pointer, so that a thousand schemas below one long name cost that name once.
type place struct {
	doc    *document
	parent *place
	token  string
	value  any
	kids   map[string]*place

	res     *resource // nil until the place is known to hold a schema
	checked bool      // its dialect's own schema has seen it
	foreign bool      // the root of a resource whose dialect is not its parent's
	split   bool      // a foreign place is below it
	node    *node
}

// findChild returns the place below p that a token of a JSON pointer leads to,
// or nil.
func (p *place) findChild(token string) *place {
	var value any
	switch v := p.value.(type) {
	case map[string]any:
		member, ok := v[token]
		if !ok {
			return nil
		}
		value = member
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(v) {
			return nil
		}
		token, value = strconv.Itoa(i), v[i]
	default:
		return nil
	}
	if kid := p.kids[token]; kid != nil {
		return kid
	}
	if p.kids == nil {
		p.kids = map[string]*place{}
	}
	kid := &place{doc: p.doc, parent: p, token: token, value: value}
	p.kids[token] = kid
	return kid
}

// findPath follows a JSON pointer from p. It returns nil if nothing is there,
// and malformed if a "~" is followed by neither 0 nor 1.
func (p *place) findPath(pointer string) (found *place, malformed bool) {
	for pointer != "" {
		token, rest, more := strings.Cut(pointer[1:], "/")
		if token, malformed = unescapeToken(token); malformed {
			return nil, true
		}
		if p = p.findChild(token); p == nil {
			return nil, false
		}
		if !more {
			break
		}
		pointer = pointer[len(pointer)-len(rest)-1:]
	}
	return p, false
}

// unescapeToken decodes "~0" and "~1" in one token of a JSON pointer.
func unescapeToken(token string) (plain string, malformed bool) {
	if !strings.Contains(token, "~") {
		return token, false
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '~' {
			if i++; i == len(token) || token[i] != '0' && token[i] != '1' {
				return "", true
			}
			c = "~/"[token[i]-'0']
		}
		b.WriteByte(c)
	}
	return b.String(), false
}

// buildPointer returns the JSON pointer of p in its document.
func (p *place) buildPointer() string {
	var tokens []string
	for ; p.parent != nil; p = p.parent {
		tokens = append(tokens, p.token)
	}
	slices.Reverse(tokens)
	return join(tokens)
}

// releaseTree lets go of everything but the pointer of p, which is all that a
// compiled schema needs.
func (p *place) releaseTree() {
	for ; p != nil && p.doc != nil; p = p.parent {
		*p = place{parent: p.parent, token: p.token}
	}
}

// findResource returns the resource that the nearest schema around p belongs
// to.
func (p *place) findResource() *resource {
	for ; p != nil; p = p.parent {
		if p.res != nil {
			return p.res
		}
	}
	return nil
}

// markForeign notes that p is checked by another dialect than what is around
// it.
func (p *place) markForeign() {
	p.foreign = true
	for q := p.parent; q != nil && !q.split; q = q.parent {
		q.split = true
	}
}

// withoutForeign returns the value of p with an empty schema in each place
// that another dialect checks. It changes nothing and copies only what is
// around such places.
func (p *place) withoutForeign() any {
	if !p.split {
		return p.value
	}
	stand := func(kid *place) any {
		if kid.foreign {
			return map[string]any{}
		}
		return kid.withoutForeign()
	}
	switch v := p.value.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for token, kid := range p.kids {
			out[token] = stand(kid)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for _, kid := range p.kids {
			if i, err := strconv.Atoi(kid.token); err == nil {
				out[i] = stand(kid)
			}
		}
		return out
	}
	return p.value
}

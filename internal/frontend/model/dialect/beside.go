package dialect

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// What decides a price beside the tokens: terms, such as a service tier, and uses of
// tools that the provider runs itself.

// served is a tool that the provider runs; most is how often at most, 0 where the
// request does not say.
type served struct {
	name string
	most int64
}

// serve notes a tool that the provider runs, by its type in the request.
func (p *parser) serve(kind string, most int64) {
	name := ToolOf(excerpt.Of(kind, 64))
	for i := range p.r.serves {
		if have := &p.r.serves[i]; have.name == name {
			if have.most += most; most == 0 {
				have.most = 0
			}
			return
		}
	}
	p.r.serves = append(p.r.serves, served{name, most})
}

// ToolOf is a tool's name without the version that its type has: web_search of
// web_search_20250305 and of web_search_preview_2025_03_11.
func ToolOf(kind string) string {
	for _, digits := range []string{"########", "####_##_##"} {
		if at := len(kind) - len(digits) - 1; at > 0 && kind[at] == '_' && dated(kind[at+1:], digits) {
			kind = kind[:at]
			break
		}
	}
	return strings.TrimSuffix(kind, "_preview")
}

func dated(s, like string) bool {
	for i := range len(s) {
		if like[i] == '#' && (s[i] < '0' || s[i] > '9') || like[i] != '#' && s[i] != like[i] {
			return false
		}
	}
	return true
}

// The terms by which providers price a call. What they name otherwise is ordinary.
const (
	tierTerm  = "service_tier"
	placeTerm = "inference_geo"
	speedTerm = "speed"
)

// ordinary says whether a provider's word for a term is that of the ordinary price.
func ordinary(word string) bool {
	switch word {
	case "", "default", "standard", "standard_only", "global", "not_available":
		return true
	}
	return false
}

// Terms are what beside the tokens decides the request's price, such as
// "service_tier=priority"; "service_tier=" where the provider chooses.
func (r *Request) Terms() []string {
	var out []string
	for _, u := range r.Unseen {
		if u.Kind == Dearer {
			out = append(out, u.Name)
		}
	}
	switch r.Dialect {
	case Messages:
		if !r.placed {
			out = append(out, placeTerm+"=")
		}
		fallthrough
	case Responses, Chat, Completions:
		if !r.tiered {
			out = append(out, tierTerm+"=")
		}
	}
	return out
}

// uses is how often the provider's own tools may be used, by name; below 0 where
// nothing bounds it.
func (r *Request) uses(l Limits) []holdfast.ToolUse {
	again := r.Choices
	for _, u := range r.Unseen {
		if u.Kind == Loop && u.Name == "fallbacks" {
			again *= 1 + u.Calls
		}
	}
	var out []holdfast.ToolUse
	for _, s := range r.serves {
		n := s.most
		if r.Dialect != Messages { // Amend says so to the provider; of searches in a chat nobody can
			if n = r.edits.said; n == 0 {
				n = min(l.ServerCalls, maxCalls)
			}
		}
		if n *= again; n == 0 {
			n = -1
		}
		out = append(out, holdfast.ToolUse{Name: s.name, N: n})
	}
	return out
}

// Uses are how often the provider's own tools may be used at most, below 0 where
// nothing bounds it.
func (b Bound) Uses() []holdfast.ToolUse { return b.uses }

// Beside is what was used beside the tokens, charged as how says (Charge): under which
// terms, and which of the provider's own tools how often. What the answer does not tell
// is as it was reserved.
func (m *Meter) Beside(how string) (terms []string, uses []holdfast.ToolUse) {
	switch how {
	case HowRefused, HowFree:
		return nil, nil
	case HowComplete:
		return m.terms(), m.used()
	case HowPartial:
		return m.terms(), m.bound.uses
	}
	return m.r.Terms(), m.bound.uses
}

// terms are those that the provider says it has applied.
func (m *Meter) terms() []string {
	var out []string
	for _, t := range m.r.Terms() {
		name, _, _ := strings.Cut(t, "=")
		if _, said := m.use.words[name]; !said {
			out = append(out, t)
		}
	}
	for _, name := range []string{tierTerm, placeTerm, speedTerm} {
		word := m.use.words[name]
		switch {
		case ordinary(word):
		case plainModel(word):
			out = append(out, name+"="+word)
		default:
			out = append(out, name+"=")
		}
	}
	return out
}

// used is how often the provider's own tools were used: what the usage says, else the
// calls that the answer shows.
func (m *Meter) used() []holdfast.ToolUse {
	var out []holdfast.ToolUse
	for _, b := range m.bound.uses {
		n, said := m.use.uses[b.Name]
		if !said {
			n = m.seen(b.Name)
		}
		if !said && (m.a.Unread || m.r.Dialect == Chat || m.r.Dialect == Completions) {
			n = max(n, b.N)
		}
		out = append(out, holdfast.ToolUse{Name: b.Name, N: n})
	}
	var more []string
	for name := range m.use.uses {
		if !slices.ContainsFunc(m.bound.uses, func(b holdfast.ToolUse) bool { return b.Name == name }) {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	for _, name := range more {
		out = append(out, holdfast.ToolUse{Name: name, N: m.use.uses[name]})
	}
	return out
}

// seen is how many calls of a tool the answer shows.
func (m *Meter) seen(tool string) int64 {
	n := int64(0)
	for _, name := range m.served {
		if strings.HasSuffix(name, tool) { // such as bash_code_execution
			n++
		}
	}
	return n
}

// serve notes a call that the provider has run itself, once for each key.
func (m *Meter) serve(key, name string) {
	if len(m.served) >= 8*maxCalls {
		m.use.odd = true
		return
	}
	m.served[key] = name
}

// says notes a word of the provider's for a term.
func (u *used) says(term string, v jsontext.Value) {
	if w := word(v, 64); w != "" {
		u.words[term] = w
	}
}

// maxSaid bounds how many names a usage may have for its tools.
const maxSaid = 64

// counts takes how often a tool was used by the provider's word.
func (u *used) counts(tool string, c count) {
	if !c.there {
		return
	}
	if n, there := u.uses[tool]; c.odd || c.n < n || !there && (len(u.uses) >= maxSaid || len(tool) > maxName) {
		u.odd = true
		return
	}
	u.uses[tool] = c.n
}

// overused says whether a tool was used far more often than it may be.
func (u *used) overused(b Bound) bool {
	for name, n := range u.uses {
		most := int64(0)
		for _, use := range b.uses {
			if use.Name == name {
				if most = use.N; most < 0 {
					most = maxCalls
				}
			}
		}
		if n > 8*most+100 {
			return true
		}
	}
	return false
}

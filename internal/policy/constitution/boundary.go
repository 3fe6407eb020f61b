package constitution

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

// Boundary is a boundary that is listed, as far as rules are checked against it.
type Boundary struct {
	// Name is exact, or a prefix and one * at its end.
	Name string
	// Schema is the JSON Schema of the arguments; nil where there is none.
	Schema json.RawMessage
}

// known is a Boundary made ready.
type known struct {
	prefix string
	glob   bool
	shape  *shape
}

func (k *known) covers(name string) bool {
	if k.glob {
		return strings.HasPrefix(name, k.prefix)
	}
	return name == k.prefix
}

func ready(list []Boundary) ([]known, error) {
	out := make([]known, 0, len(list))
	for _, b := range list {
		s, err := readShape(b.Schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		k := known{shape: s}
		k.prefix, k.glob = strings.CutSuffix(b.Name, "*")
		out = append(out, k)
	}
	// An exact name governs before a pattern, a longer pattern before a shorter.
	slices.SortStableFunc(out, func(a, b known) int {
		switch {
		case a.glob != b.glob && !a.glob:
			return -1
		case a.glob != b.glob:
			return 1
		}
		return len(b.prefix) - len(a.prefix)
	})
	return out, nil
}

// shapes are those that the arguments at the boundaries of a pattern can have:
// none where there may be boundaries of which nothing is known.
func shapes(boundary string, list []known) []*shape {
	name, glob := strings.CutSuffix(boundary, "*")
	var out []*shape
	whole := false
	for i := range list {
		k := &list[i]
		switch {
		case k.covers(name) && (k.glob || !glob):
			out, whole = append(out, k.shape), true
		case glob && strings.HasPrefix(k.prefix, name):
			out = append(out, k.shape)
		}
		if whole {
			return out
		}
	}
	return nil
}

// boundaryPattern says whether a text is a name that a boundary can have, or a
// prefix of some and one *.
func boundaryPattern(s string) bool {
	name, glob := strings.CutSuffix(s, "*")
	if glob && (name == "" || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".")) {
		name += "x"
	}
	if name == "" || len(name) > maxBoundary {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsAny(name, `*\`) && visible.IsGraphicWord(name)
}

// maxBoundary is how long a boundary's name may be, in bytes.
const maxBoundary = 256

// misfits is what is wrong with a rule's condition whatever of its boundaries it
// judges.
func (l *loader) misfits(r *rule, e *expression) []problem {
	if r.info.On.goals() {
		return misfits(e.checked, map[string]*shape{subjectName(r.info.On): l.lang.shapes[r.info.On]})
	}
	return everyMisfit(e, shapes(r.info.Boundary, l.known))
}

// pastMisfits is the same for what a past function reads of past crossings; what
// same reads, it reads of the request as well.
func (l *loader) pastMisfits(r *rule, p *Past) []problem {
	var out []problem
	for _, e := range p.expressions() {
		out = append(out, everyMisfit(e, shapes(p.Boundary, l.known))...)
	}
	if r.info.On == OnRequest || r.info.On == OnOutput {
		for _, e := range p.same {
			for _, p := range everyMisfit(e, shapes(r.info.Boundary, l.known)) {
				if !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// everyMisfit is what is wrong whichever of the shapes the arguments have.
func everyMisfit(e *expression, list []*shape) []problem {
	var all []problem
	for i, s := range list {
		found := misfits(e.checked, map[string]*shape{"args": s})
		if i == 0 {
			all = found
			continue
		}
		all = slices.DeleteFunc(all, func(p problem) bool {
			return !slices.ContainsFunc(found, func(o problem) bool { return o.line == p.line && o.col == p.col })
		})
	}
	return all
}

// Misfits says of a boundary that was seen only after the rules were loaded,
// such as a tool of an MCP server, what is wrong with the rules that are for it
// by its exact name: sentences of the form "file:line: rule ID: ...". Nil where
// nothing is.
func (s *Set) Misfits(b Boundary) ([]string, error) {
	if s == nil || !s.loaded {
		return nil, unloaded("no constitution was loaded").Err
	}
	is, err := readShape(b.Schema)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range s.rules {
		var about []*expression
		if !r.glob && r.prefix == b.Name && !r.info.On.goals() {
			about = append(about, r.expr)
		}
		for _, p := range r.pasts {
			if p.Boundary == b.Name {
				about = append(about, p.expressions()...)
			}
		}
		for _, e := range about {
			for _, p := range misfits(e.checked, map[string]*shape{"args": is}) {
				why := p.why
				if p.hint != "" {
					why += "; " + p.hint
				}
				out = append(out, fmt.Sprintf("%s: rule %s: %s", r.info.Where, r.info.ID, why))
			}
		}
	}
	return out, nil
}

// Unlisted are sentences on rules and past functions that will most likely never
// be asked: their boundary is not listed. One that has nearly the name of one that
// is there is always told of; it may be there for all that, where its server shows
// its tools only when it runs. Any other is told of only where by.Names is not nil:
// then nothing else is listed.
func (s *Set) Unlisted(by Setting) []string {
	all := slices.Clone(by.Names)
	for _, b := range by.Boundaries {
		all = append(all, b.Name)
	}
	exact := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return strings.HasSuffix(name, "*") })
	var out []string
	look := func(where, id, name string) {
		if name == "" || slices.Contains(all, name) {
			return
		}
		near := suggest.FindName(name, exact)
		switch {
		case !strings.HasSuffix(name, "*") && near != "" &&
			suggest.CountEdits(strings.ToLower(name), strings.ToLower(near)) <= 2:
			out = append(out, fmt.Sprintf("%s: %s is about %q, which is not listed; did you mean %q?", where, id,
				rulefile.Clip(name), near))
		case by.Names == nil || slices.ContainsFunc(all, func(listed string) bool { return meet(name, listed) }):
		default:
			why := fmt.Sprintf("%s: %s is about %q, which nothing lists", where, id, rulefile.Clip(name))
			if near := suggest.FindName(name, all); near != "" {
				why += fmt.Sprintf("; did you mean %q?", near)
			}
			out = append(out, why)
		}
	}
	for _, r := range s.rules {
		if !r.info.On.goals() {
			look(r.info.Where, r.info.ID, r.info.Boundary)
		}
		for _, p := range r.pasts {
			look(p.Where, r.info.ID, p.Boundary)
		}
	}
	return out
}

// meet says whether a boundary can be of both names or patterns.
func meet(a, b string) bool {
	a, globA := strings.CutSuffix(a, "*")
	b, globB := strings.CutSuffix(b, "*")
	switch {
	case globA && strings.HasPrefix(b, a), globB && strings.HasPrefix(a, b):
		return true
	}
	return a == b
}

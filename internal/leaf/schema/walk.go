package schema

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of one validation. A unit of work is one subschema put to one value,
// one member looked at, or some characters matched; it takes some tens of
// nanoseconds.
const (
	maxWork    = 20_000_000
	maxDepth   = 10_000    // subschemas inside each other at run time
	maxMatch   = 8_000_000 // characters times instructions of one match
	maxFormat  = 64 << 10  // bytes of a string with a format
	checkEvery = 4096      // units between two looks at the context
)

// walk is one validation.
type walk struct {
	ctx   context.Context
	g     *graph
	work  int // the bound on the work of each of the two walks
	left  int
	until int // the value of left at which ctx is looked at next
	depth int
	// showNames is set if the document is a schema, whose names of members
	// are no secret and whose size is bounded.
	showNames bool
	// report collects violations; without it the first one ends the walk.
	report bool
	out    []Violation
	path   []step
	scopes []*scope
}

type step struct {
	name  string
	index int
}

// ended is the panic that unwinds a walk which may not go on; validate turns
// it into the error.
type ended struct{ why string }

// validate asks first whether the document fits at all, which short-circuits
// and allocates little, and only if not a second time for the reasons.
func (g *graph) validate(ctx context.Context, value any) ([]Violation, error) {
	return g.within(ctx, value, maxWork)
}

// within is validate with a bound on the work of each of the two walks.
func (g *graph) within(ctx context.Context, value any, work int) (found []Violation, err error) {
	return (&walk{ctx: ctx, g: g, work: work}).runTwice(value)
}

// runTwice carries out the two walks.
func (w *walk) runTwice(value any) (found []Violation, err error) {
	w.left, w.until = w.work, w.work
	defer func() {
		switch p := recover().(type) {
		case nil:
		case ended:
			found = nil
			err = &holdfast.Error{
				Kind: holdfast.KindTimeout, Gate: holdfast.K1, Why: p.why,
				Hint: "send a smaller document or simplify the schema", Err: w.ctx.Err(),
			}
		default:
			panic(p)
		}
	}()
	if w.check(w.g.root, value, nil) {
		return nil, nil
	}
	w.report, w.left, w.until = true, w.work, w.work
	w.check(w.g.root, value, nil)
	if len(w.out) == 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindInternal, Gate: holdfast.K1, Why: "the two walks of one document disagree"}
	}
	return w.out, nil
}

func (w *walk) spend(units int) {
	w.left -= units
	if w.left < 0 {
		panic(ended{"validation takes more work than is allowed"})
	}
	if w.left <= w.until {
		w.until = w.left - checkEvery
		if w.ctx.Err() != nil {
			panic(ended{"validation ran out of time"})
		}
	}
}

// full says that nothing more needs to be known.
func (w *walk) full() bool { return !w.report || len(w.out) >= MaxViolations }

// fail records one violation. It always returns false.
func (w *walk) fail(n *node, keyword, format string, args ...any) bool {
	if w.report && len(w.out) < MaxViolations {
		w.out = append(w.out, Violation{
			Pointer: w.pointer(), Keyword: keyword,
			SchemaPointer: clip(n.at.buildPointer()), Message: fmt.Sprintf(format, args...),
		})
	}
	return false
}

func (w *walk) pointer() string {
	var b strings.Builder
	for _, s := range w.path {
		b.WriteByte('/')
		if s.index >= 0 {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(escape(w.showName(s.name)))
		}
	}
	return b.String()
}

// showName makes the name of a member fit for a message.
func (w *walk) showName(name string) string {
	if w.showNames {
		return name
	}
	return shownName(name)
}

// quiet asks without recording.
func (w *walk) quiet(n *node, v any, seen *seen) bool {
	was := w.report
	w.report = false
	ok := w.check(n, v, seen)
	w.report = was
	return ok
}

func (w *walk) member(n *node, name string, v any) bool {
	w.path = append(w.path, step{name, -1})
	ok := w.check(n, v, nil)
	w.path = w.path[:len(w.path)-1]
	return ok
}

func (w *walk) element(n *node, i int, v any) bool {
	w.path = append(w.path, step{index: i})
	ok := w.check(n, v, nil)
	w.path = w.path[:len(w.path)-1]
	return ok
}

// check puts v to n. out, where not nil, learns which members and elements n
// evaluated; it counts only if the answer is yes.
func (w *walk) check(n *node, v any, out *seen) bool {
	w.spend(1)
	if n.always != nil {
		return *n.always || w.fail(n, "false", "nothing is allowed here")
	}
	if w.depth++; w.depth > maxDepth {
		panic(ended{"the schema refers to itself too often"})
	}
	if n.scope != nil {
		w.scopes = append(w.scopes, n.scope)
	}
	ok := w.all(n, v, out)
	if n.scope != nil {
		w.scopes = w.scopes[:len(w.scopes)-1]
	}
	w.depth--
	return ok
}

func (w *walk) all(n *node, v any, out *seen) bool {
	if n.old && n.ref != nil {
		return w.check(n.ref, v, out)
	}
	own := out
	if n.unevalProps != nil || n.unevalItems != nil {
		own = &seen{}
	}
	if !w.value(n, v) {
		return false
	}
	ok := true
	switch v := v.(type) {
	case map[string]any:
		ok = w.object(n, v, own)
	case []any:
		ok = w.array(n, v, own)
	case string:
		ok = w.str(n, v)
	case nil, bool:
	default:
		ok = w.number(n, v)
	}
	if !ok && w.full() {
		return false
	}
	// Where something failed already, what was evaluated means nothing.
	if ok = w.combined(n, v, own) && ok; !ok || !w.unevaluated(n, v, own) {
		return false
	}
	if own != out {
		out.merge(own)
	}
	return true
}

// value is type, const, enum and format; where one of them fails, the rest of
// the schema would only say the same again.
func (w *walk) value(n *node, v any) bool {
	if n.types != 0 && !n.types.has(v) {
		return w.fail(n, "type", "got %s, want %s", kindOf(v), n.want)
	}
	if n.equal != nil && !w.allowed(n, v) {
		keyword := "enum"
		if n.isConst {
			keyword = "const"
		}
		return w.fail(n, keyword, "%s is not allowed, want %s", kindOf(v), n.values)
	}
	if n.format != nil {
		return w.format(n, v)
	}
	return true
}

package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	left  int
	until int // the value of left at which ctx is looked at next
	depth int
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
	w := &walk{ctx: ctx, g: g, left: work, until: work}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case ended:
			found = nil
			err = &holdfast.Error{
				Kind: holdfast.KindTimeout, Gate: holdfast.K1, Why: p.why,
				Hint: "send a smaller document or simplify the schema", Err: ctx.Err(),
			}
		default:
			panic(p)
		}
	}()
	if w.check(g.root, value, nil) {
		return nil, nil
	}
	w.report, w.left, w.until = true, work, work
	w.check(g.root, value, nil)
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
			Pointer: w.pointer(), Keyword: keyword, SchemaPointer: clip(n.pointer), Message: fmt.Sprintf(format, args...),
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
			b.WriteString(escape(shownName(s.name)))
		}
	}
	return b.String()
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

// kinds is a set of JSON types.
type kinds uint8

// The JSON types; an integer is a number as well.
const (
	isNull kinds = 1 << iota
	isBoolean
	isNumber
	isInt
	isString
	isArray
	isObject
)

func kindsOf(names []string) kinds {
	all := map[string]kinds{
		"null": isNull, "boolean": isBoolean, "number": isNumber, "integer": isInt,
		"string": isString, "array": isArray, "object": isObject,
	}
	var k kinds
	for _, name := range names {
		k |= all[name]
	}
	return k
}

func (k kinds) has(v any) bool {
	switch v.(type) {
	case nil:
		return k&isNull != 0
	case bool:
		return k&isBoolean != 0
	case string:
		return k&isString != 0
	case []any:
		return k&isArray != 0
	case map[string]any:
		return k&isObject != 0
	}
	if k&isNumber != 0 || k&isInt == 0 {
		return k&isNumber != 0
	}
	d, ok := decimalOf(v)
	return ok && d.integer()
}

func (w *walk) allowed(n *node, v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		if !n.deep {
			return false
		}
	}
	c := canon(v)
	w.spend(1 + len(c)/4)
	_, ok := n.equal[c]
	return ok
}

// format asks the resolver's library. Its checks are linear but for regex,
// hence the bound; a panic in one is a no.
func (w *walk) format(n *node, v any) (ok bool) {
	s, isString := v.(string)
	if !isString {
		return true
	}
	if len(s) > maxFormat {
		return w.fail(n, "format", "%s is too long to be checked as %s", kindOf(v), clip(n.format.Name))
	}
	w.spend(1 + len(s)/16)
	defer func() {
		if p := recover(); p != nil {
			ok = w.fail(n, "format", "%s cannot be checked as %s", kindOf(v), clip(n.format.Name))
		}
	}()
	if n.format.Validate(v) != nil {
		return w.fail(n, "format", "%s is not a valid %s", kindOf(v), clip(n.format.Name))
	}
	return true
}

// match runs a pattern whose cost is known before.
func (w *walk) match(re *pattern, s string) bool {
	cost := (len(s) + 1) * re.size
	if cost > maxMatch {
		panic(ended{fmt.Sprintf("a string of %d bytes is too long for a pattern", len(s))})
	}
	w.spend(1 + cost/16)
	return re.MatchString(s)
}

func (w *walk) str(n *node, s string) bool {
	ok := true
	if n.minLength != nil || n.maxLength != nil {
		w.spend(1 + len(s)/64)
		length := utf8.RuneCountInString(s)
		if n.minLength != nil && length < *n.minLength {
			ok = w.fail(n, "minLength", "string of %d characters, want at least %d", length, *n.minLength)
		}
		if n.maxLength != nil && length > *n.maxLength {
			ok = w.fail(n, "maxLength", "string of %d characters, want at most %d", length, *n.maxLength)
		}
	}
	if n.pattern != nil && (ok || !w.full()) && !w.match(n.pattern, s) {
		ok = w.fail(n, "pattern", "%s does not match %s", kindOf(s), strconv.Quote(clip(n.pattern.String())))
	}
	return ok
}

func (w *walk) number(n *node, v any) bool {
	if len(n.bounds) == 0 && n.multiple == nil {
		_, ok := v.(json.Number)
		if !ok {
			_, ok = decimalOf(v)
		}
		return ok || w.fail(n, "type", "not a JSON value")
	}
	d, ok := decimalOf(v)
	if !ok {
		return w.fail(n, "type", "a number that cannot be compared")
	}
	w.spend(1 + len(d.digits)/16)
	for _, b := range n.bounds {
		if !b.allows(d.compare(b.limit)) {
			ok = w.fail(n, b.keyword, "number is out of bounds, want %s", b.text)
		}
	}
	if n.multiple == nil || !ok && w.full() {
		return ok
	}
	w.spend(100 + len(d.digits))
	switch yes, known := d.multiple(n.multiple); {
	case !known:
		ok = w.fail(n, "multipleOf", "number is too long to be divided by %s", n.multipleText)
	case !yes:
		ok = w.fail(n, "multipleOf", "number is no multiple of %s", n.multipleText)
	}
	return ok
}

func (w *walk) object(n *node, m map[string]any, own *seen) bool {
	ok := w.counted(n, m)
	if !ok && w.full() {
		return false
	}
	w.spend(len(n.order) + len(n.needs))
	for _, name := range n.order {
		v, there := m[name]
		if !there {
			continue
		}
		own.addName(name)
		if !w.member(n.props[name], name, v) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	if len(n.patterned) > 0 || n.additional != nil || n.names != nil {
		ok = w.members(n, m, own) && ok
	}
	return ok
}

func (w *walk) counted(n *node, m map[string]any) bool {
	ok := true
	if n.minProps != nil && len(m) < *n.minProps {
		ok = w.fail(n, "minProperties", "object of %d members, want at least %d", len(m), *n.minProps)
	}
	if n.maxProps != nil && len(m) > *n.maxProps {
		ok = w.fail(n, "maxProperties", "object of %d members, want at most %d", len(m), *n.maxProps)
	}
	if missing := w.missing(m, n.required); missing != nil {
		ok = w.fail(n, "required", "missing %s", shownNames(missing))
	}
	return ok
}

func (w *walk) missing(m map[string]any, names []string) []string {
	w.spend(len(names))
	var out []string
	for _, name := range names {
		if _, ok := m[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// members looks at every member there is, in order where that can be seen.
func (w *walk) members(n *node, m map[string]any, own *seen) bool {
	w.spend(len(m))
	if !w.report {
		for name, v := range m {
			if ok, _ := w.other(n, name, v, own); !ok {
				return false
			}
		}
		return true
	}
	ok, extra := true, []string(nil)
	for _, name := range sortedNames(m) {
		fits, forbidden := w.other(n, name, m[name], own)
		ok = ok && fits
		if forbidden {
			extra = append(extra, name)
		}
	}
	if extra != nil {
		ok = w.fail(n, "additionalProperties", "%s not allowed", shownNames(extra))
	}
	return ok
}

// other judges one member by its name: patterns, what is not declared, and the
// name itself. Forbidden says that additionalProperties is simply false; those
// are reported together.
func (w *walk) other(n *node, name string, v any, own *seen) (ok, forbidden bool) {
	_, known := n.props[name]
	ok = true
	for _, p := range n.patterned {
		if w.match(p.re, name) {
			known = true
			own.addName(name)
			ok = w.member(p.to, name, v) && ok
		}
	}
	if !known && n.additional != nil {
		own.addName(name)
		if n.additional.always != nil && !*n.additional.always {
			return false, true
		}
		ok = w.member(n.additional, name, v) && ok
	}
	if n.names != nil && !w.quiet(n.names, name, nil) {
		ok = w.fail(n, "propertyNames", "the name %s is not allowed", strconv.Quote(shownName(name)))
	}
	return ok, false
}

func (w *walk) array(n *node, list []any, own *seen) bool {
	ok := true
	if n.minItems != nil && len(list) < *n.minItems {
		ok = w.fail(n, "minItems", "array of %d, want at least %d", len(list), *n.minItems)
	}
	if n.maxItems != nil && len(list) > *n.maxItems {
		ok = w.fail(n, "maxItems", "array of %d, want at most %d", len(list), *n.maxItems)
	}
	if !ok && w.full() {
		return false
	}
	if n.unique {
		ok = w.distinct(n, list) && ok
	}
	for i, v := range list {
		to := n.rest
		if i < len(n.prefix) {
			to = n.prefix[i]
		}
		if to == nil {
			break
		}
		own.addItemsBelow(i + 1)
		if !w.element(to, i, v) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	if n.contains != nil {
		ok = w.containing(n, list, own) && ok
	}
	return ok
}

// distinct compares by canonical text, so that it is linear whatever the
// elements are.
func (w *walk) distinct(n *node, list []any) bool {
	at := make(map[string]int, len(list))
	for i, v := range list {
		c := canon(v)
		w.spend(1 + len(c)/4)
		if first, ok := at[c]; ok {
			return w.fail(n, "uniqueItems", "elements %d and %d are equal", first, i)
		}
		at[c] = i
	}
	return true
}

func (w *walk) containing(n *node, list []any, own *seen) bool {
	matched := 0
	for i, v := range list {
		if w.quiet(n.contains, v, nil) {
			matched++
			if n.modern {
				own.addItem(i)
			}
		}
	}
	least := 1
	if n.minContains != nil {
		least = *n.minContains
	}
	ok := true
	if matched < least {
		ok = w.fail(n, "contains", "%d elements match, want at least %d", matched, least)
	}
	if n.maxContains != nil && matched > *n.maxContains {
		ok = w.fail(n, "maxContains", "%d elements match, want at most %d", matched, *n.maxContains)
	}
	return ok
}

// here puts v to a subschema at the same place and keeps what it evaluated
// only if it said yes.
func (w *walk) here(n *node, v any, own *seen) bool {
	if own == nil {
		return w.check(n, v, nil)
	}
	fresh := &seen{}
	if !w.check(n, v, fresh) {
		return false
	}
	w.spend(4 * (len(fresh.names) + len(fresh.items)))
	own.merge(fresh)
	return true
}

func (w *walk) quietHere(n *node, v any, own *seen) bool {
	was := w.report
	w.report = false
	ok := w.here(n, v, own)
	w.report = was
	return ok
}

func (w *walk) combined(n *node, v any, own *seen) bool {
	ok := true
	each := [...]*node{n.ref, w.recursive(n), w.dynamic(n)}
	for _, to := range each {
		if to != nil && !w.here(to, v, own) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	for _, to := range n.all {
		if !w.here(to, v, own) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	if n.any != nil {
		ok = w.anyOf(n, v, own) && ok
	}
	if n.one != nil && (ok || !w.full()) {
		ok = w.oneOf(n, v, own) && ok
	}
	if n.not != nil && (ok || !w.full()) && w.quiet(n.not, v, nil) {
		ok = w.fail(n, "not", "%s is what the schema forbids", kindOf(v))
	}
	if n.cond != nil && (ok || !w.full()) {
		to := n.other
		if w.quietHere(n.cond, v, own) {
			to = n.then
		}
		ok = (to == nil || w.here(to, v, own)) && ok
	}
	if m, is := v.(map[string]any); is && n.needs != nil && (ok || !w.full()) {
		ok = w.dependent(n, m, own) && ok
	}
	return ok
}

// anyOf asks every alternative where what they evaluate matters.
func (w *walk) anyOf(n *node, v any, own *seen) bool {
	matched := false
	for _, to := range n.any {
		if w.quietHere(to, v, own) {
			if matched = true; own == nil {
				break
			}
		}
	}
	return matched || w.none(n, n.any, "anyOf", v)
}

func (w *walk) oneOf(n *node, v any, own *seen) bool {
	first := -1
	var kept *seen
	for i, to := range n.one {
		var fresh *seen
		if own != nil {
			fresh = &seen{}
		}
		if !w.quiet(to, v, fresh) {
			continue
		}
		if first >= 0 {
			return w.fail(n, "oneOf", "alternatives %d and %d both match, want one", first, i)
		}
		first, kept = i, fresh
	}
	if first < 0 {
		return w.none(n, n.one, "oneOf", v)
	}
	if own != nil {
		own.merge(kept)
	}
	return true
}

// none reports that no alternative fits and, where only one takes the value's
// type at all, what was wrong with that one.
func (w *walk) none(n *node, alternatives []*node, keyword string, v any) bool {
	w.fail(n, keyword, "%s matches none of %d alternatives", kindOf(v), len(alternatives))
	if !w.report {
		return false
	}
	var close *node
	for _, to := range alternatives {
		if to.always == nil && (to.types == 0 || to.types.has(v)) {
			if close != nil {
				return false
			}
			close = to
		}
	}
	if close != nil {
		w.check(close, v, nil)
	}
	return false
}

func (w *walk) dependent(n *node, m map[string]any, own *seen) bool {
	ok := true
	for _, d := range n.needs {
		if _, there := m[d.name]; !there {
			continue
		}
		if missing := w.missing(m, d.required); missing != nil {
			ok = w.fail(n, d.keyword, "missing %s, which %s asks for", shownNames(missing), strconv.Quote(shownName(d.name)))
		}
		if d.fit != nil && !w.here(d.fit, m, own) {
			ok = false
		}
		if !ok && w.full() {
			return false
		}
	}
	return ok
}

// recursive and dynamic resolve the references that depend on the resources
// the walk came through: the outermost that has the anchor wins.
func (w *walk) recursive(n *node) *node {
	if n.recursive == nil || n.recursive.scope == nil || !n.recursive.scope.recursive || n.recursive != n.recursive.scope.root {
		return n.recursive
	}
	for _, s := range w.scopes {
		if s.recursive {
			return s.root
		}
	}
	return n.recursive
}

func (w *walk) dynamic(n *node) *node {
	if n.dynamicRef == nil || n.anchor == "" || n.dynamicRef.ownAnchor != n.anchor {
		return n.dynamicRef
	}
	for _, s := range w.scopes {
		if to, ok := s.anchors[n.anchor]; ok {
			return to
		}
	}
	return n.dynamicRef
}

func (w *walk) unevaluated(n *node, v any, own *seen) bool {
	ok := true
	if m, is := v.(map[string]any); is && n.unevalProps != nil {
		w.spend(len(m))
		names := sortedNames(m)
		for _, name := range slices.DeleteFunc(names, own.hasName) {
			if !w.member(n.unevalProps, name, m[name]) {
				if ok = false; w.full() {
					return false
				}
			}
			own.addName(name)
		}
	}
	if list, is := v.([]any); is && n.unevalItems != nil {
		w.spend(len(list))
		for i, e := range list {
			if own.hasItem(i) {
				continue
			}
			if !w.element(n.unevalItems, i, e) {
				if ok = false; w.full() {
					return false
				}
			}
			own.addItem(i)
		}
	}
	return ok
}

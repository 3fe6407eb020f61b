package schema

import (
	"errors"
	"fmt"
	"math/big"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxExpansion is how many subschemas one value may be put to at most, each
// reference counted as often as it is reached.
const maxExpansion = 100_000

// graph is a resolved schema in the form that the walk takes.
type graph struct {
	root *node
	// dynamic says whether any node asks for the dynamic scope; where none
	// does, none is kept.
	dynamic bool
}

// node is one subschema. Absent keywords are nil or empty.
type node struct {
	pointer string
	always  *bool // a boolean schema: this is its answer
	old     bool  // draft-07: $ref replaces its siblings
	modern  bool  // 2020-12: contains marks items as evaluated
	scope   *scope

	types   kinds  // 0 is any
	want    string // the types, for people
	equal   map[string]struct{}
	deep    bool // equal holds containers
	isConst bool
	values  string // the allowed values, for people
	format  *jsonschema.Format

	ref        *node
	recursive  *node
	dynamicRef *node
	anchor     string // of dynamicRef
	ownAnchor  string // $dynamicAnchor of this node

	all, any, one     []*node
	not               *node
	cond, then, other *node

	minProps, maxProps *int
	required           []string
	names              *node
	props              map[string]*node
	order              []string // the names of props, sorted
	patterned          []patterned
	additional         *node
	needs              []needs
	unevalProps        *node

	minItems, maxItems       *int
	unique                   bool
	prefix                   []*node
	rest                     *node
	contains                 *node
	minContains, maxContains *int
	unevalItems              *node

	minLength, maxLength *int
	pattern              *pattern
	bounds               []bound
	multiple             *big.Rat
	multipleText         string

	expansion int // 0 not known, -1 being computed
}

type patterned struct {
	re *pattern
	to *node
}

// needs is one dependency: where the member is there, the others must be too,
// and the object must fit.
type needs struct {
	name, keyword string
	required      []string
	fit           *node
}

type bound struct {
	keyword string
	limit   decimal
	allows  func(cmp int) bool
	text    string
}

// scope is one schema resource, for $dynamicRef and $recursiveRef.
type scope struct {
	root      *node
	recursive bool
	anchors   map[string]*node
}

// builder turns what the resolver made into nodes.
type builder struct {
	c     *jsonschema.Compiler
	doc   any
	nodes map[*jsonschema.Schema]*node
	made  []*jsonschema.Schema
	g     *graph
	err   error
}

func build(c *jsonschema.Compiler, doc any, root *jsonschema.Schema) (*graph, error) {
	b := &builder{c: c, doc: doc, nodes: map[*jsonschema.Schema]*node{}, g: &graph{}}
	b.g.root = b.node(root)
	if b.err == nil && b.g.dynamic {
		b.scopes()
	}
	if b.err != nil {
		return nil, b.err
	}
	for _, s := range b.made {
		if _, err := expand(b.nodes[s]); err != nil {
			return nil, err
		}
	}
	return b.g, nil
}

func (b *builder) fail(pointer, format string, args ...any) {
	if b.err == nil {
		b.err = &flaw{pointer: pointer, why: fmt.Sprintf(format, args...)}
	}
}

func (b *builder) node(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	if n, ok := b.nodes[s]; ok {
		return n
	}
	n := &node{pointer: pointerOf(s.Location), always: s.Bool, old: s.DraftVersion < 2019, modern: s.DraftVersion >= 2020}
	b.nodes[s] = n
	b.made = append(b.made, s)
	if s.DraftVersion < 7 {
		b.fail(n.pointer, "this dialect is not supported")
		return n
	}
	n.ref = b.node(s.Ref)
	if n.old && n.ref != nil {
		return n
	}
	b.values(n, s)
	b.combinations(n, s)
	b.object(n, s)
	b.array(n, s)
	b.scalars(n, s)
	b.dynamics(n, s)
	return n
}

// list maps schemas to nodes; a boolean false from the resolver becomes a node
// that refuses.
func (b *builder) list(ss []*jsonschema.Schema) []*node {
	var out []*node
	for _, s := range ss {
		out = append(out, b.node(s))
	}
	return out
}

func (b *builder) either(v any, pointer string) *node {
	switch v := v.(type) {
	case bool:
		return &node{pointer: pointer, always: &v}
	case *jsonschema.Schema:
		return b.node(v)
	}
	return nil
}

func (b *builder) values(n *node, s *jsonschema.Schema) {
	if s.Types != nil {
		n.types = kindsOf(s.Types.ToStrings())
		n.want = strings.Join(s.Types.ToStrings(), " or ")
	}
	n.format = s.Format
	if n.format != nil && n.format.Name == "regex" {
		// The resolver would ask our pattern compiler, which counts.
		n.format = &jsonschema.Format{Name: "regex", Validate: validateRegex}
	}
	var allowed []any
	switch {
	case s.Const != nil && s.Enum != nil:
		// Both must hold, so only what is in both is allowed.
		c := canon(*s.Const)
		for _, v := range s.Enum.Values {
			if canon(v) == c {
				allowed = append(allowed, v)
			}
		}
		n.equal, n.isConst = map[string]struct{}{}, true
	case s.Const != nil:
		allowed, n.isConst = []any{*s.Const}, true
	case s.Enum != nil:
		n.equal, allowed = map[string]struct{}{}, s.Enum.Values
	default:
		return
	}
	if n.equal == nil {
		n.equal = map[string]struct{}{}
	}
	for _, v := range allowed {
		switch v.(type) {
		case map[string]any, []any:
			n.deep = true
		}
		n.equal[canon(v)] = struct{}{}
	}
	n.values = listed(allowed)
}

// validateRegex is the format "regex": a pattern that Compile would take.
func validateRegex(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	if len(s) > maxPattern {
		return errors.New("too long")
	}
	_, err := syntax.Parse(s, syntax.Perl)
	return err
}

func (b *builder) combinations(n *node, s *jsonschema.Schema) {
	n.all, n.any, n.one = b.list(s.AllOf), b.list(s.AnyOf), b.list(s.OneOf)
	n.not = b.node(s.Not)
	n.cond, n.then, n.other = b.node(s.If), b.node(s.Then), b.node(s.Else)
}

func (b *builder) object(n *node, s *jsonschema.Schema) {
	n.minProps, n.maxProps, n.required = s.MinProperties, s.MaxProperties, s.Required
	n.names = b.node(s.PropertyNames)
	n.additional = b.either(s.AdditionalProperties, n.pointer+"/additionalProperties")
	n.unevalProps = b.node(s.UnevaluatedProperties)
	n.props = map[string]*node{}
	for _, name := range sortedNames(s.Properties) {
		n.order = append(n.order, name)
		n.props[name] = b.node(s.Properties[name])
	}
	for re, to := range s.PatternProperties {
		n.patterned = append(n.patterned, patterned{re.(*pattern), b.node(to)})
	}
	slices.SortFunc(n.patterned, func(a, b patterned) int { return strings.Compare(a.re.String(), b.re.String()) })
	for _, name := range sortedNames(s.Dependencies) {
		switch dep := s.Dependencies[name].(type) {
		case []string:
			n.needs = append(n.needs, needs{name: name, keyword: "dependencies", required: dep})
		case *jsonschema.Schema:
			n.needs = append(n.needs, needs{name: name, keyword: "dependencies", fit: b.node(dep)})
		}
	}
	for _, name := range sortedNames(s.DependentRequired) {
		n.needs = append(n.needs, needs{name: name, keyword: "dependentRequired", required: s.DependentRequired[name]})
	}
	for _, name := range sortedNames(s.DependentSchemas) {
		n.needs = append(n.needs, needs{name: name, keyword: "dependentSchemas", fit: b.node(s.DependentSchemas[name])})
	}
}

func (b *builder) array(n *node, s *jsonschema.Schema) {
	n.minItems, n.maxItems, n.unique = s.MinItems, s.MaxItems, s.UniqueItems
	n.contains, n.minContains, n.maxContains = b.node(s.Contains), s.MinContains, s.MaxContains
	n.unevalItems = b.node(s.UnevaluatedItems)
	if n.modern {
		n.prefix, n.rest = b.list(s.PrefixItems), b.node(s.Items2020)
		return
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		n.rest = b.node(items)
	case []*jsonschema.Schema:
		n.prefix = b.list(items)
		n.rest = b.either(s.AdditionalItems, n.pointer+"/additionalItems")
	}
}

func (b *builder) scalars(n *node, s *jsonschema.Schema) {
	n.minLength, n.maxLength = s.MinLength, s.MaxLength
	if s.Pattern != nil {
		n.pattern = s.Pattern.(*pattern)
	}
	b.bound(n, "minimum", s.Minimum, "at least", func(c int) bool { return c >= 0 })
	b.bound(n, "maximum", s.Maximum, "at most", func(c int) bool { return c <= 0 })
	b.bound(n, "exclusiveMinimum", s.ExclusiveMinimum, "more than", func(c int) bool { return c > 0 })
	b.bound(n, "exclusiveMaximum", s.ExclusiveMaximum, "less than", func(c int) bool { return c < 0 })
	if n.multiple = s.MultipleOf; n.multiple != nil {
		n.multipleText = ratText(n.multiple)
	}
}

func (b *builder) bound(n *node, keyword string, r *big.Rat, words string, allows func(int) bool) {
	if r == nil {
		return
	}
	limit, ok := decimalOfRat(r)
	if !ok {
		b.fail(n.pointer+"/"+keyword, "a bound is not a decimal number")
		return
	}
	n.bounds = append(n.bounds, bound{keyword, limit, allows, words + " " + ratText(r)})
}

func ratText(r *big.Rat) string {
	if r.IsInt() {
		return clip(r.Num().String())
	}
	places, _ := r.FloatPrec()
	return clip(r.FloatString(places))
}

// dynamics reads the references that depend on who refers.
func (b *builder) dynamics(n *node, s *jsonschema.Schema) {
	n.ownAnchor = s.DynamicAnchor
	n.recursive = b.node(s.RecursiveRef)
	if s.DynamicRef != nil {
		n.dynamicRef, n.anchor = b.node(s.DynamicRef.Ref), s.DynamicRef.Anchor
	}
	if n.recursive == nil && n.dynamicRef == nil {
		return
	}
	b.g.dynamic = true
	if !strings.HasPrefix(s.Location, base+"#") {
		b.fail("", "refers to a dialect's own schema, whose references depend on the referrer")
	}
}

// scopes gives every node its resource and every resource its dynamic anchors.
// Anchors that nothing refers to statically are compiled here; the graph grows
// while this runs.
func (b *builder) scopes() {
	for _, p := range anchors(b.doc, "") {
		if s, err := b.c.Compile(base + "#" + fragment(p)); err == nil {
			b.node(s)
		}
	}
	resources := map[*jsonschema.Schema]*scope{}
	for i := 0; i < len(b.made); i++ {
		s := b.made[i]
		if owner := b.resource(s); owner != nil {
			sc, ok := resources[owner]
			if !ok {
				sc = &scope{root: b.node(owner), recursive: owner.RecursiveAnchor, anchors: map[string]*node{}}
				resources[owner] = sc
			}
			n := b.nodes[s]
			n.scope = sc
			if n.ownAnchor != "" {
				sc.anchors[n.ownAnchor] = n
			}
		}
	}
}

// resource is the nearest schema around s, or s itself, that has an `$id`;
// else the root of the document.
func (b *builder) resource(s *jsonschema.Schema) *jsonschema.Schema {
	if !strings.HasPrefix(s.Location, base+"#") {
		return nil
	}
	tokens := strings.Split(pointerOf(s.Location), "/")
	for n := len(tokens); n > 0; n-- {
		p := strings.Join(tokens[:n], "/")
		m, _ := lookup(b.doc, tokens[1:n]).(map[string]any)
		if _, ok := m["$id"].(string); !ok && p != "" {
			continue
		}
		owner, err := b.c.Compile(base + "#" + fragment(p))
		if err == nil && (owner.ID != "" || p == "") {
			b.node(owner)
			return owner
		}
	}
	return nil
}

func lookup(v any, tokens []string) any {
	for _, t := range tokens {
		t = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		switch c := v.(type) {
		case map[string]any:
			v = c[t]
		case []any:
			i := -1
			if _, err := fmt.Sscanf(t, "%d", &i); err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// anchors lists where `$dynamicAnchor` stands, in a fixed order, without
// looking into keywords that hold data.
func anchors(v any, at string) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["$dynamicAnchor"].(string); ok {
			out = append(out, at)
		}
		for _, name := range sortedNames(v) {
			switch name {
			case "const", "enum", "default", "examples":
				if !strings.HasSuffix(at, "/properties") && !strings.HasSuffix(at, "/$defs") {
					continue
				}
			}
			out = append(out, anchors(v[name], at+"/"+escape(name))...)
		}
	case []any:
		for i, e := range v {
			out = append(out, anchors(e, fmt.Sprintf("%s/%d", at, i))...)
		}
	}
	return out
}

// here lists the nodes that n puts to the very value it is put to itself.
func (n *node) here() []*node {
	if n.old && n.ref != nil {
		return []*node{n.ref}
	}
	out := []*node{n.ref, n.recursive, n.dynamicRef, n.not, n.cond, n.then, n.other}
	out = append(append(append(out, n.all...), n.any...), n.one...)
	for _, d := range n.needs {
		out = append(out, d.fit)
	}
	return slices.DeleteFunc(out, func(n *node) bool { return n == nil })
}

// expand counts the nodes that one value is put to when it is put to n. A node
// that leads back to itself without going down into the value would never end
// (K1_FP2).
func expand(n *node) (int, error) {
	switch {
	case n.expansion > 0:
		return n.expansion, nil
	case n.expansion < 0:
		return 0, &flaw{pointer: n.pointer, why: "refers to itself at one place", hint: "break the circle of references"}
	}
	n.expansion = -1
	sum := 1
	for _, m := range n.here() {
		e, err := expand(m)
		if err != nil {
			return 0, err
		}
		if sum += e; sum > maxExpansion {
			return 0, &flaw{pointer: n.pointer, why: fmt.Sprintf("puts one value to more than %d subschemas", maxExpansion)}
		}
	}
	n.expansion = sum
	return sum, nil
}

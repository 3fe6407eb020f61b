package schema

import (
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// compiler turns one document into a graph.
type compiler struct {
	doc           *document
	standard      map[string]*document // those that were referred to, by file
	patterns      patterns
	assertsFormat bool // in dialects where a format is an annotation, too
	pending       []region
	checks        int // the work that is left for checks against metaschemas
	addresses     int // bytes of addresses joined so far
	made          []*node
	touched       []*resource
}

func newCompiler() *compiler {
	return &compiler{patterns: patterns{left: maxInstructions}, checks: maxWork}
}

// buildGraph compiles what the root of the document reaches. The roots of all
// resources it came through, and the dynamic anchors there, are compiled too:
// their references must resolve, and dynamic references may lead to them.
func (c *compiler) buildGraph() (*graph, error) {
	g := &graph{root: c.nodeAt(c.doc.root)}
	if err := c.fillNodes(0); err != nil {
		return nil, err
	}
	applied := len(c.made)
	isDynamic := slices.ContainsFunc(c.made, (*node).isDynamic)
	if err := c.fillResources(func(res *resource) bool { return res.root.doc == c.doc }); err != nil {
		return nil, err
	}
	if isDynamic {
		applied = len(c.made)
	}
	if err := c.fillResources(func(*resource) bool { return true }); err != nil {
		return nil, err
	}
	if isDynamic {
		c.setScopes()
	}
	if err := c.verifyNodes(c.made[:applied]); err != nil {
		return nil, err
	}
	for _, n := range c.made {
		n.at.releaseTree()
	}
	return g, nil
}

// fillResources compiles the roots and dynamic anchors of the resources that
// were touched and are wanted, and of those that these touch.
func (c *compiler) fillResources(isWanted func(*resource) bool) error {
	for i := 0; i < len(c.touched); i++ {
		res, from := c.touched[i], len(c.made)
		if !isWanted(res) {
			continue
		}
		c.nodeAt(res.root)
		for _, name := range sortedNames(res.dynamic) {
			c.nodeAt(res.dynamic[name])
		}
		if err := c.fillNodes(from); err != nil {
			return err
		}
	}
	return nil
}

// nodeAt returns the node of the schema at p, which fillNodes fills later.
func (c *compiler) nodeAt(p *place) *node {
	if p.node == nil {
		p.node = &node{at: p}
		c.made = append(c.made, p.node)
	}
	return p.node
}

// fillNodes fills the nodes from an index on, and those that they lead to.
func (c *compiler) fillNodes(from int) error {
	for i := from; i < len(c.made); i++ {
		if err := c.fillNode(c.made[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) fillNode(n *node) error {
	p := n.at
	if p.res == nil {
		if err := c.indexPlace(p); err != nil {
			return err
		}
	} else if !p.checked {
		p.checked = true
		c.pending = append(c.pending, region{p, p.res.dialect})
	}
	if err := c.checkPending(); err != nil {
		return err
	}
	if !p.res.touched {
		p.res.touched = true
		c.touched = append(c.touched, p.res)
	}
	d := p.res.dialect
	if !d.isSupported() {
		return nil // verifyNodes rejects it if it can be applied
	}
	n.old, n.modern = d.hidesSiblings(), d >= draft2020
	switch v := p.value.(type) {
	case bool:
		n.always = &v
	case map[string]any:
		if len(v) == 0 {
			yes := true
			n.always = &yes
			return nil
		}
		return c.fillKeywords(n, v)
	}
	return nil
}

func (c *compiler) fillKeywords(n *node, obj map[string]any) error {
	var err error
	if n.ref, err = c.nodeOfReference(n, obj, "$ref"); err != nil {
		return err
	}
	if n.old && n.ref != nil {
		return nil
	}
	if err := c.fillDynamics(n, obj); err != nil {
		return err
	}
	c.fillValues(n, obj)
	c.fillCombinations(n, obj)
	if err := c.fillObject(n, obj); err != nil {
		return err
	}
	c.fillArray(n, obj)
	return c.fillScalars(n, obj)
}

func (c *compiler) nodeOfReference(n *node, obj map[string]any, keyword string) (*node, error) {
	ref, ok := obj[keyword].(string)
	if !ok {
		return nil, nil
	}
	to, err := c.resolveReference(n.at, keyword, ref)
	if err != nil {
		return nil, err
	}
	return c.nodeAt(to), nil
}

// fillDynamics reads the references that depend on the referrer.
func (c *compiler) fillDynamics(n *node, obj map[string]any) (err error) {
	if n.old {
		return nil
	}
	if n.recursive, err = c.nodeOfReference(n, obj, "$recursiveRef"); err != nil || !n.modern {
		return err
	}
	n.ownAnchor, _ = obj["$dynamicAnchor"].(string)
	if n.dynamicRef, err = c.nodeOfReference(n, obj, "$dynamicRef"); err != nil || n.dynamicRef == nil {
		return err
	}
	_, fragment, _ := strings.Cut(obj["$dynamicRef"].(string), "#")
	if name, err := url.PathUnescape(fragment); err == nil && !strings.HasPrefix(name, "/") {
		n.anchor = name
	}
	return nil
}

// isDynamic reports whether n has a reference that depends on the referrer.
func (n *node) isDynamic() bool { return n.recursive != nil || n.dynamicRef != nil }

// setScopes gives every node its resource and every resource its dynamic
// anchors.
func (c *compiler) setScopes() {
	for _, res := range c.touched {
		obj, _ := res.root.value.(map[string]any)
		recursive, _ := obj["$recursiveAnchor"].(bool)
		res.scope = &scope{root: res.root.node, recursive: recursive, anchors: map[string]*node{}}
		for name, p := range res.dynamic {
			if p.node != nil {
				res.scope.anchors[name] = p.node
			}
		}
	}
	for _, n := range c.made {
		n.scope = n.at.res.scope
	}
}

// verifyNodes rejects what may be in a document, but not be applied.
func (c *compiler) verifyNodes(nodes []*node) error {
	for _, n := range nodes {
		switch doc := n.at.doc; {
		case !n.at.res.dialect.isSupported():
			return newDialectFlaw(n.at.buildPointer())
		case doc != c.doc && n.isDynamic() && !c.assertsFormat:
			why := "refers to a dialect's own schema, whose references depend on the referrer"
			return &flaw{pointer: doc.referrer, why: why}
		}
	}
	for _, n := range nodes {
		if _, err := expand(n); err != nil {
			return err
		}
	}
	return nil
}

func newDialectFlaw(pointer string) error {
	return &flaw{pointer: pointer, why: "this dialect is not supported", hint: "use draft-07, 2019-09 or 2020-12"}
}

// schemaAt returns the node of the schema that a keyword holds, or nil.
func (c *compiler) schemaAt(n *node, keyword string) *node {
	if p := n.at.findChild(keyword); p != nil {
		return c.nodeAt(p)
	}
	return nil
}

// listAt returns the nodes of the schemas that a keyword lists.
func (c *compiler) listAt(n *node, obj map[string]any, keyword string) []*node {
	list, ok := obj[keyword].([]any)
	if !ok {
		return nil
	}
	p, nodes := n.at.findChild(keyword), make([]*node, len(list))
	for i := range list {
		nodes[i] = c.nodeAt(p.findChild(strconv.Itoa(i)))
	}
	return nodes
}

// mapAt calls visit with each schema that a keyword holds by name, in order.
func (c *compiler) mapAt(n *node, obj map[string]any, keyword string, visit func(name string, p *place)) {
	members, ok := obj[keyword].(map[string]any)
	if !ok {
		return
	}
	p := n.at.findChild(keyword)
	for _, name := range sortedNames(members) {
		visit(name, p.findChild(name))
	}
}

func (c *compiler) fillValues(n *node, obj map[string]any) {
	switch v := obj["type"].(type) {
	case string:
		n.types = kindsOf(v)
	case []any:
		n.types = kindsOf(stringsOf(v)...)
	}
	if n.types != 0 {
		n.want = n.types.String()
	}
	if name, ok := obj["format"].(string); ok && (n.old || c.assertsFormat) {
		n.format = findFormat(name)
	}
	only, hasConst := obj["const"]
	allowed, hasEnum := obj["enum"].([]any)
	switch {
	case hasConst && hasEnum:
		// Both must be true, so only what is in both is allowed.
		same := canon(only)
		allowed = slices.DeleteFunc(slices.Clone(allowed), func(v any) bool { return canon(v) != same })
	case hasConst:
		allowed = []any{only}
	case !hasEnum:
		return
	}
	n.isConst = hasConst
	n.equal = make(map[string]struct{}, len(allowed))
	for _, v := range allowed {
		switch v.(type) {
		case map[string]any, []any:
			n.deep = true
		}
		n.equal[canon(v)] = struct{}{}
	}
	n.values = listed(allowed)
}

func (c *compiler) fillCombinations(n *node, obj map[string]any) {
	n.all, n.any, n.one = c.listAt(n, obj, "allOf"), c.listAt(n, obj, "anyOf"), c.listAt(n, obj, "oneOf")
	n.not = c.schemaAt(n, "not")
	if n.cond = c.schemaAt(n, "if"); n.cond == nil {
		return
	}
	// What a constant condition never asks for is not compiled.
	constant, isConstant := obj["if"].(bool)
	if !isConstant || constant {
		n.then = c.schemaAt(n, "then")
	}
	if !isConstant || !constant {
		n.other = c.schemaAt(n, "else")
	}
}

func (c *compiler) fillObject(n *node, obj map[string]any) error {
	n.minProps, n.maxProps = countAt(obj, "minProperties"), countAt(obj, "maxProperties")
	if list, ok := obj["required"].([]any); ok {
		n.required = stringsOf(list)
	}
	n.names = c.schemaAt(n, "propertyNames")
	n.additional = c.schemaAt(n, "additionalProperties")
	n.props = map[string]*node{}
	c.mapAt(n, obj, "properties", func(name string, p *place) {
		n.order = append(n.order, name)
		n.props[name] = c.nodeAt(p)
	})
	var err error
	c.mapAt(n, obj, "patternProperties", func(source string, p *place) {
		re, failed := c.compilePattern(p, source)
		if failed != nil && err == nil {
			err = failed
		}
		n.patterned = append(n.patterned, patterned{re, c.nodeAt(p)})
	})
	c.mapAt(n, obj, "dependencies", func(name string, p *place) {
		if list, ok := p.value.([]any); ok {
			n.needs = append(n.needs, needs{name: name, keyword: "dependencies", required: stringsOf(list)})
			return
		}
		n.needs = append(n.needs, needs{name: name, keyword: "dependencies", fit: c.nodeAt(p)})
	})
	if n.old {
		return err
	}
	n.unevalProps = c.schemaAt(n, "unevaluatedProperties")
	c.mapAt(n, obj, "dependentRequired", func(name string, p *place) {
		list, _ := p.value.([]any)
		n.needs = append(n.needs, needs{name: name, keyword: "dependentRequired", required: stringsOf(list)})
	})
	c.mapAt(n, obj, "dependentSchemas", func(name string, p *place) {
		n.needs = append(n.needs, needs{name: name, keyword: "dependentSchemas", fit: c.nodeAt(p)})
	})
	return err
}

func (c *compiler) fillArray(n *node, obj map[string]any) {
	n.minItems, n.maxItems = countAt(obj, "minItems"), countAt(obj, "maxItems")
	n.unique, _ = obj["uniqueItems"].(bool)
	n.contains = c.schemaAt(n, "contains")
	if !n.old {
		n.unevalItems = c.schemaAt(n, "unevaluatedItems")
		if n.contains != nil {
			n.minContains, n.maxContains = countAt(obj, "minContains"), countAt(obj, "maxContains")
		}
	}
	if n.modern {
		n.prefix, n.rest = c.listAt(n, obj, "prefixItems"), c.schemaAt(n, "items")
		return
	}
	if _, isList := obj["items"].([]any); isList {
		n.prefix, n.rest = c.listAt(n, obj, "items"), c.schemaAt(n, "additionalItems")
		return
	}
	n.rest = c.schemaAt(n, "items")
}

func (c *compiler) fillScalars(n *node, obj map[string]any) (err error) {
	n.minLength, n.maxLength = countAt(obj, "minLength"), countAt(obj, "maxLength")
	if source, ok := obj["pattern"].(string); ok {
		if n.pattern, err = c.compilePattern(n.at.findChild("pattern"), source); err != nil {
			return err
		}
	}
	n.addBound(obj, "minimum", "at least", func(c int) bool { return c >= 0 })
	n.addBound(obj, "maximum", "at most", func(c int) bool { return c <= 0 })
	n.addBound(obj, "exclusiveMinimum", "more than", func(c int) bool { return c > 0 })
	n.addBound(obj, "exclusiveMaximum", "less than", func(c int) bool { return c < 0 })
	if number, ok := obj["multipleOf"].(json.Number); ok {
		if d, known := parseDecimal(string(number)); known {
			n.multiple, _ = new(big.Rat).SetString(d.String())
			n.multipleText = clip(d.formatPlain())
		}
	}
	return nil
}

func (n *node) addBound(obj map[string]any, keyword, words string, allows func(int) bool) {
	number, ok := obj[keyword].(json.Number)
	if !ok {
		return
	}
	if limit, known := parseDecimal(string(number)); known {
		n.bounds = append(n.bounds, bound{keyword, limit, allows, words + " " + clip(limit.formatPlain())})
	}
}

// compilePattern compiles the pattern at p.
func (c *compiler) compilePattern(p *place, source string) (*pattern, error) {
	re, err := c.patterns.compileSource(source)
	if err != nil {
		f := &flaw{pointer: p.buildPointer()}
		if !describePattern(f, source) {
			f.why = err.Error()
		}
		return nil, f
	}
	return re, nil
}

// countAt returns the length or count that a keyword holds, or nil. The reader
// rejected those above 10^15, the metaschema those that are no whole number.
func countAt(obj map[string]any, keyword string) *int {
	number, ok := obj[keyword].(json.Number)
	if !ok {
		return nil
	}
	d, ok := parseDecimal(string(number))
	if !ok || !d.integer() {
		return nil
	}
	n, err := strconv.Atoi(d.formatPlain())
	if err != nil {
		return nil
	}
	return &n
}

// stringsOf returns the strings in a list.
func stringsOf(list []any) []string {
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

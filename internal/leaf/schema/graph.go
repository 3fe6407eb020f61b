package schema

import (
	"fmt"
	"math/big"
	"slices"
)

// maxExpansion is how many subschemas one value may be put to at most, each
// reference counted as often as it is reached.
const maxExpansion = 100_000

// graph is a resolved schema in the form that the walk takes.
type graph struct{ root *node }

// node is one subschema. Absent keywords are nil or empty.
type node struct {
	at     *place
	always *bool  // a boolean schema: this is its answer
	old    bool   // draft-07: $ref replaces its siblings
	modern bool   // 2020-12: contains marks items as evaluated
	scope  *scope // nil if no schema of the graph asks for the dynamic scope

	types   kinds  // 0 is any
	want    string // the types, for people
	equal   map[string]struct{}
	deep    bool // equal holds containers
	isConst bool
	values  string // the allowed values, for people
	format  *format

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
		why := "refers to itself at one place"
		return 0, &flaw{pointer: n.at.buildPointer(), why: why, hint: "break the circle of references"}
	}
	n.expansion = -1
	sum := 1
	for _, m := range n.here() {
		e, err := expand(m)
		if err != nil {
			return 0, err
		}
		if sum += e; sum > maxExpansion {
			why := fmt.Sprintf("puts one value to more than %d subschemas", maxExpansion)
			return 0, &flaw{pointer: n.at.buildPointer(), why: why}
		}
	}
	n.expansion = sum
	return sum, nil
}

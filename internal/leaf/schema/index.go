package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// region is a part of a document that one dialect's own schema checks.
type region struct {
	at      *place
	dialect dialect
}

// indexDocument finds the resources and anchors of a document.
func (c *compiler) indexDocument(doc *document) error {
	res := &resource{address: doc.address, root: doc.root, dialect: draft2020, anchors: map[string]*place{}}
	return c.indexSchema(doc.root, res, true)
}

// indexPlace finds the resources and anchors below a place that no keyword
// holds, but that a reference leads to.
func (c *compiler) indexPlace(p *place) error {
	if err := c.indexSchema(p, p.findResource(), true); err != nil {
		return err
	}
	if !p.foreign {
		c.pending = append(c.pending, region{p, p.res.dialect})
	}
	return nil
}

// indexSchema gives the schema at p, and all in it, their resource. outer is
// the resource around p; checked says that the dialect's own schema sees p.
func (c *compiler) indexSchema(p *place, outer *resource, checked bool) error {
	if p.res != nil {
		return nil
	}
	own := outer
	obj, isObject := p.value.(map[string]any)
	if isObject {
		var err error
		if own, err = c.openResource(p, obj, outer); err != nil {
			return err
		}
	}
	if p == p.doc.root {
		p.doc.resources[own.address] = own
		if p.doc == c.doc {
			c.pending = append(c.pending, region{p, own.dialect})
		}
	} else if own.dialect != outer.dialect {
		p.markForeign()
		c.pending = append(c.pending, region{p, own.dialect})
		checked = true
	}
	p.res, p.checked = own, checked
	if !isObject {
		return nil
	}
	if err := addAnchors(p, obj, own); err != nil {
		return err
	}
	for _, a := range applicators {
		if a.since > own.dialect {
			continue
		}
		if _, ok := obj[a.keyword]; !ok {
			continue
		}
		kid := p.findChild(a.keyword)
		if err := c.indexShape(kid, a.shape, own, checked && a.until >= own.dialect); err != nil {
			return err
		}
	}
	return nil
}

// indexShape indexes the subschemas that one keyword holds.
func (c *compiler) indexShape(p *place, s shape, own *resource, checked bool) error {
	switch v := p.value.(type) {
	case map[string]any:
		if s&isSchema != 0 {
			return c.indexSchema(p, own, checked)
		}
		if s&isMap == 0 {
			return nil
		}
		for _, name := range sortedNames(v) {
			if err := c.indexSchema(p.findChild(name), own, checked); err != nil {
				return err
			}
		}
	case []any:
		if s&isList == 0 {
			return nil
		}
		for i := range v {
			if err := c.indexSchema(p.findChild(strconv.Itoa(i)), own, checked); err != nil {
				return err
			}
		}
	case bool:
		if s&isSchema != 0 {
			return c.indexSchema(p, own, checked)
		}
	}
	return nil
}

// openResource returns the resource of the schema at p: a new one if the
// schema has an id, else the one around it. A `$schema` counts only next to an
// id and at the root.
func (c *compiler) openResource(p *place, obj map[string]any, outer *resource) (*resource, error) {
	named := outer.dialect
	if s, ok := obj["$schema"].(string); ok {
		if named, ok = findDialect(s); !ok {
			return nil, newDialectFlaw(p.buildPointer() + "/$schema")
		}
	}
	id := readID(obj, named)
	if p == p.doc.root {
		outer.dialect = named
	} else if id == "" {
		named = outer.dialect
		id = readID(obj, named)
	}
	if id == "" {
		return outer, nil
	}
	// A pointer is built for an error only: it may be as long as the document.
	at := func() string { return p.buildPointer() + "/" + named.idKeyword() }
	address, err := c.joinAddress(outer, id)
	if err != nil {
		return nil, &flaw{pointer: at(), why: "this address cannot be used: " + err.Error()}
	}
	if p == p.doc.root {
		outer.address, outer.base = address, nil
		return outer, nil
	}
	if first := p.doc.resources[address]; first != nil {
		first := first.root.buildPointer()
		if first == "" {
			first = "the root"
		}
		why := first + " has this address already"
		return nil, &flaw{pointer: at(), why: why, hint: "give each schema its own address"}
	}
	res := &resource{address: address, root: p, dialect: named, anchors: map[string]*place{}}
	p.doc.resources[address] = res
	return res, nil
}

// readID returns the address that a schema gives itself, without a fragment,
// or "".
func readID(obj map[string]any, d dialect) string {
	if _, ok := obj["$ref"]; ok && d.hidesSiblings() {
		return ""
	}
	id, _ := obj[d.idKeyword()].(string)
	id, _, _ = strings.Cut(id, "#")
	return id
}

// addAnchors enters the names that the schema at p gives itself.
func addAnchors(p *place, obj map[string]any, own *resource) error {
	if own.dialect.hidesSiblings() {
		if _, ok := obj["$ref"]; ok {
			return nil
		}
		keyword := own.dialect.idKeyword()
		id, _ := obj[keyword].(string)
		_, fragment, _ := strings.Cut(id, "#")
		name, err := url.PathUnescape(fragment)
		if err != nil {
			return &flaw{pointer: p.buildPointer() + "/" + keyword, why: "the fragment is not percent-encoded correctly"}
		}
		if name == "" || name[0] == '/' {
			return nil
		}
		return addAnchor(p, keyword, name, own)
	}
	if name, ok := obj["$anchor"].(string); ok {
		if err := addAnchor(p, "$anchor", name, own); err != nil {
			return err
		}
	}
	if name, ok := obj["$dynamicAnchor"].(string); ok && own.dialect >= draft2020 {
		if err := addAnchor(p, "$dynamicAnchor", name, own); err != nil {
			return err
		}
		if own.dynamic == nil {
			own.dynamic = map[string]*place{}
		}
		own.dynamic[name] = p
	}
	return nil
}

func addAnchor(p *place, keyword, name string, own *resource) error {
	if first := own.anchors[name]; first != nil && first != p {
		why := fmt.Sprintf("the anchor is used twice; first at %s", clip(first.buildPointer()))
		return &flaw{pointer: p.buildPointer() + "/" + keyword, why: why, hint: "give each anchor its own name"}
	}
	own.anchors[name] = p
	return nil
}

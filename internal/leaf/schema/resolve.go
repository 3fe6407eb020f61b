package schema

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// base is the address of a schema without `$id`. It is hierarchical, so that a
// relative `$id` works, and leads nowhere.
const base = "holdfast://schema/root"

// maxAddresses is the number of bytes that all joined addresses of one schema
// may have. It keeps a long `$id` from being joined with thousands of others.
const maxAddresses = 16 << 20

var errRemote = errors.New("references outside the schema are not fetched")

// joinAddress resolves a reference without fragment against the address of
// res (RFC 3986).
func (c *compiler) joinAddress(res *resource, ref string) (string, error) {
	if c.addresses += len(res.address) + len(ref); c.addresses > maxAddresses {
		return "", errors.New("the schema's addresses are too long together")
	}
	u, err := url.Parse(ref)
	if err != nil {
		return "", cutURLError(err)
	}
	if res.base == nil {
		if res.base, err = url.Parse(res.address); err != nil {
			return "", cutURLError(err)
		}
	}
	if !u.IsAbs() && res.base.Opaque != "" && (u.Path != "" || u.Host != "") {
		return "", errors.New("a relative address has no meaning below an opaque one")
	}
	return res.base.ResolveReference(u).String(), nil
}

// cutURLError removes the address, which may be long, from an error of
// url.Parse.
func cutURLError(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// resolveReference returns the place that the reference in a keyword of the
// schema at p leads to.
func (c *compiler) resolveReference(p *place, keyword, ref string) (*place, error) {
	fail := func(why, hint string) (*place, error) {
		return nil, &flaw{pointer: p.buildPointer() + "/" + keyword, why: why, hint: hint}
	}
	address, fragment, _ := strings.Cut(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return fail("the reference is malformed: "+cutURLError(err).Error(), "")
	}
	res := p.res
	if address != "" {
		if address, err = c.joinAddress(p.res, address); err != nil {
			return fail("the reference is malformed: "+err.Error(), "")
		}
		res, err = c.findAddress(p, keyword, address)
		if err != nil {
			return nil, err
		}
		if res == nil {
			return fail("refers to "+clip(address)+", which is outside", errRemote.Error())
		}
	}
	if fragment != "" && fragment[0] != '/' {
		to := res.anchors[fragment]
		if to == nil {
			return fail("refers to an anchor that is absent: "+clip(ref), "")
		}
		return to, nil
	}
	to, malformed := res.root.findPath(fragment)
	switch {
	case malformed:
		return fail("the reference is malformed: ~ is followed by neither 0 nor 1", "")
	case to == nil:
		return fail("refers to something absent: "+clip(ref), "")
	}
	return to, nil
}

// findAddress returns the resource with an address: of the document itself, or
// the root of a standard document; nil if there is none.
func (c *compiler) findAddress(p *place, keyword, address string) (*resource, error) {
	if address == p.doc.address {
		return p.doc.root.res, nil
	}
	if res := p.doc.resources[address]; res != nil {
		return res, nil
	}
	doc, err := c.openStandard(trimHost(address))
	if err != nil || doc == nil {
		return nil, err
	}
	if doc.referrer == "" {
		doc.referrer = p.buildPointer() + "/" + keyword
	}
	return doc.root.res, nil
}

// openStandard returns a standard document for this compilation, or nil.
func (c *compiler) openStandard(file string) (*document, error) {
	if doc := c.standard[file]; doc != nil {
		return doc, nil
	}
	tree, err := readStandard(file)
	if err != nil || tree == nil {
		return nil, err
	}
	doc := newDocument("https://json-schema.org/"+file, tree)
	if c.standard == nil {
		c.standard = map[string]*document{}
	}
	c.standard[file] = doc
	if err := c.indexDocument(doc); err != nil {
		return nil, fmt.Errorf("standard document %s: %w", file, err)
	}
	return doc, nil
}

func newDocument(address string, tree any) *document {
	doc := &document{address: address, resources: map[string]*resource{}}
	doc.root = &place{doc: doc, value: tree}
	return doc
}

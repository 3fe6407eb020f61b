package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ParamHeader binds an argument of a tool to a header of the HTTP request that
// calls it (x-mcp-header in the tool's input schema, MCP 2026-07-28).
type ParamHeader struct {
	Path []string // of names, from the arguments inward
	Name string   // as the schema has it; a token of HTTP, without a prefix
}

// Bounds of what one tool may bind.
const (
	maxParamHeaders     = 64
	maxParamHeaderName  = 128 // bytes
	maxParamHeaderDepth = 20
)

const paramHeader = "x-mcp-header"

// ParamHeaders reads what a tool's input schema binds, in its order. The error
// says why what the schema says is not what the protocol allows: a tool that
// says it is none that a client may be shown. schema must be valid JSON; parts of
// it nested deeper than any argument of a header may be are not looked at.
func ParamHeaders(schema []byte) ([]ParamHeader, error) {
	var p paramHeaders
	if err := p.visit(schema, nil, 0, true); err != nil {
		return nil, err
	}
	return p.bound, nil
}

type paramHeaders struct{ bound []ParamHeader }

// Where the keywords of a schema have schemas of their own.
func inner(keyword string) (one, list, named bool) {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return false, false, true
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return false, true, false
	case "items":
		return true, true, false
	case "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties":
		return true, false, false
	}
	return false, false, false
}

// visit looks at one schema. There says that it is that of the argument at path,
// in whatever arguments: it was come to by properties alone.
func (p *paramHeaders) visit(schema []byte, path []string, depth int, there bool) error {
	if depth > 2*maxParamHeaderDepth || len(path) > maxParamHeaderDepth {
		return nil
	}
	ms, err := Members(schema)
	if err != nil {
		return nil // true, false, or no schema
	}
	for _, m := range ms {
		v := m.Value(schema)
		if m.Name == paramHeader {
			if err := p.annotation(schema, v, path, there); err != nil {
				return err
			}
			continue
		}
		one, list, named := inner(m.Name)
		if one && jsontext.Value(v).Kind() == '{' {
			if err := p.visit(v, path, depth+1, false); err != nil {
				return err
			}
		}
		if list {
			all, _ := Elements(v) // none, where it is no array
			for _, e := range all {
				if err := p.visit(e, path, depth+1, false); err != nil {
					return err
				}
			}
		}
		if named {
			if err := p.named(m.Name, v, path, depth, there); err != nil {
				return err
			}
		}
	}
	return nil
}

// named looks at each of the schemas that have names.
func (p *paramHeaders) named(keyword string, v []byte, path []string, depth int, there bool) error {
	ms, err := Members(v)
	if err != nil {
		return nil
	}
	for _, m := range ms {
		at := append(slices.Clone(path), m.Name)
		if err := p.visit(m.Value(v), at, depth+1, there && keyword == "properties"); err != nil {
			return err
		}
	}
	return nil
}

// annotation takes one.
func (p *paramHeaders) annotation(schema, v []byte, path []string, there bool) error {
	place := strings.Join(path, ".")
	if !there || len(path) == 0 {
		return errors.New("an " + paramHeader + " stands where no one argument is")
	}
	name, ok := Text(v)
	if !ok || !IsToken(name) || len(name) > maxParamHeaderName {
		return fmt.Errorf("the %s of %.100q is no header's name", paramHeader, place)
	}
	if kind, _ := Text(Get(schema, "type")); kind != "string" && kind != "integer" && kind != "boolean" {
		return fmt.Errorf("the argument %.100q has an %s and is no string, integer or boolean", place, paramHeader)
	}
	for _, b := range p.bound {
		if strings.EqualFold(b.Name, name) {
			return fmt.Errorf("the arguments %.100q and %.100q have one header", strings.Join(b.Path, "."), place)
		}
	}
	if len(p.bound) >= maxParamHeaders {
		return fmt.Errorf("more than %d of its arguments have headers", maxParamHeaders)
	}
	p.bound = append(p.bound, ParamHeader{path, name})
	return nil
}

// IsToken says whether a text is a token of HTTP, as the name of a header is
// (RFC 9110, section 5.6.2).
func IsToken(s string) bool {
	for i := range len(s) {
		b := s[i]
		alnum := b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", b) < 0 {
			return false
		}
	}
	return s != ""
}

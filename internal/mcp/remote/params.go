package remote

import (
	"fmt"
	"math"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// Bounds of what is kept of a server's tools.
const (
	maxTools      = 4096
	maxToolParams = 64
	maxToolName   = 1024 // bytes
	maxParamName  = 128  // bytes
	maxParamDepth = 16
)

// param is one argument that a tool wants repeated in a header.
type param struct {
	path   []string // of names, from the arguments inward
	header string   // canonical, with its prefix
}

// learn keeps which arguments the listed tools want in headers. A first page
// replaces what was known. A tool with an annotation that the protocol does
// not allow keeps none: its calls go without, and the server refuses them.
func (c *Conn) learn(params, result []byte) {
	tools, err := mcp.Elements(mcp.Get(result, "tools"))
	if err != nil {
		return
	}
	found := map[string][]param{}
	for _, t := range tools {
		name, ok := text(mcp.Get(t, "name"))
		if !ok || len(name) > maxToolName {
			continue
		}
		var ps []param
		if err := annotated(mcp.Get(t, "inputSchema"), nil, &ps); err != nil {
			c.Log.Warn("a tool's x-mcp-header is not used", "tool", c.clip(name), "why", c.said(err.Error()))
			ps = nil
		}
		found[name] = ps
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if mcp.Get(params, "cursor") == nil {
		clear(c.tools)
	}
	for name, ps := range found {
		delete(c.tools, name)
		if len(ps) > 0 && len(c.tools) < maxTools {
			c.tools[name] = ps
		}
	}
}

// annotated collects the annotations of a schema's properties, at any depth.
func annotated(schema []byte, path []string, into *[]param) error {
	props, err := mcp.Members(mcp.Get(schema, "properties"))
	if err != nil {
		return nil // no object, no properties
	}
	obj := mcp.Get(schema, "properties")
	for _, p := range props {
		at := append(path[:len(path):len(path)], p.Name)
		if len(at) > maxParamDepth {
			return nil
		}
		if err := annotation(p.Value(obj), at, into); err != nil {
			return fmt.Errorf("%q: %w", strings.Join(at, "."), err)
		}
		if err := annotated(p.Value(obj), at, into); err != nil {
			return err
		}
	}
	return nil
}

// annotation takes one property's, if it has one.
func annotation(schema []byte, path []string, into *[]param) error {
	v := mcp.Get(schema, "x-mcp-header")
	if v == nil {
		return nil
	}
	name, ok := text(v)
	if !ok || !isToken(name) || len(name) > maxParamName {
		return fmt.Errorf("it is no header's name")
	}
	if kind, _ := text(mcp.Get(schema, "type")); kind != "string" && kind != "integer" && kind != "boolean" {
		return fmt.Errorf("the argument is no string, integer or boolean")
	}
	header := textproto.CanonicalMIMEHeaderKey(headerParam + name)
	for _, p := range *into {
		if p.header == header {
			return fmt.Errorf("another argument has the same header")
		}
	}
	if len(*into) >= maxToolParams {
		return fmt.Errorf("more than %d arguments of one tool have headers", maxToolParams)
	}
	*into = append(*into, param{path, header})
	return nil
}

// params adds the headers of a call's annotated arguments. One that is absent,
// null, or nothing a header may say is left out.
func (c *Conn) params(m mcp.Message, h http.Header) error {
	name, _ := text(mcp.Get(m.Params, "name"))
	c.mu.Lock()
	ps := c.tools[name]
	c.mu.Unlock()
	if len(ps) == 0 {
		return nil
	}
	args := mcp.Get(m.Params, "arguments")
	for _, p := range ps {
		v, ok := primitive(mcp.Get(args, p.path...))
		if !ok {
			continue
		}
		if len(v) > maxParam {
			return fmt.Errorf("the argument %s is longer than the %d bytes that a header may have", c.clip(strings.Join(p.path, ".")), maxParam)
		}
		h[p.header] = []string{encode(v)}
	}
	return nil
}

// maxSafe is the largest integer that every JSON reader takes for itself.
const maxSafe = 1<<53 - 1

// primitive returns the text of a string, a boolean or a whole number.
func primitive(v []byte) (string, bool) {
	switch s := string(v); {
	case s == "true" || s == "false":
		return s, true
	case s == "" || s == "null":
		return "", false
	case s[0] == '"':
		return text(v)
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxSafe {
		return "", false
	}
	return strconv.FormatInt(int64(n), 10), true
}

package remote

import (
	"fmt"
	"math"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of what is kept of a server's tools.
const (
	maxTools    = 4096
	maxToolName = 1024 // bytes
)

// param is one argument that a tool wants repeated in a header.
type param struct {
	path   []string // of names, from the arguments inward
	header string   // canonical, with its prefix
}

// learn keeps which arguments the listed tools want in headers. A first page
// replaces what was known. A tool with an annotation that the protocol does
// not allow keeps none; the gateway leaves it out of the list.
func (c *Conn) learn(params, result []byte) {
	tools, err := mcp.Elements(mcp.Get(result, "tools"))
	if err != nil {
		return
	}
	found := map[string][]param{}
	for _, t := range tools {
		name, ok := mcp.Text(mcp.Get(t, "name"))
		if !ok || len(name) > maxToolName {
			continue
		}
		ps, err := annotated(mcp.Get(t, "inputSchema"))
		if err != nil {
			c.Log.Warn("a tool's x-mcp-header is not used", "tool", c.clip(name), "why", c.said(err.Error()))
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

// annotated are the arguments that a schema wants in headers.
func annotated(schema []byte) ([]param, error) {
	bound, err := mcp.ParamHeaders(schema)
	if err != nil {
		return nil, err
	}
	var out []param
	for _, b := range bound {
		out = append(out, param{b.Path, textproto.CanonicalMIMEHeaderKey(mcp.HeaderParam + b.Name)})
	}
	return out, nil
}

// params adds the headers of a call's annotated arguments. One that is absent,
// null, or nothing a header may say is left out.
func (c *Conn) params(m mcp.Message, h http.Header) error {
	name, _ := mcp.Text(mcp.Get(m.Params, "name"))
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
		return mcp.Text(v)
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxSafe {
		return "", false
	}
	return strconv.FormatInt(int64(n), 10), true
}

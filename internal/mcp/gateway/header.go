package gateway

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/mcp"
)

const headerPrefix = "mcp-param-"

// header binds an argument of a tool to a header of the HTTP request that calls
// it (x-mcp-header in its schema).
type header struct {
	name string // in lower case, with its prefix
	path []string
}

// Bounds of what a schema may bind.
const (
	maxHeaders     = 64
	maxHeaderDepth = 20
)

// headers reads what a tool's schema binds.
func headers(schema []byte, path []string, out []header) []header {
	if len(path) >= maxHeaderDepth || len(out) >= maxHeaders {
		return out
	}
	props := mcp.Get(schema, "properties")
	ms, _ := mcp.Members(props)
	for _, m := range ms {
		v := m.Value(props)
		if jsontext.Value(v).Kind() != '{' {
			continue
		}
		at := append(slices.Clone(path), m.Name)
		if h, ok := text(mcp.Get(v, "x-mcp-header")); ok && h != "" && len(h) <= maxWord && len(out) < maxHeaders {
			out = append(out, header{headerPrefix + strings.ToLower(h), at})
		}
		out = headers(v, at, out)
	}
	return out
}

// mismatch says where the headers of an HTTP request and the arguments that it
// carries differ, "" where they do not; nil headers are of no HTTP request. A
// proxy may have let the request pass for what its headers say.
func (t tool) mismatch(given map[string]string, args []byte) string {
	if given == nil {
		return ""
	}
	for _, h := range t.headers {
		arg, said := mcp.Get(args, h.path...), given[h.name]
		place := strings.Join(h.path, ".")
		switch {
		case arg == nil || jsontext.Value(arg).Kind() == 'n':
			if said != "" {
				return fmt.Sprintf("the header %s stands for the argument %.100q, which is missing", h.name, place)
			}
		case said == "":
			return fmt.Sprintf("the header %s for the argument %.100q is missing", h.name, place)
		case !sameValue(said, arg):
			return fmt.Sprintf("the header %s does not equal the argument %.100q", h.name, place)
		}
	}
	return ""
}

// sameValue says whether a header's text stands for a JSON string, boolean or
// integer.
func sameValue(said string, arg []byte) bool {
	if b, ok := strings.CutPrefix(said, "=?base64?"); ok {
		if b, ok = strings.CutSuffix(b, "?="); ok {
			plain, err := base64.StdEncoding.DecodeString(b)
			if err != nil {
				return false
			}
			said = string(plain)
		}
	}
	switch jsontext.Value(arg).Kind() {
	case '"':
		s, _ := text(arg)
		return s == said
	case 't', 'f':
		return said == string(arg)
	case '0':
		a, errA := strconv.ParseFloat(string(arg), 64)
		b, errB := strconv.ParseFloat(said, 64)
		const most = 1<<53 - 1 // beyond it, neighbours are one double
		return errA == nil && errB == nil && a == b && a == math.Trunc(a) && math.Abs(a) <= most
	}
	return false
}

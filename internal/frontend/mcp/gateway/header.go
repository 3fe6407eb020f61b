package gateway

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

const headerPrefix = "mcp-param-"

// header binds an argument of a tool to a header of the HTTP request that calls
// it (x-mcp-header in its schema).
type header struct {
	name string // in lower case, with its prefix
	path []string
}

// headers reads what a tool's schema binds; the error says why a tool that binds
// so may not be shown.
func headers(schema []byte) ([]header, error) {
	bound, err := mcp.ParamHeaders(schema)
	var out []header
	for _, b := range bound {
		out = append(out, header{headerPrefix + strings.ToLower(b.Name), b.Path})
	}
	return out, err
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
		s, _ := mcp.Text(arg)
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

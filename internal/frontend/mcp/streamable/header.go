package streamable

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// maxParams is how many arguments of one call may stand in headers.
const maxParams = 64

// statelessHeaders checks that the headers of a message of 2026-07-28 say what
// its body says, since whoever routes by the headers must not be told another
// story than the server. It returns those that stand for arguments, by their
// names in lower case; only the core knows which of them the tool has.
func statelessHeaders(r *http.Request, m mcp.Message) (map[string]string, error) {
	method, err := single(r, mcp.HeaderMethod)
	if err != nil {
		return nil, err
	}
	if method != m.Method {
		return nil, differs(mcp.HeaderMethod, method)
	}
	if err := namedHeader(r, m); err != nil {
		return nil, err
	}
	params := map[string]string{}
	for name, values := range r.Header {
		if !strings.HasPrefix(name, mcp.HeaderParam) {
			continue
		}
		if len(values) != 1 {
			return nil, bad(mcp.CodeHeaders, fmt.Sprintf("the header %.100s stands there more than once", name), "")
		}
		params[strings.ToLower(name)] = values[0]
	}
	if len(params) > maxParams {
		return nil, bad(mcp.CodeHeaders, fmt.Sprintf("more than %d arguments stand in headers", maxParams), "")
	}
	return params, nil
}

// differs is the answer to a header that is not what the body says.
func differs(name, value string) *httpError {
	if value == "" {
		return bad(mcp.CodeHeaders, "the header "+name+" is missing", "")
	}
	return bad(mcp.CodeHeaders, fmt.Sprintf("the header %s says %.100q and the body does not", name, value), "")
}

// namedHeader checks the header that names what a request is about.
func namedHeader(r *http.Request, m mcp.Message) error {
	member := ""
	switch m.Method {
	case "tools/call", "prompts/get":
		member = "name"
	case "resources/read":
		member = "uri"
	default:
		return nil
	}
	value, err := single(r, mcp.HeaderName)
	if err != nil {
		return err
	}
	name, ok := mcp.Text(mcp.Get(m.Params, member))
	if !ok {
		return bad(mcp.CodeBadParams, "params."+member+" is not a string", "")
	}
	if value == "" || (value != name && plain(value) != name) {
		return differs(mcp.HeaderName, value)
	}
	return nil
}

// plain returns what a header's value stands for: text that a header cannot
// carry stands in it as =?base64?...?=. What is not well formed stands for
// itself.
func plain(value string) string {
	inner, opens := strings.CutPrefix(value, "=?base64?")
	inner, closes := strings.CutSuffix(inner, "?=")
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	if !opens || !closes || err != nil {
		return value
	}
	return string(b)
}

// statelessMeta checks what a request of 2026-07-28 says of itself in place of
// a handshake, and that it is of that protocol at all.
func statelessMeta(m mcp.Message, said string) error {
	switch {
	case said == "":
		return bad(mcp.CodeBadParams, "params._meta["+mcp.MetaProtocol+"] is not a string", "")
	case said != mcp.StatelessSince:
		return differs(mcp.HeaderVersion, mcp.StatelessSince)
	case jsontext.Value(mcp.Get(m.Params, "_meta", mcp.MetaCapabilities)).Kind() != '{':
		return bad(mcp.CodeBadParams, "params._meta["+mcp.MetaCapabilities+"] is not an object", "")
	case slices.Contains(goneMethods(), m.Method):
		return &httpError{status: http.StatusNotFound, code: mcp.CodeNoMethod, why: m.Method + " left MCP with " +
			mcp.StatelessSince}
	}
	return nil
}

// goneMethods are the requests that 2026-07-28 knows no more.
func goneMethods() []string {
	return []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
}

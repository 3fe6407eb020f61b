package remote

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

const headerLastEvent = "Last-Event-Id" // in the canonical form of net/http

const (
	// maxVersion and maxSession bound what a handshake says, in bytes.
	maxVersion = 32
	maxSession = 1024
	// maxParam and maxParams bound one Mcp header's value, and all of a
	// request's together, in bytes.
	maxParam  = 8 << 10
	maxParams = 32 << 10
)

// stateless returns the protocol version that a request carries itself, or ""
// where it belongs to a handshake.
func stateless(m mcp.Message) string {
	v, ok := mcp.Text(mcp.Get(m.Params, "_meta", mcp.MetaProtocol))
	if !ok || v < mcp.StatelessSince || !isVersion(v) {
		return ""
	}
	return v
}

// isVersion says whether a protocol version can stand in a header.
func isVersion(v string) bool {
	return v != "" && len(v) <= maxVersion && strings.Trim(v, "0123456789.-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

// isSession says whether a session id is what the protocol has it be: visible
// ASCII.
func isSession(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] >= 0x7f {
			return false
		}
	}
	return id != "" && len(id) <= maxSession
}

// posted returns the headers of a POST.
func posted() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
}

// headers returns those of a message: since 2026-07-28 they say again what the
// body says, so that what stands between can read it. An error names what does
// not fit a header.
func (c *Conn) headers(m mcp.Message, version string) (http.Header, error) {
	h := posted()
	if version == "" {
		if m.Method == "initialize" {
			h[mcp.HeaderVersion], h[mcp.HeaderSession] = nil, nil
		}
		return h, nil
	}
	h[mcp.HeaderSession] = nil
	h[mcp.HeaderVersion], h[mcp.HeaderMethod] = []string{version}, []string{encode(m.Method)}
	if name, ok := named(m); ok {
		h[mcp.HeaderName] = []string{encode(name)}
	}
	if m.Method == "tools/call" {
		if err := c.params(m, h); err != nil {
			return nil, err
		}
	}
	size := 0
	for name, values := range h {
		for _, v := range values {
			if size += len(v); len(v) > maxParam || size > maxParams {
				return nil, fmt.Errorf("what the header %.60s must repeat is longer than %d bytes", name, maxParam)
			}
		}
	}
	return h, nil
}

// named returns what Mcp-Name repeats.
func named(m mcp.Message) (string, bool) {
	switch m.Method {
	case "tools/call", "prompts/get":
		return mcp.Text(mcp.Get(m.Params, "name"))
	case "resources/read":
		return mcp.Text(mcp.Get(m.Params, "uri"))
	}
	return "", false
}

const encodedStart, encodedEnd = "=?base64?", "?="

// encode returns a text as a header's value. What a header cannot hold, or what
// looks encoded already, is encoded.
func encode(s string) string {
	plain := isPlain(s) && strings.Trim(s, " \t") == s && strings.IndexByte(s, '\t') < 0 &&
		!(strings.HasPrefix(s, encodedStart) && strings.HasSuffix(s, encodedEnd))
	if plain {
		return s
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(s)) + encodedEnd
}

// isPlain says whether a text is ASCII without control characters but the tab.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] != '\t' && (s[i] < ' ' || s[i] > '~') {
			return false
		}
	}
	return true
}

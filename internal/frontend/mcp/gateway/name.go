package gateway

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxName bounds a tool's or server's name, in bytes, as MCP does.
const maxName = 128

// nameable says whether a name can become a segment of a boundary.
func nameable(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name)
}

// Boundary returns the name under which a tool of a server is crossed.
func Boundary(server, tool string) string {
	return "mcp/" + Segment(server) + "/" + Segment(tool)
}

// Segment writes a name as one segment of a boundary: letters, digits, "_",
// "-" and "." stand for themselves, every other byte is %XX, and a name of
// dots alone is encoded whole. Different names give different segments, and
// none can climb, add a segment or be read as a pattern.
func Segment(name string) string {
	dots := strings.Trim(name, ".") == ""
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && !dots:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Endpoint is the name under which what reaches no boundary of a server is
// recorded.
func Endpoint(server string) string { return "mcp/" + Segment(server) }

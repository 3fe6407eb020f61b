package format

import "strings"

// net/url is not used for these two: it brings net/netip, before which most of the
// program is initialised, and `holdfast redact` starts before that (package early).

// escapePath returns s with every byte escaped that may not be in a segment of a path,
// as url.PathEscape does.
func escapePath(s string) string { return escapeBytes(s, "$&+:=@") }

// escapeQuery returns s with every byte escaped that may not be in a query, and a space
// as +, as url.QueryEscape does.
func escapeQuery(s string) string {
	return strings.ReplaceAll(escapeBytes(s, " "), " ", "+")
}

const hexDigits = "0123456789ABCDEF"

// escapeBytes returns s with every byte escaped that is neither unreserved (RFC 3986)
// nor in kept.
func escapeBytes(s, kept string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		switch {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z',
			strings.IndexByte("-_.~", c) >= 0, strings.IndexByte(kept, c) >= 0:
			out = append(out, c)
		default:
			out = append(out, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(out)
}

package schema

import (
	"net/netip"
	"net/url"
	"strings"
)

// format is one value of the keyword "format".
type format struct {
	name    string
	accepts func(string) bool
}

// findFormat returns the format of a name, or nil for a name that says nothing
// here.
func findFormat(name string) *format {
	var accepts func(string) bool
	switch name {
	case "regex":
		accepts = isRegex
	case "json-pointer":
		accepts = isPointer
	case "relative-json-pointer":
		accepts = isRelativePointer
	case "uuid":
		accepts = isUUID
	case "semver":
		accepts = isSemanticVersion
	case "uri", "iri":
		accepts = isURI
	case "uri-reference", "iri-reference":
		accepts = isURIReference
	case "uri-template":
		accepts = isURITemplate
	case "ipv4":
		accepts = isIPv4
	case "ipv6":
		accepts = isIPv6
	case "hostname":
		accepts = isHostname
	case "email":
		accepts = isEmail
	case "date":
		accepts = isDate
	case "time":
		accepts = isTime
	case "date-time":
		accepts = isDateTime
	case "duration":
		accepts = isDuration
	case "period":
		accepts = isPeriod
	default:
		return nil
	}
	return &format{name, accepts}
}

// isRegex reports whether s is a pattern that Compile would take.
func isRegex(s string) bool { return parsePattern(s) == nil }

// isPointer reports whether s is a JSON pointer (RFC 6901).
func isPointer(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != '/' {
		return false
	}
	_, malformed := unescapeToken(s)
	return !malformed
}

// isRelativePointer reports whether s is a whole number and then a JSON
// pointer or "#" (draft-handrews-relative-json-pointer-01).
func isRelativePointer(s string) bool {
	n := countDigits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	return s[n:] == "#" || isPointer(s[n:])
}

// countDigits returns the number of decimal digits that s begins with.
func countDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func isLetterOrDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isUUID reports whether s has the textual form of RFC 4122.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isLetterOrDigit(s[i]) || s[i]|0x20 > 'f' {
				return false
			}
		}
	}
	return true
}

// isSemanticVersion reports whether s is a version of semver.org.
func isSemanticVersion(s string) bool {
	s, build, hasBuild := strings.Cut(s, "+")
	core, pre, hasPre := strings.Cut(s, "-")
	if hasBuild && !areIdentifiers(build, false) || hasPre && !areIdentifiers(pre, true) {
		return false
	}
	parts := strings.SplitN(core, ".", 4)
	for _, part := range parts {
		if countDigits(part) != len(part) || part == "" || len(part) > 1 && part[0] == '0' {
			return false
		}
	}
	return len(parts) == 3
}

// areIdentifiers reports whether s is a list of identifiers between dots. In a
// strict list a number has no leading zero.
func areIdentifiers(s string, strict bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		if id == "" || strict && len(id) > 1 && id[0] == '0' && countDigits(id) == len(id) {
			return false
		}
		for i := range len(id) {
			if !isLetterOrDigit(id[i]) && id[i] != '-' {
				return false
			}
		}
	}
	return true
}

// parseURL parses s and checks an IPv6 address in it, as net/url does not.
func parseURL(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, false
	}
	if host := u.Hostname(); strings.Contains(host, ":") && (!strings.HasPrefix(u.Host, "[") || !isIPv6(host)) {
		return nil, false
	}
	return u, true
}

// isURI reports whether s is an absolute URI.
func isURI(s string) bool {
	u, ok := parseURL(s)
	return ok && u.IsAbs()
}

// isURIReference reports whether s is a URI or a relative reference.
func isURIReference(s string) bool {
	_, ok := parseURL(s)
	return ok && !strings.Contains(s, `\`)
}

// isURITemplate reports whether s is a URI reference in whose path braces
// enclose names (RFC 6570).
func isURITemplate(s string) bool {
	u, ok := parseURL(s)
	if !ok {
		return false
	}
	for segment := range strings.SplitSeq(u.RawPath, "/") {
		segment, err := url.PathUnescape(segment)
		if err != nil {
			return false
		}
		open := false
		for i := range len(segment) {
			if c := segment[i]; c == '{' || c == '}' {
				if open == (c == '{') {
					return false
				}
				open = !open
			}
		}
		if open {
			return false
		}
	}
	return true
}

// isIPv4 reports whether s is four decimal numbers below 256 (RFC 2673).
func isIPv4(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is4()
}

// isIPv6 reports whether s is an IPv6 address without a zone (RFC 4291).
func isIPv6(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is6() && addr.Zone() == ""
}

// isHostname reports whether s is a host name (RFC 1123).
func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !isLetterOrDigit(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return true
}

// isEmail reports whether s is an address of the usual form (RFC 5321).
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if len(local) > 1 && local[0] == '"' && local[at-1] == '"' {
		if strings.ContainsAny(local[1:at-1], `\"`) {
			return false
		}
	} else if !isDotAtom(local) {
		return false
	}
	if len(domain) > 1 && domain[0] == '[' && domain[len(domain)-1] == ']' {
		literal := domain[1 : len(domain)-1]
		if address, ok := strings.CutPrefix(literal, "IPv6:"); ok {
			return isIPv6(address)
		}
		return isIPv4(literal)
	}
	return isHostname(domain)
}

// isDotAtom reports whether s is the part of an address before the @. An empty
// one passes.
func isDotAtom(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if i == 0 || i == len(s)-1 || s[i-1] == '.' {
				return false
			}
		case !isLetterOrDigit(c) && !strings.Contains("!#$%&'*+-/=?^_`{|}~", string(rune(c))):
			return false
		}
	}
	return true
}

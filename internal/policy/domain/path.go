package domain

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of a pattern, in bytes, and of a path that is compared with some, in
// components.
const (
	mostPattern = 1024
	mostParts   = 256
)

// PathPattern is a path that may be asked for, compared component by component
// after decoding (D46). The zero value matches nothing.
type PathPattern struct {
	text  string
	parts []string
	rest  bool // it ended in "**"
}

// ParsePath reads a pattern: "/" and components, of which "*" stands for
// exactly one that is not empty and "**", last only, for any number of them,
// none included. Components are written decoded, and are compared byte by byte.
// A slash at the end is part of the path. The error is a UsageError.
func ParsePath(s string) (PathPattern, error) {
	rest, ok := strings.CutPrefix(s, "/")
	if !ok {
		return PathPattern{}, badPattern(s, "does not start with a slash", "write it from the root on, like /v1/*")
	}
	if len(s) > mostPattern {
		return PathPattern{}, badPattern(s, "has more than 1024 bytes", "")
	}
	parts := strings.Split(rest, "/")
	p := PathPattern{text: s}
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			p.rest = true
			continue
		case part == "**":
			return PathPattern{}, badPattern(s, "has ** before its end", "only the last component may stand for several")
		case part == "*":
		case strings.Contains(part, "*"):
			return PathPattern{}, badPattern(s, "has a star beside other characters", "a star stands for a whole component, like /v1/*/messages")
		case strings.ContainsAny(part, "?#"):
			return PathPattern{}, badPattern(s, "holds what ends a path", "a pattern is of the path alone, without the query")
		case badPart(part, last) != "":
			return PathPattern{}, badPattern(s, badPart(part, last), "no request with such a path is ever allowed")
		}
		p.parts = append(p.parts, part)
	}
	return p, nil
}

// String is the pattern as it was written.
func (p PathPattern) String() string { return p.text }

// matches compares decoded components.
func (p PathPattern) matches(parts []string) bool {
	if p.text == "" || len(parts) < len(p.parts) || len(parts) > len(p.parts) && !p.rest {
		return false
	}
	for i, want := range p.parts {
		if want != parts[i] && (want != "*" || parts[i] == "") {
			return false
		}
	}
	return true
}

// components are the decoded components of a target's path. A path that two
// servers could take for different ones is refused: it is K2's to refuse,
// because only a row with Paths asks.
func components(target string, into []string) ([]string, *holdfast.Error) {
	path, _, _ := strings.Cut(target, "?")
	rest := strings.TrimPrefix(path, "/")
	for more := true; more; {
		var raw string
		raw, rest, more = strings.Cut(rest, "/")
		part := raw
		if strings.Contains(raw, "%") {
			part = decode(raw)
		}
		if why := badPart(part, !more); why != "" {
			return nil, blocked("the path "+quote(path)+" "+why, "ask for the plain form of the path; this domain is limited to certain paths")
		}
		if into = append(into, part); len(into) > mostParts {
			return nil, blocked("the path has more than 256 components", "this domain is limited to certain paths")
		}
	}
	return into, nil
}

// decode undoes percent escapes, which checkTarget has found whole.
func decode(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && escape(s[i:]) {
			b = append(b, byte(hexDigit(s[i+1])<<4|hexDigit(s[i+2])))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// badPart says what makes a decoded component ambiguous, "" for nothing: what
// some servers resolve, decode once more, cut off or take for a separator.
func badPart(part string, last bool) string {
	switch {
	case part == "" && !last:
		return "has an empty component"
	case part == "." || part == "..":
		return "has a component of dots"
	case strings.Contains(part, "/") || strings.Contains(part, `\`):
		return "has an encoded slash"
	case strings.Contains(part, ";"):
		return "has a parameter behind a semicolon"
	case strings.ContainsAny(part, "?#"):
		return "has an encoded end of the path"
	case !utf8.ValidString(part):
		return "has bytes that are no UTF-8"
	case controls(strings.ReplaceAll(part, " ", "")):
		return "has a control character"
	}
	for i := range len(part) {
		if escape(part[i:]) {
			return "is encoded twice"
		}
	}
	return ""
}

func badPattern(s, why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: "the path " + quote(s) + " " + why, Hint: hint}
}

// anyMatches says whether one of the patterns matches.
func anyMatches(patterns []PathPattern, parts []string) bool {
	return slices.ContainsFunc(patterns, func(p PathPattern) bool { return p.matches(parts) })
}

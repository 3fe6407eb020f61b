package goalrule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// Capability is a capability in its one form: scheme, then the parts of its
// name, in lower case (D47).
type Capability []string

// String is the form that people read, scheme:name.
func (c Capability) String() string { return strings.Join(c, ":") }

// Scheme is the first part.
func (c Capability) Scheme() string {
	if len(c) == 0 {
		return ""
	}
	return c[0]
}

// ParseCapability reads a capability: scheme:name, of letters, digits and -._/
// of ASCII after Unicode's compatibility form, in any case, with room around
// the colons. What is left that is none of them is an error: two names that
// look alike must not be two capabilities.
func ParseCapability(s string) (Capability, error) {
	names := constitution.CapabilityWords()
	var out Capability
	for part := range strings.SplitSeq(plainText(s), ":") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, errors.New("it has an empty part; a capability is scheme:name")
		}
		for _, c := range part {
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("-._/*", c)) {
				return nil, fmt.Errorf("%q is no character of a capability", excerpt.Of(string(c), 8))
			}
		}
		if other, ok := names[part]; ok {
			part = other
		}
		out = append(out, part)
	}
	if len(out) < 2 {
		return nil, errors.New("it has no name; a capability is scheme:name")
	}
	return out, nil
}

// plainText is a text as it is compared: in the compatibility form, in lower
// case, without what nobody sees.
func plainText(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf || c < ' ' }) {
		return strings.ToLower(s)
	}
	s = norm.NFKC.String(s)
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.Is(unicode.Cf, c), unicode.Is(unicode.Mn, c):
			return -1
		case unicode.IsSpace(c):
			return ' '
		}
		return unicode.ToLower(c)
	}, s)
}

// joined is a plain type without what joins its words: exfiltrate_data and
// exfiltrateData are one type.
func joined(plain string) string { return strings.ReplaceAll(plain, "_", "") }

// legible says whether a plain type is of letters and digits of ASCII. In other
// scripts, and with marks, there are letters that look like them.
func legible(plain string) bool {
	return plain != "" && !strings.ContainsFunc(plain, func(c rune) bool { return c >= utf8.RuneSelf })
}

// plainType is a goal's type as rules see it: words joined by _.
func plainType(s string) string {
	return strings.Join(strings.FieldsFunc(plainText(s), func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}), "_")
}

package review

import (
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// SaidBySelf reports whether who signed is who asked (D11): by the name in the
// statement, by the key's own name, or by the key's id.
func SaidBySelf(s *operator.Statement, key operator.Public, r *Review) bool {
	for _, who := range []string{s.Reviewer, key.Name(), key.ID()} {
		if SameName(who, r.Principal) || SameName(who, r.Agent) || SameName(who, r.Owner) {
			return true
		}
	}
	return false
}

// SameName compares two names of people or agents, however either is written.
// It keeps an honest person from a mistake; a key that has a name of its own
// keeps the others.
func SameName(a, b string) bool {
	a, b = bareName(a), bareName(b)
	return a == b && a != ""
}

// bareName is a name without what says whose kind it is, without case, and
// with nothing but its letters and digits.
func bareName(s string) string {
	s = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
	s = strings.TrimFunc(s, notOfName)
	kind, rest, found := strings.Cut(s, ":")
	if found && slices.Contains([]string{"user", "agent", "operator"}, strings.TrimFunc(kind, notOfName)) {
		return bareName(rest)
	}
	return strings.Map(func(r rune) rune {
		if notOfName(r) {
			return -1
		}
		return r
	}, s)
}

func notOfName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}

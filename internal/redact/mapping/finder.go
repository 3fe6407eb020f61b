package mapping

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// The values that are looked for everywhere, once they were found at one place.
const (
	minAgain      = 6         // bytes: a shorter one is an ordinary word too often
	maxAgain      = 512       // bytes: a longer one has a form of its own
	maxAgainCount = 4000      // of one session, the newest
	maxSetCount   = 500       // of one engine
	maxSetBytes   = 128 << 10 // of one engine
)

// newFinders returns engines that find the values among list which a name announced, in every encoding.
func newFinders(list []*entry) (made []*redact.Engine, err error) {
	var values []holdfast.Secret
	size, count := 0, 0
	flush := func() {
		if len(values) == 0 || err != nil {
			return
		}
		var e *redact.Engine
		if e, err = redact.New(redact.Options{Literals: values, OnlyRegistered: true, Passing: true}); err == nil {
			made = append(made, e)
		}
		values, size = nil, 0
	}
	for i := len(list) - 1; i >= 0 && count < maxAgainCount; i-- {
		e := list[i]
		if !e.isSought() {
			continue
		}
		if len(values) == maxSetCount || size+len(e.value) > maxSetBytes {
			flush()
		}
		values, size, count = append(values, holdfast.NewSecret(e.value)), size+len(e.value), count+1
	}
	flush()
	return made, err
}

// isSought reports whether a value is looked for everywhere: it was found by a name, not by its form, and differs
// from ordinary words. A restored one, which is in the history without its name, must differ less.
func (e *entry) isSought() bool {
	if e.oneWay || len(e.value) < minAgain || len(e.value) > maxAgain {
		return false
	}
	switch e.rule {
	case "secret.assignment", "secret.field", "secret.bearer", "secret.basic", "secret.url", "secret.connection":
	default:
		if !strings.HasSuffix(e.rule, ".field") && !strings.HasPrefix(e.rule, "detector.") {
			return false
		}
	}
	if isProse(e.rule) && strings.Contains(e.value, " ") { // another text may have it where no detector finds it
		return true
	}
	return isTelling(e.value) || e.restored && isUnusual(e.value)
}

// isUnusual reports whether a value has two kinds of characters, or is long, and is in one piece.
func isUnusual(v string) bool {
	if strings.ContainsAny(v, "\t\r\n()[]{}<>;\"`") {
		return false
	}
	first := kindOf(v[0])
	for i := range len(v) {
		if kindOf(v[i]) != first {
			return true
		}
	}
	return len(v) >= 10
}

func kindOf(c byte) int {
	switch {
	case c >= 'a' && c <= 'z':
		return 0
	case c >= 'A' && c <= 'Z':
		return 1
	case isDigit(c):
		return 2
	}
	return 3
}

// isTelling reports whether a value differs from words and code: it is in one piece, and has three kinds of
// characters, or digits and a length.
func isTelling(v string) bool {
	if strings.ContainsAny(v, " \t\r\n()[]{}<>,;\"'`") {
		return false
	}
	var n [4]int
	for i := range len(v) {
		n[kindOf(v[i])]++
	}
	kinds := 0
	for _, of := range n {
		if of > 0 {
			kinds++
		}
	}
	return len(v) >= 8 && (n[2] > 0 && (kinds >= 3 || len(v) >= 12) || kinds >= 3 && strings.ContainsAny(v,
		"!@#$%^&*?"))
}

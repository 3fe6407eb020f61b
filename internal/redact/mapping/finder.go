package mapping

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// The values that are looked for everywhere, once they were found at one place.
const (
	minAgain      = 8    // bytes: a shorter one is an ordinary word too often
	maxAgain      = 512  // bytes: a longer one has a form of its own
	maxAgainCount = 1000 // of one session, the newest
)

// newFinder returns an engine that finds the secrets among list in every encoding, nil if list has no secrets.
func newFinder(list []*entry) *redact.Engine {
	var values []holdfast.Secret
	for i := len(list) - 1; i >= 0 && len(values) < maxAgainCount; i-- {
		e := list[i]
		isNamed := strings.HasPrefix(e.rule, "secret.") || strings.HasSuffix(e.rule, ".field")
		if e.rule == "secret.again" || e.oneWay || !isNamed {
			continue
		}
		if len(e.value) < minAgain || len(e.value) > maxAgain || !isTelling(e.value) {
			continue
		}
		values = append(values, holdfast.NewSecret(e.value))
	}
	if len(values) == 0 {
		return nil
	}
	made, err := redact.New(redact.Options{Literals: values, OnlyRegistered: true})
	if err != nil {
		return nil
	}
	return made
}

// isTelling reports whether a value differs from words and code: it is in one piece, and has three kinds of
// characters, or digits and a length.
func isTelling(v string) bool {
	if strings.ContainsAny(v, " \t\r\n()[]{}<>,;\"'`") {
		return false
	}
	var lower, upper, digit, other int
	for i := range len(v) {
		switch c := v[i]; {
		case c >= 'a' && c <= 'z':
			lower++
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= '0' && c <= '9':
			digit++
		default:
			other++
		}
	}
	kinds := 0
	for _, n := range []int{lower, upper, digit, other} {
		if n > 0 {
			kinds++
		}
	}
	return digit > 0 && (kinds >= 3 || len(v) >= 12) || kinds >= 3 && strings.ContainsAny(v, "!@#$%^&*?")
}

package mapping

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// The values that are looked for everywhere, once they were found at one place.
const (
	minAgain      = 6         // bytes: a shorter one is an ordinary word too often
	minSplit      = 16        // bytes: a secret found by its form
	maxAgain      = 512       // bytes: a longer one has a form of its own
	maxAgainCount = 4000      // of one session, the newest
	maxSetCount   = 500       // of one engine
	maxSetBytes   = 128 << 10 // of one engine
)

// finder is an engine that finds some values.
type finder struct {
	values []string
	engine *redact.Engine
}

// newFinders returns engines that find the values among list that are sought, oldest first. o has their
// forms and rule; the engines in have that find the same values are used again.
func newFinders(list []*entry, o redact.Options, have []finder) (made []finder, err error) {
	list = slices.DeleteFunc(slices.Clone(list), func(e *entry) bool { return !e.isSought() })
	if over := len(list) - maxAgainCount; over > 0 {
		// Whole engines are dropped, so that the others find what they found.
		list = list[min(len(list), (over+maxSetCount-1)/maxSetCount*maxSetCount):]
	}
	o.OnlyRegistered, o.Passing, o.Masks = true, true, redact.Egress
	for len(list) > 0 {
		f, size, taken := finder{}, 0, 0
		for _, e := range list[:min(len(list), maxSetCount)] {
			if size += len(e.value); size > maxSetBytes {
				break
			}
			f.values, taken = append(f.values, e.value), taken+1
			if tail := e.withoutPrefix(); tail != "" {
				f.values, size = append(f.values, tail), size+len(tail)
			}
		}
		list = list[taken:]
		k := slices.IndexFunc(have, func(h finder) bool { return slices.Equal(h.values, f.values) })
		if k >= 0 {
			made = append(made, have[k])
			continue
		}
		o.Literals = nil
		for _, v := range f.values {
			o.Literals = append(o.Literals, holdfast.NewSecret(v))
		}
		if f.engine, err = redact.New(o); err != nil {
			return nil, err
		}
		made = append(made, f)
	}
	return made, nil
}

// listEngines returns the engines of finders.
func listEngines(list []finder) (engines []*redact.Engine) {
	for _, f := range list {
		engines = append(engines, f.engine)
	}
	return engines
}

// isSought reports whether a value is looked for everywhere: it was found by a name, not by its form, and differs
// from ordinary words. A restored one, which is in the history without its name, must differ less. A secret that was
// found by its form is sought too, since code may list its bytes or break it, unless it is short.
func (e *entry) isSought() bool {
	if e.oneWay || len(e.value) < minAgain || len(e.value) > maxAgain {
		return false
	}
	if !isNamed(e.rule) {
		if strings.HasPrefix(e.rule, "secret.") {
			return e.rule != ruleAgain && len(e.value) >= minSplit
		}
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

// isKeyLine reports whether a value is a line of a private key.
func (e *entry) isKeyLine() bool {
	return e.rule == rulePrivateKey && !strings.Contains(e.value, "-----")
}

// withoutPrefix returns what follows the prefix of a token, "" if there is no prefix or little after it.
func (e *entry) withoutPrefix() string {
	if e.kept == 0 || e.kept+minSplit > len(e.value) || e.kept > len(e.placeholder) ||
		e.value[:e.kept] != e.placeholder[:e.kept] {
		return ""
	}
	return e.value[e.kept:]
}

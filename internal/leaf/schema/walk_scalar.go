package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kinds is a set of JSON types.
type kinds uint8

// The JSON types; an integer is a number as well.
const (
	isNull kinds = 1 << iota
	isBoolean
	isNumber
	isInt
	isString
	isArray
	isObject
)

// kindNames are the names of the JSON types, in the order of their bits.
var kindNames = [...]string{"null", "boolean", "number", "integer", "string", "array", "object"}

func kindsOf(names ...string) kinds {
	var k kinds
	for _, name := range names {
		if i := slices.Index(kindNames[:], name); i >= 0 {
			k |= 1 << i
		}
	}
	return k
}

// String returns the names of the types for people.
func (k kinds) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

func (k kinds) has(v any) bool {
	switch v.(type) {
	case nil:
		return k&isNull != 0
	case bool:
		return k&isBoolean != 0
	case string:
		return k&isString != 0
	case []any:
		return k&isArray != 0
	case map[string]any:
		return k&isObject != 0
	}
	if k&isNumber != 0 || k&isInt == 0 {
		return k&isNumber != 0
	}
	d, ok := decimalOf(v)
	return ok && d.integer()
}

func (w *walk) allowed(n *node, v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		if !n.deep {
			return false
		}
	}
	c := canon(v)
	w.spend(1 + len(c)/4)
	_, ok := n.equal[c]
	return ok
}

// format checks a string against a format. The checks are linear, hence the
// bound.
func (w *walk) format(n *node, v any) bool {
	s, isString := v.(string)
	if !isString {
		return true
	}
	if len(s) > maxFormat && !w.showNames {
		return w.fail(n, "format", "%s is too long to be checked as %s", kindOf(v), n.format.name)
	}
	w.spend(1 + len(s)/16)
	if !n.format.accepts(s) {
		return w.fail(n, "format", "%s is not a valid %s", kindOf(v), n.format.name)
	}
	return true
}

// match runs a pattern whose cost is known before.
func (w *walk) match(re *pattern, s string) bool {
	cost := (len(s) + 1) * re.size
	if cost > maxMatch {
		panic(ended{fmt.Sprintf("a string of %d bytes is too long for a pattern", len(s))})
	}
	w.spend(1 + cost/16)
	return re.MatchString(s)
}

func (w *walk) str(n *node, s string) bool {
	ok := true
	if n.minLength != nil || n.maxLength != nil {
		w.spend(1 + len(s)/64)
		length := utf8.RuneCountInString(s)
		if n.minLength != nil && length < *n.minLength {
			ok = w.fail(n, "minLength", "string of %d characters, want at least %d", length, *n.minLength)
		}
		if n.maxLength != nil && length > *n.maxLength {
			ok = w.fail(n, "maxLength", "string of %d characters, want at most %d", length, *n.maxLength)
		}
	}
	if n.pattern != nil && (ok || !w.full()) && !w.match(n.pattern, s) {
		ok = w.fail(n, "pattern", "%s does not match %s", kindOf(s), strconv.Quote(clip(n.pattern.String())))
	}
	return ok
}

func (w *walk) number(n *node, v any) bool {
	if len(n.bounds) == 0 && n.multiple == nil {
		_, ok := v.(json.Number)
		if !ok {
			_, ok = decimalOf(v)
		}
		return ok || w.fail(n, "type", "not a JSON value")
	}
	d, ok := decimalOf(v)
	if !ok {
		return w.fail(n, "type", "a number that cannot be compared")
	}
	w.spend(1 + len(d.digits)/16)
	for _, b := range n.bounds {
		if !b.allows(d.compare(b.limit)) {
			ok = w.fail(n, b.keyword, "number is out of bounds, want %s", b.text)
		}
	}
	if n.multiple == nil || !ok && w.full() {
		return ok
	}
	w.spend(100 + len(d.digits))
	switch yes, known := d.multiple(n.multiple); {
	case !known:
		ok = w.fail(n, "multipleOf", "number is too long to be divided by %s", n.multipleText)
	case !yes:
		ok = w.fail(n, "multipleOf", "number is no multiple of %s", n.multipleText)
	}
	return ok
}

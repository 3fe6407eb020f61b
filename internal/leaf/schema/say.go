package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// kindOf names the type of a value and its size, which is all that a message
// may say about it.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return fmt.Sprintf("string of %d characters", utf8.RuneCountInString(v))
	case []any:
		return fmt.Sprintf("array of %d", len(v))
	case map[string]any:
		return fmt.Sprintf("object of %d members", len(v))
	}
	if d, ok := decimalOf(v); ok && d.integer() {
		return "integer"
	}
	return "number"
}

// listed writes the values that a schema allows, if they are few and short.
// They are the schema's, not the document's.
func listed(values []any) string {
	var out []string
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil || len(b) > 40 || len(out) == 8 {
			return fmt.Sprintf("one of %d values of the schema", len(values))
		}
		out = append(out, string(b))
	}
	if len(out) == 1 {
		return out[0]
	}
	return "one of " + strings.Join(out, ", ")
}

// maxName is how much of a member's name is shown.
const maxName = 64

// shownName makes a name that came with the document fit for a message.
// Words and numbers pass; what could be a key, a card, an address or a break
// of the line does not.
func shownName(name string) string {
	digits, letters := 0, 0
	for _, r := range name {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r > 0xa0 && r < 0xd800:
			letters++
		case !strings.ContainsRune("_-.$~:/()[] ", r):
			return "(name withheld)"
		}
	}
	if digits > 8 || digits > 3 && digits+letters >= 16 || credential(name) {
		return "(name withheld)"
	}
	if len(name) > maxName {
		cut := maxName
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		return name[:cut] + "..."
	}
	return name
}

// credential knows the beginnings of common keys and tokens.
func credential(s string) bool {
	for _, prefix := range []string{"sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "eyJ", "-----"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

func shownNames(names []string) string {
	var out []string
	for i, n := range names {
		if i == 5 {
			out = append(out, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		out = append(out, strconv.Quote(shownName(n)))
	}
	return strings.Join(out, ", ")
}

// clip bounds a text that came with a schema and keeps it on one line.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, s)
	return excerpt.Of(s, 300)
}

// canon writes a value so that two are equal, as JSON Schema means it, exactly
// when their texts are: numbers by value, members in order, lengths before
// contents so that nothing runs together.
func canon(v any) string { return string(appendCanon(nil, v)) }

func appendCanon(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'z')
	case bool:
		return append(strconv.AppendBool(b, v), ';')
	case string:
		b = append(strconv.AppendInt(append(b, 's'), int64(len(v)), 10), ':')
		return append(b, v...)
	case []any:
		b = append(strconv.AppendInt(append(b, 'a'), int64(len(v)), 10), ':')
		for _, e := range v {
			b = appendCanon(b, e)
		}
		return b
	case map[string]any:
		b = append(strconv.AppendInt(append(b, 'o'), int64(len(v)), 10), ':')
		for _, name := range sortedNames(v) {
			b = appendCanon(appendCanon(b, name), v[name])
		}
		return b
	}
	if d, ok := decimalOf(v); ok {
		return append(append(append(b, 'n'), d.String()...), ';')
	}
	return append(append(append(b, 'x'), fmt.Sprint(v)...), ';')
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

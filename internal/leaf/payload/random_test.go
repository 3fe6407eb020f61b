package payload

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
)

// sample is a document of about 1 KB with 20 fields.
func sample() []byte {
	b := []byte{'{'}
	for i := range 20 {
		if i > 0 {
			b = append(b, ", "...)
		}
		name := (i * 7) % 20
		switch i % 4 {
		case 0:
			b = fmt.Appendf(b, `"f%02d": "a value of ordinary length, number %d, with words in it"`, name, i)
		case 1:
			b = fmt.Appendf(b, `"f%02d": %d`, name, i*1000003)
		case 2:
			b = fmt.Appendf(b, `"f%02d": {"path": "/srv/data/file-%d.txt", "mode": 420, "tags": ["x", "y"]}`, name, i)
		case 3:
			b = fmt.Appendf(b, `"f%02d": "line one\nline \"two\" %d"`, name, i)
		}
	}
	return append(b, '}')
}

type field struct {
	name  string
	value any
}

// randomValue is a tree in which an object is a list of fields, so that it can
// be rendered in many orders.
func randomValue(r *rand.Rand, depth int) any {
	n := 7
	if depth == 0 {
		n = 5
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return randomString(r)
	case 3, 4:
		return json.Number(randomNumber(r))
	case 5:
		list := make([]any, r.IntN(5))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	seen, fields := map[string]bool{}, []field{}
	for range r.IntN(8) {
		name := randomString(r)
		if !seen[name] {
			seen[name] = true
			fields = append(fields, field{name, randomValue(r, depth-1)})
		}
	}
	return fields
}

func randomString(r *rand.Rand) string {
	ranges := [][2]rune{{0, 0x20}, {0x20, 0x7f}, {0x7f, 0x800}, {0x800, 0xd800}, {0xe000, 0x10000}, {0x10000, 0x110000}, {'a', 'e'}, {'a', 'e'}}
	s := make([]rune, r.IntN(5))
	for i := range s {
		c := ranges[r.IntN(len(ranges))]
		s[i] = c[0] + r.Int32N(c[1]-c[0])
	}
	return string(s)
}

func randomNumber(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return strconv.Itoa(r.IntN(2000) - 1000)
	case 1:
		return strconv.FormatUint(r.Uint64(), 10)
	case 2:
		return []string{"-0", "0.0", "-0.000", "1e-400", "1E+2", "0e5", "1.0", "100000000000000000000000", "5e-324", "2.5e-324"}[r.IntN(10)]
	case 3:
		return fmt.Sprintf("%d.%de%d", r.IntN(1000), r.IntN(1000000), r.IntN(40)-20)
	}
	for {
		f := math.Float64frombits(r.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		if r.IntN(2) == 0 {
			return strconv.FormatFloat(f, 'e', 16, 64)
		}
		return strconv.FormatFloat(f, 'E', -1, 64)
	}
}

// render writes v with random order, spacing and escapes; numbers keep their
// text.
func render(r *rand.Rand, v any) []byte { return appendRandom(r, nil, v) }

func appendRandom(r *rand.Rand, b []byte, v any) []byte {
	space := func() { b = append(b, []string{"", "", " ", "\n", "\t\r"}[r.IntN(5)]...) }
	space()
	switch v := v.(type) {
	case nil:
		b = append(b, "null"...)
	case bool:
		b = strconv.AppendBool(b, v)
	case string:
		b = appendEscaped(r, b, v)
	case json.Number:
		b = append(b, v...)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendRandom(r, b, e)
		}
		space()
		b = append(b, ']')
	case []field:
		b = append(b, '{')
		for i, j := range r.Perm(len(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			space()
			b = appendEscaped(r, b, v[j].name)
			space()
			b = append(b, ':')
			b = appendRandom(r, b, v[j].value)
		}
		space()
		b = append(b, '}')
	}
	space()
	return b
}

func appendEscaped(r *rand.Rand, b []byte, s string) []byte {
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c >= 0x10000 && r.IntN(2) == 0:
			c -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04X`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		case c < 0x20 || c == '"' || c == '\\' || c < 0x10000 && r.IntN(3) == 0:
			b = fmt.Appendf(b, `\u%04X`, c)
		default:
			b = append(b, string(c)...)
		}
	}
	return append(b, '"')
}

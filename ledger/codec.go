package ledger

import (
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// Limits of what is written and read back.
const (
	// MaxRecord bounds a leaf's record, in bytes.
	MaxRecord = 1 << 20
	// MaxPart bounds an erasable part with its salt, in bytes.
	MaxPart = 16 << 20
	// maxDepth bounds the nesting of an event's data, the object being 1.
	maxDepth = 20
)

// codec walks a record's fields in their one order, either writing them or
// reading them back. A format is one function that names its fields to a
// codec, so that what is written and what is accepted cannot drift apart. The
// first error stays and ends the walk.
type codec struct {
	b       []byte
	i       int  // where reading stands
	reading bool // false writes
	sep     byte // what stands before the next key
	kind    string
	err     error
}

func (c *codec) failf(key, format string, args ...any) {
	if c.err != nil {
		return
	}
	why := fmt.Sprintf(format, args...)
	if c.reading {
		why = fmt.Sprintf("%s record, %s at byte %d: %s", c.kind, key, c.i, why)
	} else {
		why = fmt.Sprintf("%s record, %s: %s", c.kind, key, why)
	}
	c.err = &holdfast.Error{Kind: holdfast.KindWALFormat, Gate: holdfast.K6, Why: why}
}

// has says whether the next thing is that key.
func (c *codec) has(key string) bool {
	end := c.i + len(key) + 4
	return c.err == nil && end <= len(c.b) && c.b[c.i] == c.sep && c.b[c.i+1] == '"' &&
		string(c.b[c.i+2:end-2]) == key && c.b[end-2] == '"' && c.b[end-1] == ':'
}

// key writes the key, or steps over it; false ends the walk.
func (c *codec) key(key string) bool {
	if c.err != nil {
		return false
	}
	if c.reading {
		if !c.has(key) {
			c.failf(key, "expected this field here, found %s", c.peek())
			return false
		}
		c.i += len(key) + 4
	} else {
		c.b = append(c.b, c.sep, '"')
		c.b = append(c.b, key...)
		c.b = append(c.b, '"', ':')
	}
	c.sep = ','
	return true
}

// opt is key for a field that is left out when it is empty.
func (c *codec) opt(key string, empty bool) bool {
	if c.reading {
		return c.has(key) && c.key(key)
	}
	return !empty && c.key(key)
}

// leftOut refuses an empty value of a field that would not have been written.
func (c *codec) leftOut(key string, empty bool) {
	if c.reading && empty {
		c.failf(key, "an empty value is left out")
	}
}

// peek quotes a few bytes of what stands next. Nothing of a value is quoted
// but its first bytes, and only of a record that was sealed by redaction.
func (c *codec) peek() string {
	if c.i >= len(c.b) {
		return "the end"
	}
	return strconv.Quote(string(c.b[c.i:min(len(c.b), c.i+24)]))
}

// lit writes fixed bytes or steps over them.
func (c *codec) lit(s string) bool {
	if c.err != nil {
		return false
	}
	if !c.reading {
		c.b = append(c.b, s...)
		return true
	}
	if !c.next(s) {
		c.failf("syntax", "expected %s, found %s", strconv.Quote(s), c.peek())
		return false
	}
	return true
}

// next steps over s if it stands next.
func (c *codec) next(s string) bool {
	if len(c.b)-c.i < len(s) || string(c.b[c.i:c.i+len(s)]) != s {
		return false
	}
	c.i += len(s)
	return true
}

func (c *codec) text(key string, v *string) {
	if c.key(key) {
		c.textValue(key, v)
	}
}

func (c *codec) optText(key string, v *string) {
	if c.opt(key, *v == "") {
		c.textValue(key, v)
		c.leftOut(key, *v == "")
	}
}

func (c *codec) textValue(key string, v *string) {
	if !c.reading {
		c.b = appendText(c.b, *v)
		return
	}
	s, n, err := parseText(c.b[c.i:])
	if err != nil {
		c.failf(key, "%v", err)
		return
	}
	c.i += n
	*v = s
}

func (c *codec) nullText(key string, v **string) {
	if c.key(key) && !c.null(*v == nil) {
		c.textValue(key, deref(c, v))
	}
}

// deref is where a nullable value stands, made when it is read.
func deref[T any](c *codec, v **T) *T {
	if c.reading {
		*v = new(T)
	}
	return *v
}

// null writes or steps over null and says whether it did.
func (c *codec) null(empty bool) bool {
	if c.reading {
		return c.next("null")
	}
	if empty {
		c.b = append(c.b, "null"...)
	}
	return empty
}

// texts is a list that is always there; nil is the empty list.
func (c *codec) texts(key string, v *[]string) {
	if c.key(key) {
		c.textsValue(key, v)
	}
}

// nullTexts is a list that is null when it was not asked.
func (c *codec) nullTexts(key string, v *[]string) {
	if c.key(key) && !c.null(*v == nil) {
		c.textsValue(key, v)
	}
}

func (c *codec) optTexts(key string, v *[]string) {
	if c.opt(key, len(*v) == 0) {
		c.textsValue(key, v)
		c.leftOut(key, len(*v) == 0)
	}
}

func (c *codec) textsValue(key string, v *[]string) {
	if !c.reading {
		c.b = append(c.b, '[')
		for i := range *v {
			if i > 0 {
				c.b = append(c.b, ',')
			}
			c.b = appendText(c.b, (*v)[i])
		}
		c.b = append(c.b, ']')
		return
	}
	*v = []string{}
	for c.more(len(*v)) {
		var s string
		c.textValue(key, &s)
		*v = append(*v, s)
	}
}

// more reads a list's brackets and commas; true means that an element follows.
func (c *codec) more(read int) bool {
	if c.err != nil {
		return false
	}
	switch {
	case read == 0 && !c.lit("["):
		return false
	case c.next("]"):
		return false
	case read > 0:
		return c.lit(",")
	}
	return true
}

// optList is a list of objects that is left out when it is empty.
func optList[T any](c *codec, key string, v *[]T, each func(*codec, *T)) {
	if !c.opt(key, len(*v) == 0) {
		return
	}
	if c.reading {
		*v = nil
		for c.more(len(*v)) {
			*v = append(*v, *new(T))
			c.object(func() { each(c, &(*v)[len(*v)-1]) })
		}
		c.leftOut(key, len(*v) == 0)
		return
	}
	c.b = append(c.b, '[')
	for i := range *v {
		if i > 0 {
			c.b = append(c.b, ',')
		}
		c.object(func() { each(c, &(*v)[i]) })
	}
	c.b = append(c.b, ']')
}

// flatList is a list of as many scalars as each walks, over and over; it is
// left out when it is empty.
func flatList[T any](c *codec, key string, v *[]T, each func(*codec, *T)) {
	if !c.opt(key, len(*v) == 0) {
		return
	}
	c.lit("[")
	for i := 0; c.err == nil; i++ {
		if c.reading && i > 0 && c.next("]") {
			return
		}
		if !c.reading && i == len(*v) {
			c.lit("]")
			return
		}
		if i > 0 {
			c.lit(",")
		}
		if c.reading {
			*v = append(*v, *new(T))
		}
		each(c, &(*v)[i])
	}
}

// maxShort is how long an exempt string may be that redaction passes unread,
// in bytes.
const maxShort = 1024

// short is a text that must come through redaction as it is.
func (c *codec) short(key string, v *string) {
	if !c.reading && len(*v) > maxShort {
		c.failf(key, "a name of more than %d bytes", maxShort)
		return
	}
	c.textValue(key, v)
	if c.reading && len(*v) > maxShort {
		c.failf(key, "a name of more than %d bytes", maxShort)
	}
}

// object walks the fields of one object; it must have at least one field that
// is always there, which comes first.
func (c *codec) object(fields func()) {
	c.sep = '{'
	fields()
	c.lit("}")
	c.sep = ','
}

func (c *codec) boolValue(key string, v *bool) {
	switch {
	case !c.reading:
		c.b = strconv.AppendBool(c.b, *v)
	case c.next("true"):
		*v = true
	case c.next("false"):
		*v = false
	default:
		c.failf(key, "expected true or false, found %s", c.peek())
	}
}

func (c *codec) nullBool(key string, v **bool) {
	if c.key(key) && !c.null(*v == nil) {
		c.boolValue(key, deref(c, v))
	}
}

func (c *codec) integer(key string, v *int64) {
	if c.key(key) {
		c.intValue(key, v)
	}
}

// optInt is a whole number that is left out where it is 0.
func (c *codec) optInt(key string, v *int64) {
	if c.opt(key, *v == 0) {
		c.intValue(key, v)
		c.leftOut(key, *v == 0)
	}
}

func (c *codec) nullInt(key string, v **int64) {
	if c.key(key) && !c.null(*v == nil) {
		c.intValue(key, deref(c, v))
	}
}

func (c *codec) intValue(key string, v *int64) {
	if !c.reading {
		c.b = strconv.AppendInt(c.b, *v, 10)
		return
	}
	n, used, ok := parseInt(c.b[c.i:])
	if !ok {
		c.failf(key, "expected a whole number of 64 bits, found %s", c.peek())
		return
	}
	c.i += used
	*v = n
}

func (c *codec) nullFloat(key string, v **float64) {
	if c.key(key) && !c.null(*v == nil) {
		c.floatValue(key, deref(c, v))
	}
}

func (c *codec) floatValue(key string, v *float64) {
	if !c.reading {
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			c.failf(key, "not a number")
			return
		}
		c.b = appendFloat(c.b, *v)
		return
	}
	f, n, ok := parseFloat(c.b[c.i:])
	if !ok {
		c.failf(key, "expected a number in its RFC 8785 form, found %s", c.peek())
		return
	}
	c.i += n
	*v = f
}

func (c *codec) time(key string, v *time.Time) {
	if c.key(key) {
		c.timeValue(key, v)
	}
}

func (c *codec) optTime(key string, v *time.Time) {
	if c.opt(key, v.IsZero()) {
		c.timeValue(key, v)
		c.leftOut(key, v.IsZero())
	}
}

func (c *codec) timeValue(key string, v *time.Time) {
	if !c.reading {
		if y := v.UTC().Year(); y < 0 || y > 9999 {
			c.failf(key, "year %d cannot be written", y)
			return
		}
		c.b = append(appendTime(append(c.b, '"'), *v), '"')
		return
	}
	end := c.i + timeLen + 2
	if end > len(c.b) || c.b[c.i] != '"' || c.b[end-1] != '"' {
		c.failf(key, "expected a time, found %s", c.peek())
		return
	}
	t, ok := parseTime(c.b[c.i+1 : end-1])
	if !ok {
		c.failf(key, "expected a time like 2006-01-02T15:04:05.000000Z, found %s", c.peek())
		return
	}
	c.i = end
	*v = t
}

// timeLen is the length of a time with microseconds, always UTC.
const timeLen = len("2006-01-02T15:04:05.000000Z")

func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	y, mo, d := t.Date()
	h, mi, s := t.Clock()
	b = appendDigits(b, y, 4)
	b = appendDigits(append(b, '-'), int(mo), 2)
	b = appendDigits(append(b, '-'), d, 2)
	b = appendDigits(append(b, 'T'), h, 2)
	b = appendDigits(append(b, ':'), mi, 2)
	b = appendDigits(append(b, ':'), s, 2)
	b = appendDigits(append(b, '.'), t.Nanosecond()/1000, 6)
	return append(b, 'Z')
}

func appendDigits(b []byte, n, width int) []byte {
	var d [8]byte
	for i := width - 1; i >= 0; i-- {
		d[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, d[:width]...)
}

// parseTime reads exactly what appendTime writes: a day that the calendar does
// not have would print as another one, and is refused.
func parseTime(b []byte) (time.Time, bool) {
	const form = "dddd-dd-ddTdd:dd:dd.ddddddZ"
	var f [7]int
	k := 0
	for i := range form {
		switch c := b[i]; {
		case form[i] != 'd' && c != form[i], form[i] == 'd' && (c < '0' || c > '9'):
			return time.Time{}, false
		case form[i] == 'd':
			f[k] = f[k]*10 + int(c-'0')
		default:
			k++
		}
	}
	t := time.Date(f[0], time.Month(f[1]), f[2], f[3], f[4], f[5], f[6]*1000, time.UTC)
	var back [timeLen]byte
	return t, string(appendTime(back[:0], t)) == string(b)
}

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string as RFC 8785 section 3.2.2.2 does. What is
// not UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, c)
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\t':
		return append(b, '\\', 't')
	case '\n':
		return append(b, '\\', 'n')
	case '\f':
		return append(b, '\\', 'f')
	case '\r':
		return append(b, '\\', 'r')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// parseText reads a string that appendText wrote and returns how many bytes
// that took.
func parseText(b []byte) (string, int, error) {
	if len(b) == 0 || b[0] != '"' {
		return "", 0, fmt.Errorf("expected a string")
	}
	var out []byte
	start := 1
	for i := 1; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			if out == nil {
				return string(b[start:i]), i + 1, nil
			}
			return string(append(out, b[start:i]...)), i + 1, nil
		case c < 0x20:
			return "", 0, fmt.Errorf("control character in a string")
		case c == '\\':
			d, n := unescape(b[i:])
			if n == 0 {
				return "", 0, fmt.Errorf("escape that is not in its RFC 8785 form")
			}
			out = append(append(out, b[start:i]...), d)
			i += n
			start = i
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return "", 0, fmt.Errorf("string is not UTF-8")
			}
			i += n
		default:
			i++
		}
	}
	return "", 0, fmt.Errorf("string without an end")
}

// unescape reads one escape; 0 means that appendEscape would not write it.
func unescape(b []byte) (byte, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\':
		return b[1], 2
	case 'b':
		return '\b', 2
	case 't':
		return '\t', 2
	case 'n':
		return '\n', 2
	case 'f':
		return '\f', 2
	case 'r':
		return '\r', 2
	case 'u':
		for c := byte(0); c < 0x20 && len(b) >= 6; c++ {
			var e [6]byte
			if string(appendEscape(e[:0], c)) == string(b[:6]) {
				return c, 6
			}
		}
	}
	return 0, 0
}

// parseInt reads a decimal without plus, leading zeros or minus zero.
func parseInt(b []byte) (v int64, used int, ok bool) {
	i := 0
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		i++
	}
	first := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		d := int64(b[i] - '0')
		// Counted downwards, because the least number has no positive twin.
		if v < (math.MinInt64+d)/10 {
			return 0, 0, false
		}
		v = v*10 - d
		i++
	}
	if i == first || b[first] == '0' && (neg || i > first+1) || !neg && v == math.MinInt64 {
		return 0, 0, false
	}
	if !neg {
		v = -v
	}
	return v, i, true
}

// appendFloat writes a number as RFC 8785 section 3.2.2.3 does.
func appendFloat(b []byte, f float64) []byte {
	if f == 0 {
		return append(b, '0')
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	// Go writes two digits of exponent, ECMAScript as few as it can.
	if n := len(b); b[n-2] == '0' && (b[n-3] == '-' || b[n-3] == '+') {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

func parseFloat(b []byte) (float64, int, bool) {
	i := 0
	for i < len(b) && (b[i] >= '0' && b[i] <= '9' || b[i] == '-' || b[i] == '+' || b[i] == '.' || b[i] == 'e') {
		i++
	}
	if i > 32 {
		return 0, 0, false
	}
	f, err := strconv.ParseFloat(string(b[:i]), 64)
	if err != nil {
		return 0, 0, false
	}
	var back [32]byte
	return f, i, string(appendFloat(back[:0], f)) == string(b[:i])
}

// day is the UTC day of t; it is written from t, and read only to be compared.
func (c *codec) day(key string, t time.Time) {
	if !c.key(key) {
		return
	}
	var buf [timeLen]byte
	want := string(appendTime(buf[:0], t)[:len("2006-01-02")])
	if !c.reading {
		c.b = append(append(append(c.b, '"'), want...), '"')
	} else if !c.next(`"` + want + `"`) {
		c.failf(key, "expected the day of created_at, found %s", c.peek())
	}
}

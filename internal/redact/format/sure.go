package format

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

const (
	// sureDepth is the deepest nesting that sureJSON follows.
	sureDepth = 64
	// sureNames is how many names of objects that are open it compares.
	sureNames = 96
)

// sureJSON says of most valid documents that they are one JSON document (RFC
// 8259), and where strict is set one without doubt (RFC 7493: UTF-8, no name
// twice). False says nothing: the caller then asks jsontext, whose word it
// spares, and which knows what is wrong. It reads no document of more than 64
// open brackets or 96 names in open objects, no name with an escape and no
// escaped surrogate.
func sureJSON(doc []byte, strict bool) bool {
	j := sure{in: doc, strict: strict}
	if !j.document() {
		return false
	}
	return !strict || !j.wide || utf8.Valid(doc)
}

// sure reads one document.
type sure struct {
	in     []byte
	i      int
	strict bool
	wide   bool // a byte beyond ASCII stands in it

	depth   int
	objects uint64 // a bit for each open bracket, the innermost the lowest
	first   [sureDepth]uint8
	count   int // of names
	names   [sureNames]sureName
}

// sureName is a member's name of an open object.
type sureName struct {
	mark       uint32 // differs only where the names do
	start, end int32
}

// document reads values and what stands between them, until nothing is open.
func (j *sure) document() bool {
	if len(j.in) > 1<<30 {
		return false
	}
	for {
		opened, ok := j.value()
		if !ok {
			return false
		}
		if opened {
			continue
		}
		more, ok := j.after()
		if !ok || !more {
			return ok && j.i == len(j.in)
		}
	}
}

// value reads a scalar, an empty object or list, or up to where the first value
// in a new object or list begins, and says of that that it opened.
func (j *sure) value() (opened, ok bool) {
	j.space()
	if j.i == len(j.in) {
		return false, false
	}
	switch c := j.in[j.i]; c {
	case '"':
		_, ok = j.text()
		return false, ok
	case '{', '[':
		return j.open(c == '{')
	case 't':
		return false, j.word("true")
	case 'f':
		return false, j.word("false")
	case 'n':
		return false, j.word("null")
	}
	return false, j.number()
}

func (j *sure) open(object bool) (opened, ok bool) {
	j.i++
	if j.depth == sureDepth {
		return false, false
	}
	j.space()
	if j.i == len(j.in) {
		return false, false
	}
	if c := j.in[j.i]; object && c == '}' || !object && c == ']' {
		j.i++
		return false, true
	}
	j.first[j.depth] = uint8(j.count)
	j.depth++
	j.objects <<= 1
	if object {
		j.objects |= 1
		return true, j.name()
	}
	return true, true
}

// after reads what follows a value, up to where the next one begins; more says
// whether there is one.
func (j *sure) after() (more, ok bool) {
	for {
		j.space()
		if j.depth == 0 {
			return false, true
		}
		if j.i == len(j.in) {
			return false, false
		}
		object := j.objects&1 != 0
		c := j.in[j.i]
		j.i++
		switch {
		case c == ',' && object:
			j.space()
			return true, j.name()
		case c == ',':
			return true, true
		case c == '}' && object, c == ']' && !object:
			j.depth--
			j.objects >>= 1
			j.count = int(j.first[j.depth])
		default:
			return false, false
		}
	}
}

// name reads a member's name and its colon. Of a strict document it must be new
// in its object.
func (j *sure) name() bool {
	if j.i == len(j.in) || j.in[j.i] != '"' {
		return false
	}
	start := j.i + 1
	escaped, ok := j.text()
	if !ok || escaped || j.strict && !j.isNew(start, j.i-1) {
		return false
	}
	j.space()
	if j.i == len(j.in) || j.in[j.i] != ':' {
		return false
	}
	j.i++
	return true
}

// isNew keeps the name that stands at [start, end).
func (j *sure) isNew(start, end int) bool {
	if j.count == sureNames {
		return false
	}
	s := j.in[start:end]
	mark := uint32(len(s))
	if len(s) > 0 {
		mark = mark<<24 | uint32(s[0])<<16 | uint32(s[len(s)/2])<<8 | uint32(s[len(s)-1])
	}
	for _, n := range j.names[j.first[j.depth-1]:j.count] {
		if n.mark == mark && string(j.in[n.start:n.end]) == string(s) {
			return false
		}
	}
	j.names[j.count] = sureName{mark, int32(start), int32(end)}
	j.count++
	return true
}

func (j *sure) space() {
	for j.i < len(j.in) && (j.in[j.i] == ' ' || j.in[j.i] == '\n' || j.in[j.i] == '\r' || j.in[j.i] == '\t') {
		j.i++
	}
}

func (j *sure) word(w string) bool {
	if len(j.in)-j.i < len(w) || string(j.in[j.i:j.i+len(w)]) != w {
		return false
	}
	j.i += len(w)
	return true
}

// The bytes of a word, each: its highest bit, one, a blank, a quote, a backslash.
const (
	eachHigh  = 0x8080808080808080
	eachOne   = 0x0101010101010101
	eachBlank = 0x2020202020202020
	eachQuote = 0x2222222222222222
	eachSlash = 0x5c5c5c5c5c5c5c5c
)

// text reads the string that begins here, and says whether it has escapes.
func (j *sure) text() (escaped, ok bool) {
	in, i := j.in, j.i+1
	for i < len(in) {
		// A subtraction sets a byte's highest bit where it is smaller than what
		// is taken from it; one too many is looked at below, for nothing.
		for i+8 <= len(in) {
			x := binary.LittleEndian.Uint64(in[i:])
			if (x|(x-eachBlank)|((x^eachQuote)-eachOne)|((x^eachSlash)-eachOne))&eachHigh != 0 {
				break
			}
			i += 8
		}
		for stop := min(i+8, len(in)); i < stop; i++ {
			switch c := in[i]; {
			case c == '"':
				j.i = i + 1
				return escaped, true
			case c == '\\':
				n := escapeLen(in[i:])
				if n == 0 {
					return false, false
				}
				escaped = true
				i += n - 1
				stop = min(i+8, len(in))
			case c < ' ':
				return false, false
			case c >= utf8.RuneSelf:
				j.wide = true
			}
		}
	}
	return false, false
}

// escapeLen is the length of the escape that s begins with; 0 where it is none,
// or half of a character.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		for _, c := range s[2:6] {
			if char.Unhex(c) > 15 {
				return 0
			}
		}
		if char.ToLower(s[2]) == 'd' && s[3] >= '8' {
			return 0
		}
		return 6
	}
	return 0
}

// number reads the number that begins here (RFC 8259, section 6).
func (j *sure) number() bool {
	if j.in[j.i] == '-' {
		j.i++
	}
	switch from := j.i; {
	case j.digits() == 0:
		return false
	case j.in[from] == '0' && j.i > from+1:
		return false
	}
	if j.i < len(j.in) && j.in[j.i] == '.' {
		if j.i++; j.digits() == 0 {
			return false
		}
	}
	if j.i < len(j.in) && char.ToLower(j.in[j.i]) == 'e' {
		if j.i++; j.i < len(j.in) && (j.in[j.i] == '+' || j.in[j.i] == '-') {
			j.i++
		}
		return j.digits() > 0
	}
	return true
}

// digits reads digits, and says how many there were.
func (j *sure) digits() int {
	from := j.i
	for j.i < len(j.in) && j.in[j.i] >= '0' && j.in[j.i] <= '9' {
		j.i++
	}
	return j.i - from
}

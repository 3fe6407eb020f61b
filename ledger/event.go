package ledger

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Event is everything that is recorded and is no crossing: trust, review,
// policy, halt and so on (D33).
type Event struct {
	ID       string
	TenantID string
	Crossing string // the crossing it belongs to, empty for none
	PartHash string // of Leaf.Part, empty without one
	// Timestamp is when it happened. Clock is the clock, where Timestamp,
	// which never goes back, lay more than a second ahead of it.
	Timestamp time.Time
	Clock     time.Time
	Name      string // key event
	Who       string
	Subject   string
	// Data is a JSON object without white space between its tokens, without
	// doubled keys, at most 20 deep; nil is left out. It is kept byte for
	// byte.
	Data json.RawMessage
}

func (r *Event) fields(c *codec) {
	c.lit(`{"v":1,"kind":"event"`)
	c.sep = ','
	c.text("id", &r.ID)
	c.text("tenant_id", &r.TenantID)
	c.optText("crossing", &r.Crossing)
	c.optText("part_hash", &r.PartHash)
	c.time("timestamp", &r.Timestamp)
	c.optTime("clock", &r.Clock)
	c.text("event", &r.Name)
	c.text("who", &r.Who)
	c.text("subject", &r.Subject)
	if c.opt("data", r.Data == nil) {
		c.raw("data", &r.Data)
	}
	c.lit("}")
}

func (r *Event) check(c *codec) {
	c.id("id", r.ID)
	c.id("tenant_id", r.TenantID)
	c.id("event", r.Name)
	if r.Crossing != "" {
		c.id("crossing", r.Crossing)
	}
	c.hash("part_hash", r.PartHash)
	c.when("timestamp", r.Timestamp)
}

// AppendJSON is Begin.AppendJSON for an event.
func (r *Event) AppendJSON(b []byte) ([]byte, error) { return write(b, "event", r.fields, r.check) }

// ParseEvent is ParseBegin for an event.
func ParseEvent(record []byte) (*Event, error) {
	r := new(Event)
	if err := read(record, "event", r.fields, r.check); err != nil {
		return nil, err
	}
	return r, nil
}

// raw copies an object as it is, after looking at every token of it.
func (c *codec) raw(key string, v *json.RawMessage) {
	s := scanner{b: c.b[c.i:]}
	if !c.reading {
		s.b = *v
	}
	if len(s.b) == 0 || s.b[0] != '{' {
		c.failf(key, "expected an object")
		return
	}
	if why := s.value(1); why != "" {
		c.i += s.i
		c.failf(key, "%s", why)
		return
	}
	if c.reading {
		*v = append(json.RawMessage(nil), s.b[:s.i]...)
		c.i += s.i
		return
	}
	if s.i != len(s.b) {
		c.failf(key, "trailing data after the object")
		return
	}
	c.b = append(c.b, s.b...)
}

// scanner steps over compact JSON and refuses everything else. Its methods
// return what is wrong, or nothing.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

func (s *scanner) take(c byte) bool {
	if s.at(c) {
		s.i++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
		s.i += len(w)
		return true
	}
	return false
}

func (s *scanner) value(depth int) string {
	switch {
	case depth > maxDepth:
		return "deeper than 20"
	case s.at('{'):
		return s.object(depth)
	case s.at('['):
		return s.array(depth)
	case s.at('"'):
		return s.text()
	case s.word("true"), s.word("false"), s.word("null"):
		return ""
	}
	return s.number()
}

func (s *scanner) object(depth int) string {
	s.i++
	if s.take('}') {
		return ""
	}
	seen := make(map[string]bool)
	for {
		start := s.i
		if why := s.text(); why != "" {
			return why
		}
		// Two spellings of one key are the same key.
		var k string
		if err := json.Unmarshal(s.b[start:s.i], &k); err != nil {
			return "a key that cannot be read"
		}
		if seen[k] {
			return "a doubled key"
		}
		seen[k] = true
		if !s.take(':') {
			return "expected a colon right after the key"
		}
		if why := s.value(depth + 1); why != "" {
			return why
		}
		if s.take('}') {
			return ""
		}
		if !s.take(',') {
			return "expected a comma or the end of the object"
		}
	}
}

func (s *scanner) array(depth int) string {
	s.i++
	if s.take(']') {
		return ""
	}
	for {
		if why := s.value(depth + 1); why != "" {
			return why
		}
		if s.take(']') {
			return ""
		}
		if !s.take(',') {
			return "expected a comma or the end of the list"
		}
	}
}

func (s *scanner) text() string {
	if !s.take('"') {
		return "expected a string"
	}
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return ""
		case c < 0x20:
			return "control character in a string"
		case c == '\\':
			if !s.escape() {
				return "unknown escape"
			}
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && n == 1 {
				return "string is not UTF-8"
			}
			s.i += n
		default:
			s.i++
		}
	}
	return "string without an end"
}

func (s *scanner) escape() bool {
	s.i++
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i++
		return true
	case 'u':
		for k := 1; k <= 4; k++ {
			if s.i+k >= len(s.b) || !isHex(s.b[s.i+k]) {
				return false
			}
		}
		s.i += 5
		return true
	}
	return false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) number() string {
	s.take('-')
	switch {
	case s.take('0'):
	case !s.digits():
		return "expected a value"
	}
	if s.take('.') && !s.digits() {
		return "a number without digits"
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return "a number without digits"
		}
	}
	return ""
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

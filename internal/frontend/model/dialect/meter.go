package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Meter reads one answer as it passes: its bytes as the provider sent them, without
// encodings and before redaction, in whatever pieces (Write); or, where somebody
// else has found them, its events (Event) or its document (Document). It never
// fails; what it cannot read it does not believe. It is for one goroutine.
type Meter struct {
	r      *Request
	bound  Bound
	status int
	form   form

	line  []byte // the line in hand, or the document
	data  []byte // the event's data so far
	has   bool   // the event in hand has data
	cr    bool   // the last byte was a CR
	big   bool   // the event or document in hand is more than is kept
	ended bool

	a       Answer
	use     used
	whole   bool // the answer's end was seen
	thought bool // thinking was seen that may not all be shown
	calls   map[string]int
	served  map[string]string // tools that the provider has run, by their calls' keys
	args    int               // bytes
	choices map[int64]bool
}

// form is how an answer comes.
type form uint8

const (
	unknownForm form = iota
	eventForm
	documentForm
)

// NewMeter returns a meter of the answer to r, which came with that status and
// Content-Type. bound is the request's.
func NewMeter(r *Request, bound Bound, status int, contentType string) *Meter {
	m := &Meter{r: r, bound: bound, status: status, calls: map[string]int{}, served: map[string]string{}, choices: map[int64]bool{},
		use: used{uses: map[string]int64{}, words: map[string]string{}}}
	kind, _, _ := strings.Cut(contentType, ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case kind == "text/event-stream":
		m.form = eventForm
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		m.form = documentForm
	}
	return m
}

// Write reads more of the answer. It returns len(p) and no error.
func (m *Meter) Write(p []byte) (int, error) {
	n := len(p)
	if m.ended {
		return n, nil
	}
	if m.form == unknownForm {
		trimmed := bytes.TrimLeft(p, " \t\r\n\ufeff")
		if len(trimmed) == 0 {
			return n, nil
		}
		if m.form = eventForm; trimmed[0] == '{' {
			m.form = documentForm
		}
	}
	if m.form == documentForm {
		if m.big = m.big || len(m.line)+len(p) > maxDocument; m.big {
			m.line = nil
			return n, nil
		}
		m.line = append(m.line, p...)
		return n, nil
	}
	for len(p) > 0 {
		p = m.lines(p)
	}
	return n, nil
}

// lines reads as far as the end of one line. Lines end in LF, CR or both.
func (m *Meter) lines(p []byte) []byte {
	if m.cr && p[0] == '\n' {
		m.cr = false
		return p[1:]
	}
	m.cr = false
	i := bytes.IndexAny(p, "\r\n")
	part := p
	if i >= 0 {
		part = p[:i]
	}
	if m.big = m.big || len(m.line)+len(m.data)+len(part) > maxEvent; !m.big {
		m.line = append(m.line, part...)
	}
	if i < 0 {
		return nil
	}
	m.cr = p[i] == '\r'
	m.field()
	return p[i+1:]
}

// field takes a whole line.
func (m *Meter) field() {
	line := m.line
	m.line = m.line[:0]
	if m.big {
		m.data = m.data[:0]
		m.a.Unread = true
		m.has = false
		if len(line) == 0 {
			m.big = false
		}
		return
	}
	if len(line) == 0 {
		m.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		m.Field(string(name))
		return
	}
	if m.has {
		m.data = append(m.data, '\n')
	}
	m.data, m.has = append(m.data, bytes.TrimPrefix(value, []byte(" "))...), true
}

// Field reads the name of a line of a stream that is no data, and says whether streams
// have it (HTML section 9.2.6): what they do not have may be anything to a client that
// knows better.
func (m *Meter) Field(name string) bool {
	switch name {
	case "", "event", "id", "retry": // "" is a comment
		return true
	}
	m.a.Unread = true
	return false
}

func (m *Meter) dispatch() {
	if m.has {
		m.Event(m.data)
	}
	m.data, m.has = m.data[:0], false
}

// Close is the end of what came, whole or not.
func (m *Meter) Close() {
	if m.ended {
		return
	}
	switch {
	case m.form == documentForm && m.big:
		m.a.Unread = true
	case m.form == documentForm:
		m.Document(m.line)
	case len(m.line) > 0 || m.has:
		m.field() // an event whose end did not come may tell its usage
		m.dispatch()
	}
	m.line, m.data, m.ended = nil, nil, true
}

// Document reads an answer that is one JSON document.
func (m *Meter) Document(doc []byte) {
	m.form = documentForm
	if len(doc) > maxDocument || !jsontext.Value(doc).IsValid() {
		m.a.Unread = true
		return
	}
	m.failure(doc)
	switch m.r.Dialect {
	case Messages:
		m.message(doc)
	case Chat, Completions:
		m.completion(doc)
	case Responses:
		m.response(doc)
	case Embeddings:
		m.embeddings(doc)
	}
}

// Event reads one event of a stream, by its data, and says what it is.
func (m *Meter) Event(data []byte) Event {
	if len(bytes.TrimSpace(data)) == 0 {
		return Other
	}
	if string(data) == "[DONE]" {
		m.completionEnd()
		return Other
	}
	var kind Event
	switch m.r.Dialect {
	case Messages:
		kind = m.messageEvent(data)
	case Chat, Completions:
		kind = m.chunk(data)
	case Responses:
		kind = m.responseEvent(data)
	default:
		kind = Unread
	}
	if kind == Unread {
		m.a.Unread = true
	}
	return kind
}

// Answer returns what was understood so far.
func (m *Meter) Answer() Answer {
	a := m.a
	a.Calls = append([]ToolCall(nil), m.a.Calls...)
	a.Usage = m.use.usage(m.r.writes == long)
	switch {
	case !m.use.there:
		a.State = Missing
	case m.use.odd || m.whole && m.use.absurd(m.bound, a.Said):
		a.State = Absurd
	case m.whole:
		a.State = Complete
	default:
		a.State = Partial
	}
	return a
}

// read reads a document of the provider's. What it repeats, in whatever letters, or is
// no JSON, is not believed: clients differ in which of two members they take, and in
// whether capitals make them two.
func read(doc []byte, into any) bool {
	return json.Unmarshal(doc, into, json.MatchCaseInsensitiveNames(true)) == nil
}

// failure reads what a document tells of an error. It may tell an answer beside it.
func (m *Meter) failure(doc []byte) {
	var f struct {
		Error jsontext.Value `json:"error"`
	}
	if read(doc, &f) && len(f.Error) > 0 && f.Error.Kind() != jsontext.KindNull {
		m.fail(f.Error)
	}
}

func (m *Meter) fail(v jsontext.Value) {
	var e struct {
		Type    jsontext.Value `json:"type"`
		Code    jsontext.Value `json:"code"`
		Message jsontext.Value `json:"message"`
	}
	if object(v) {
		_ = json.Unmarshal(v, &e)
	} else {
		e.Message = v
	}
	m.a.Failure = &Failure{Type: word(e.Type, 64), Code: word(e.Code, 64), Message: word(e.Message, maxMessage)}
}

// word is a value as a bounded text; "" for null.
func word(v jsontext.Value, most int) string {
	if len(v) == 0 || v.Kind() == jsontext.KindNull {
		return ""
	}
	if v.Kind() == jsontext.KindString {
		b, _ := jsontext.AppendUnquote(nil, v)
		return excerpt.Of(string(b), most)
	}
	return excerpt.Of(string(v), most)
}

// call returns the call of that key, which it begins where there is none; nil where
// there are too many.
func (m *Meter) call(key string) *ToolCall {
	m.a.Began = true
	if i, there := m.calls[key]; there {
		return &m.a.Calls[i]
	}
	if len(m.a.Calls) == maxCallList {
		m.a.Unread = true
		return nil
	}
	m.calls[key] = len(m.a.Calls)
	m.a.Calls = append(m.a.Calls, ToolCall{})
	return &m.a.Calls[len(m.a.Calls)-1]
}

// argue adds to a call's arguments. What comes after their end some clients take, and
// some do not.
func (m *Meter) argue(c *ToolCall, s string) {
	m.said(s)
	if c == nil {
		return
	}
	if c.Complete && s != "" {
		m.a.Unread = true
	}
	if m.args+len(s) > maxArgs {
		m.a.Unread = true
		return
	}
	m.args += len(s)
	c.Arguments += s
}

// said notes output. What comes after usage is not in it.
func (m *Meter) said(s string) {
	if s != "" {
		m.a.Began, m.whole = true, false
		m.a.Said += int64(len(s))
	}
}

// name sets the words of a call. Of a second name or id some clients make another
// call, some put it after the first, and some take the last.
func (m *Meter) name(c *ToolCall, id, name string) {
	if c == nil {
		return
	}
	if len(id) > maxName || len(name) > maxName || differs(c.ID, id) || differs(c.Name, name) {
		m.a.Unread = true
	}
	if id != "" {
		c.ID = excerpt.Of(id, maxName)
	}
	if name != "" {
		c.Name = excerpt.Of(name, maxName)
	}
}

// differs says whether two words were said, and are not one.
func differs(was, is string) bool { return was != "" && is != "" && was != is }

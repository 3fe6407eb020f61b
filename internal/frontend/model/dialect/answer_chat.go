package dialect

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// chatAnswer is an answer of /v1/chat/completions or /v1/completions, as a document
// or as one event.
type chatAnswer struct {
	Model   string         `json:"model"`
	Choices []chatChoice   `json:"choices"`
	Usage   *openaiUsage   `json:"usage"`
	Error   jsontext.Value `json:"error"`
	Tier    jsontext.Value `json:"service_tier"`
}

type chatChoice struct {
	Index   int64    `json:"index"`
	Finish  string   `json:"finish_reason"`
	Text    string   `json:"text"`
	Message chatSaid `json:"message"`
	Delta   chatSaid `json:"delta"`
}

// chatSaid is what one choice says, whole or in pieces. Other servers than OpenAI's
// own show what was thought as reasoning_content.
type chatSaid struct {
	Content   string     `json:"content"`
	Refusal   string     `json:"refusal"`
	Reasoning string     `json:"reasoning_content"`
	Calls     []chatCall `json:"tool_calls"`
	Function  *chatWords `json:"function_call"`
}

type chatCall struct {
	Index    int64      `json:"index"`
	ID       string     `json:"id"`
	Function *chatWords `json:"function"`
	Custom   *chatWords `json:"custom"`
}

type chatWords struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
}

// completion reads an answer that is one document.
func (m *Meter) completion(doc []byte) {
	var v chatAnswer
	if !read(doc, &v) {
		m.a.Unread = true
		return
	}
	m.chatModel(&v)
	for i := range v.Choices {
		for j := range v.Choices[i].Message.Calls {
			v.Choices[i].Message.Calls[j].Index = int64(j) // a document has none
		}
		m.choice(&v.Choices[i], &v.Choices[i].Message)
		m.elsewhere(&v.Choices[i].Delta)
	}
	m.use.takeOpenAI(v.Usage)
	m.whole = v.Usage != nil
	m.completionEnd()
}

// chunk reads one event.
func (m *Meter) chunk(data []byte) Event {
	var v chatAnswer
	if !read(data, &v) {
		return Unread
	}
	m.chatModel(&v)
	kind := Other
	if len(v.Error) > 0 && v.Error.Kind() != jsontext.KindNull {
		m.fail(v.Error)
		kind = Failed
	}
	for i := range v.Choices {
		k := m.choice(&v.Choices[i], &v.Choices[i].Delta)
		if m.elsewhere(&v.Choices[i].Message) {
			k = Call
		}
		if k == Call || kind == Other {
			kind = k
		}
	}
	m.use.takeOpenAI(v.Usage)
	m.completionEnd()
	if v.Usage != nil && (len(v.Choices) == 0 || m.allFinished()) {
		m.whole = true
	}
	if v.Usage != nil && len(v.Choices) == 0 && !m.r.Usage && kind == Other {
		return Unasked
	}
	return kind
}

// elsewhere says whether there are calls where an answer of its kind has none: in the
// message of an event, or the delta of a document.
func (m *Meter) elsewhere(s *chatSaid) bool {
	there := len(s.Calls) > 0 || s.Function != nil
	m.a.Unread = m.a.Unread || there
	return there
}

func (m *Meter) chatModel(v *chatAnswer) {
	if v.Model != "" {
		m.a.Model = excerpt.Of(v.Model, maxModel)
	}
	m.use.says(tierTerm, v.Tier)
}

// choice reads what one choice says.
func (m *Meter) choice(c *chatChoice, s *chatSaid) Event {
	if c.Index < 0 || len(m.choices) > maxChoices {
		m.a.Unread = true
		return Call
	}
	kind := Other
	for _, text := range []string{c.Text, s.Content, s.Refusal, s.Reasoning} {
		if text != "" {
			m.said(text)
			kind = Text
		}
	}
	if _, there := m.choices[c.Index]; !there {
		m.choices[c.Index] = false
	}
	prefix := strconv.FormatInt(c.Index, 10) + "/"
	for i := range s.Calls {
		kind = Call
		one := &s.Calls[i]
		w := one.Function
		if w == nil {
			w = one.Custom
		} else if one.Custom != nil {
			m.a.Unread = true
		}
		m.words(prefix+strconv.FormatInt(one.Index, 10), one.ID, w)
	}
	if s.Function != nil {
		kind = Call
		m.words(prefix+"function", "", s.Function)
	}
	if c.Finish != "" {
		m.choices[c.Index] = true
		if c.Index == 0 || m.a.Stop == "" {
			m.a.Stop = excerpt.Of(c.Finish, 64)
		}
	}
	return kind
}

// words adds what is said of a call.
func (m *Meter) words(key, id string, w *chatWords) {
	c := m.call(key)
	if w == nil {
		w = &chatWords{}
	}
	m.name(c, id, w.Name)
	m.argue(c, w.Arguments)
	m.argue(c, w.Input)
}

func (m *Meter) allFinished() bool {
	for _, done := range m.choices {
		if !done {
			return false
		}
	}
	return len(m.choices) > 0
}

// completionEnd is the end of all choices: their calls are whole.
func (m *Meter) completionEnd() {
	if !m.allFinished() {
		return
	}
	for i := range m.a.Calls {
		m.a.Calls[i].Complete = !m.a.Unread
	}
}

// embeddings reads an answer of /v1/embeddings.
func (m *Meter) embeddings(doc []byte) {
	var v struct {
		Model string       `json:"model"`
		Usage *openaiUsage `json:"usage"`
	}
	if !read(doc, &v) {
		m.a.Unread = true
		return
	}
	m.a.Model, m.a.Began = excerpt.Of(v.Model, maxModel), v.Usage != nil || m.a.Failure == nil
	m.use.takeOpenAI(v.Usage)
	m.whole = v.Usage != nil
}

package dialect

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// responseBody is a response, as a document or in an event.
type responseBody struct {
	Model      string           `json:"model"`
	Status     string           `json:"status"`
	Output     []jsontext.Value `json:"output"`
	Usage      *openaiUsage     `json:"usage"`
	Error      jsontext.Value   `json:"error"`
	Tier       jsontext.Value   `json:"service_tier"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// responseItem is one item of a response's output.
type responseItem struct {
	Type    string         `json:"type"`
	ID      string         `json:"id"`
	Call    string         `json:"call_id"`
	Name    string         `json:"name"`
	Action  jsontext.Value `json:"action"`
	Content []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	responseArguments
}

// responseArguments are what a call of a tool is given: of a function, or of a tool
// that takes a plain text.
type responseArguments struct {
	Arguments jsontext.Value `json:"arguments"`
	Input     jsontext.Value `json:"input"`
}

// text is the arguments, and whether there are any.
func (a responseArguments) text() (string, bool) {
	text := word(a.Arguments, maxArgs)
	if text == "" {
		text = word(a.Input, maxArgs)
	}
	return text, len(a.Arguments)+len(a.Input) > 0
}

// calls says whether an item asks for something to be done.
func (it *responseItem) calls() bool {
	_, has := it.text()
	return strings.HasSuffix(it.Type, "_call") || it.Type == "mcp_approval_request" || it.Type == "program" || has && it.Name != ""
}

// response reads an answer that is one document.
func (m *Meter) response(doc []byte) {
	var v responseBody
	if !read(doc, &v) {
		m.a.Unread = true
		return
	}
	m.responseEnd(&v, true)
}

// responseEnd reads a response that has ended. items says that its items have not
// been seen before.
func (m *Meter) responseEnd(v *responseBody, items bool) {
	m.responseModel(v)
	m.outputItems(v.Output, items)
	if len(v.Error) > 0 && v.Error.Kind() != jsontext.KindNull {
		m.fail(v.Error)
	}
	switch v.Status {
	case "completed", "incomplete", "failed", "cancelled":
		m.whole = v.Usage != nil
		if m.a.Stop = v.Status; v.Incomplete.Reason != "" {
			m.a.Stop = excerpt.Of(v.Incomplete.Reason, 64)
		}
	}
	m.use.takeOpenAI(v.Usage)
}

// outputItems reads the items that a response has. items says that they have not been
// seen before; else calls alone are read: those that only this tells, and once more
// those that were seen, which clients may take from here.
func (m *Meter) outputItems(list []jsontext.Value, items bool) {
	for i, raw := range list {
		var it responseItem
		if items || !read(raw, &it) || it.calls() {
			m.outputItem(strconv.Itoa(i), raw, true)
		}
	}
}

func (m *Meter) responseModel(v *responseBody) {
	if v.Model != "" {
		m.a.Model = excerpt.Of(v.Model, maxModel)
	}
	m.use.says(tierTerm, v.Tier)
}

// responseEvent reads one event.
func (m *Meter) responseEvent(data []byte) Event {
	var v struct {
		Type     string         `json:"type"`
		Index    int64          `json:"output_index"`
		Delta    jsontext.Value `json:"delta"`
		Response *responseBody  `json:"response"`
		Item     jsontext.Value `json:"item"`
		responseArguments
	}
	if !read(data, &v) {
		return Unread
	}
	key := strconv.FormatInt(v.Index, 10)
	switch v.Type {
	case "response.created", "response.in_progress", "response.queued":
		if v.Response == nil {
			return Other
		}
		m.responseModel(v.Response)
		if m.outputItems(v.Response.Output, false); len(m.a.Calls) > 0 {
			return Call
		}
		return Other
	case "response.completed", "response.incomplete", "response.failed":
		return m.responseLast(v.Type, v.Response)
	case "response.output_item.added", "response.output_item.done":
		return m.outputItem(key, v.Item, v.Type == "response.output_item.done")
	case "error":
		m.fail(data)
		return Failed
	}
	text := word(v.Delta, maxEvent)
	switch {
	case v.Response != nil || object(v.Item):
		return Unread
	case m.isCall(key) && strings.HasSuffix(v.Type, ".delta"):
		m.argue(m.call(key), text)
		return Call
	case m.isCall(key):
		if args, has := v.text(); has {
			m.same(m.call(key), args)
		}
		return Call
	case strings.HasSuffix(v.Type, "_arguments.delta") || strings.HasSuffix(v.Type, "_input.delta") || strings.HasSuffix(v.Type, "_arguments.done") || strings.HasSuffix(v.Type, "_input.done"):
		return Unread // of a call that did not begin
	case strings.HasSuffix(v.Type, ".delta"):
		m.said(text)
		return Text
	case strings.HasSuffix(v.Type, ".done") || strings.HasSuffix(v.Type, ".added"):
		return Text // says once more what was said
	}
	return Other
}

// responseLast reads one of the events that end a stream.
func (m *Meter) responseLast(kind string, r *responseBody) Event {
	if r == nil {
		return Unread
	}
	before := len(m.a.Calls)
	m.responseEnd(r, false)
	switch {
	case kind == "response.failed":
		if m.a.Failure == nil {
			m.a.Failure = &Failure{Type: "failed"}
		}
		return Failed
	case before > 0 || len(m.a.Calls) > before:
		return Call // it tells them all again
	}
	return Other
}

// serverItem says whether the provider does it itself.
func serverItem(kind string) bool {
	switch kind {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "program":
		return true
	}
	return false
}

// turnsPages says whether a call of web_search reads what a search has found, which is
// no search.
func turnsPages(action jsontext.Value) bool {
	var a struct {
		Type string `json:"type"`
	}
	return object(action) && read(action, &a) && (a.Type == "open_page" || a.Type == "find_in_page")
}

// outputItem reads an item of the output, as it begins or whole.
func (m *Meter) outputItem(key string, raw jsontext.Value, done bool) Event {
	var it responseItem
	if !object(raw) || !read(raw, &it) {
		m.a.Unread = true
		return Unread
	}
	m.a.Began = true
	if !it.calls() {
		if m.form == documentForm {
			for _, c := range it.Content {
				m.said(c.Text)
				m.said(c.Refusal)
			}
		}
		return Text
	}
	if m.serve(key, strings.TrimSuffix(it.Type, "_call")); turnsPages(it.Action) {
		delete(m.served, key)
	}
	c := m.call(key)
	if c == nil {
		return Call
	}
	id, name := it.Call, it.Name
	if id == "" {
		id = it.ID
	}
	if name == "" {
		name = strings.TrimSuffix(it.Type, "_call")
	}
	m.name(c, id, name)
	if c.Server = serverItem(it.Type); !done {
		return Call
	}
	args, has := it.text()
	if !has {
		args = string(raw) // its own members say what it is to do
	}
	if has || c.Complete && !c.Server {
		m.same(c, args)
	}
	m.args -= len(c.Arguments)
	m.a.Said -= int64(len(c.Arguments))
	c.Arguments, c.Complete = "", false
	m.argue(c, args)
	c.Complete = c.Arguments == args
	return Call
}

// same notes where a call's arguments are told once more, and otherwise: clients take
// the one or the other.
func (m *Meter) same(c *ToolCall, args string) {
	if c != nil && c.Arguments != "" && c.Arguments != args {
		m.a.Unread = true
	}
}

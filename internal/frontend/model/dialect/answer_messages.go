package dialect

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// anthropicMessage is a message, as a document or as message_start tells it.
type anthropicMessage struct {
	Model   string           `json:"model"`
	Content []anthropicBlock `json:"content"`
	Stop    string           `json:"stop_reason"`
	Usage   *anthropicUsage  `json:"usage"`
}

// anthropicBlock is a block of content, whole or as it begins.
type anthropicBlock struct {
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	Thinking string         `json:"thinking"`
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Input    jsontext.Value `json:"input"`
}

// message reads an answer that is one document.
func (m *Meter) message(doc []byte) {
	var v anthropicMessage
	if !read(doc, &v) {
		m.a.Unread = true
		return
	}
	m.a.Model, m.a.Stop = excerpt.Of(v.Model, maxModel), excerpt.Of(v.Stop, 64)
	m.messageBlocks("", v.Content)
	m.use.takeAnthropic(v.Usage)
	m.whole = v.Usage != nil && v.Stop != ""
}

// messageBlocks notes blocks that are whole, and says whether one calls a tool.
func (m *Meter) messageBlocks(prefix string, list []anthropicBlock) (calls bool) {
	for i := range list {
		c, isCall := m.messageBlock(prefix+strconv.Itoa(i), &list[i])
		if !isCall {
			continue
		}
		calls = true
		m.argue(c, string(list[i].Input))
		if c != nil {
			c.Complete = !m.a.Unread
		}
	}
	return calls
}

// messageBlock notes a block and says whether it calls a tool.
func (m *Meter) messageBlock(key string, b *anthropicBlock) (c *ToolCall, isCall bool) {
	m.said(b.Text)
	m.said(b.Thinking)
	if strings.Contains(b.Type, "thinking") {
		m.thought = true
	}
	server := strings.HasSuffix(b.Type, "_tool_use")
	if b.Type != "tool_use" && !server && (b.Name == "" || !object(b.Input)) {
		return nil, false
	}
	if b.Type != "tool_use" {
		m.serve(key, excerpt.Of(b.Name, maxName))
	}
	if c = m.call(key); c != nil {
		m.name(c, b.ID, b.Name)
		c.Server = server
	}
	return c, true
}

// anthropicDelta is what an event adds to a block, or to the message.
type anthropicDelta struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
	Partial  string `json:"partial_json"`
	Content  string `json:"content"`
	Stop     string `json:"stop_reason"`
}

// messageEvent reads one event.
func (m *Meter) messageEvent(data []byte) Event {
	var v struct {
		Type    string            `json:"type"`
		Index   int64             `json:"index"`
		Message *anthropicMessage `json:"message"`
		Block   *anthropicBlock   `json:"content_block"`
		Delta   anthropicDelta    `json:"delta"`
		Usage   *anthropicUsage   `json:"usage"`
		Error   jsontext.Value    `json:"error"`
	}
	if !read(data, &v) {
		return Unread
	}
	key := strconv.FormatInt(v.Index, 10)
	switch v.Type {
	case "message_start":
		m.a.Began = true
		if v.Message == nil {
			return Unread
		}
		m.a.Model = excerpt.Of(v.Message.Model, maxModel)
		m.use.takeAnthropic(v.Message.Usage)
		if m.messageBlocks("start/", v.Message.Content) {
			return Call // clients add what follows to it
		}
	case "content_block_start":
		return m.blockBegins(key, v.Block)
	case "content_block_delta":
		return m.blockGoesOn(key, &v.Delta)
	case "content_block_stop":
		return m.blockEnds(key)
	case "message_delta":
		m.use.takeAnthropic(v.Usage)
		if v.Delta.Stop != "" {
			m.a.Stop = excerpt.Of(v.Delta.Stop, 64)
			m.whole = m.whole || v.Usage != nil && v.Usage.Output.there
		}
	case "error":
		m.fail(v.Error)
		return Failed
	default:
		if v.Block != nil || v.Message != nil || v.Delta.Partial != "" {
			return Unread
		}
	}
	return Other
}

func (m *Meter) blockBegins(key string, b *anthropicBlock) Event {
	if b == nil {
		return Unread
	}
	if m.a.Began = true; m.isCall(key) {
		return Unread // a block that was there already
	}
	c, isCall := m.messageBlock(key, b)
	if !isCall {
		return Text
	}
	if in := string(b.Input); in != "" && in != "{}" && in != "null" {
		m.argue(c, in)
	}
	return Call
}

func (m *Meter) blockGoesOn(key string, d *anthropicDelta) Event {
	for _, s := range []string{d.Text, d.Thinking, d.Content} {
		m.said(s)
	}
	if d.Type == "thinking_delta" {
		m.thought = true
	}
	if d.Type != "input_json_delta" && d.Partial == "" {
		return Text
	}
	if !m.isCall(key) || d.Type != "input_json_delta" {
		return Unread
	}
	m.argue(m.call(key), d.Partial)
	return Call
}

func (m *Meter) blockEnds(key string) Event {
	if !m.isCall(key) {
		return Other
	}
	if c := m.call(key); c.Arguments == "" {
		c.Arguments, c.Complete = "{}", true
	} else {
		c.Complete = jsontext.Value(c.Arguments).IsValid()
	}
	return Call
}

func (m *Meter) isCall(key string) bool { _, is := m.calls[key]; return is }

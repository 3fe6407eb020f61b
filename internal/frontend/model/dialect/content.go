package dialect

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// tally is what content holds beside text. What stands where the provider reads no
// content stays text, whatever it says of itself: its tally is dropped.
type tally struct {
	media                    int64 // bytes
	images, documents, audio int
	files                    int // documents that the body does not bound
	wide                     []string
}

func (t *tally) add(o tally) {
	t.media += o.media
	t.images += o.images
	t.documents += o.documents
	t.files += o.files
	t.audio += o.audio
	for _, w := range o.wide {
		t.beyond(w)
	}
}

// beyond notes something that stands elsewhere.
func (t *tally) beyond(name string) {
	for _, have := range t.wide {
		if have == name {
			return
		}
	}
	if len(t.wide) <= maxUnseen {
		t.wide = append(t.wide, name)
	}
}

// count takes a tally of content that the provider reads.
func (p *parser) count(t tally) error {
	p.media += t.media
	p.r.Images += t.images
	p.r.Documents += t.documents
	p.r.files += t.files
	p.r.Audio += t.audio
	if t.audio > 0 {
		if err := p.unseen(Dearer, "audio", 0); err != nil {
			return err
		}
	}
	for _, w := range t.wide {
		if err := p.unseen(Wide, w, 0); err != nil {
			return err
		}
	}
	return nil
}

// content reads a text, or a list of parts; what is neither has a size only.
func (p *parser) content(part func() (tally, error)) (t tally, size int64, err error) {
	if !p.w.is(jsontext.KindBeginArray) {
		size, err = p.w.size()
		return t, size, err
	}
	before := p.w.d.InputOffset()
	err = p.w.list(func() error {
		if !p.w.is(jsontext.KindBeginObject) {
			return p.w.skip()
		}
		one, err := part()
		t.add(one)
		return err
	})
	return t, p.w.d.InputOffset() - before, err
}

// source is where a block's data is.
type source struct {
	kind  string
	data  int64 // bytes
	inner tally
}

func (p *parser) source() (s source, err error) {
	if !p.w.is(jsontext.KindBeginObject) {
		return s, p.w.skip() // a search result's source is a text
	}
	err = p.w.object(func(name string) (err error) {
		switch name {
		case "type":
			s.kind, err = p.w.short()
		case "data":
			s.data, err = p.w.size()
		case "content":
			s.inner, _, err = p.content(p.block)
		default:
			err = p.w.skip()
		}
		return err
	})
	return s, err
}

// block is one block of Anthropic's content.
type block struct {
	kind, id, name, use string
	bad                 bool
	from                source
	inner               tally
	size                int64
}

func (p *parser) block() (tally, error) {
	var b block
	err := p.w.object(func(name string) (err error) {
		switch name {
		case "type":
			b.kind, err = p.w.short()
		case "id":
			b.id, err = p.w.short()
		case "name":
			b.name, err = p.w.short()
		case "tool_use_id":
			b.use, err = p.w.short()
		case "is_error":
			b.bad, _, err = p.w.yes()
		case "source":
			b.from, err = p.source()
		case "content":
			b.inner, b.size, err = p.content(p.block)
		case "tool":
			err = p.addition()
		case "cache_control":
			err = p.caching()
		default:
			err = p.w.skip()
		}
		return err
	})
	if err != nil {
		return tally{}, err
	}
	return p.blockTally(b)
}

func (p *parser) blockTally(b block) (t tally, err error) {
	switch b.kind {
	case "text", "thinking", "redacted_thinking", "search_result", "compaction", "fallback", "tool_addition", "tool_removal", "tool_reference", "mcp_tool_listing":
	case "image":
		t.images = 1
		if b.from.kind == "base64" {
			t.media = b.from.data
		}
	case "document":
		t.documents = 1
		switch b.from.kind {
		case "text":
		case "content":
			t.add(b.from.inner)
		default:
			t.files = 1
			t.beyond(unseenDocument)
			if b.from.kind == "base64" {
				t.media = b.from.data
			}
		}
	case "tool_use":
		p.called(b.id, b.name)
	case "tool_result":
		t = b.inner
		err = p.result(ToolResult{ID: b.use, Error: b.bad, Bytes: b.size})
	default:
		if !strings.HasSuffix(b.kind, "_tool_use") && !strings.HasSuffix(b.kind, "_tool_result") {
			t.beyond("block " + b.kind)
		}
	}
	return t, err
}

// addition reads the tool of a tool_addition: a reference to one, or one.
func (p *parser) addition() error {
	if !p.w.is(jsontext.KindBeginObject) {
		return p.w.skip()
	}
	var kind string
	d, err := p.definition(&kind)
	if err != nil || kind == "tool_reference" {
		return err
	}
	return p.defined(d)
}

// medium is the data that a part may hold.
type medium struct {
	url, file int64 // bytes; of a URL only where it holds the data itself
}

// part is one part of OpenAI's content: of a chat message or of a response's item.
func (p *parser) part() (t tally, err error) {
	var kind string
	var m medium
	err = p.w.object(func(name string) (err error) {
		switch {
		case name == "type":
			kind, err = p.w.short()
		case (name == "image_url" || name == "file") && p.w.is(jsontext.KindBeginObject):
			err = p.w.object(func(name string) error { return p.medium(name, &m) })
		default:
			err = p.medium(name, &m)
		}
		return err
	})
	if err != nil {
		return t, err
	}
	switch kind {
	case "text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text", "encrypted_content":
	case "image_url", "input_image", "computer_screenshot":
		t.images, t.media = 1, m.url
	case "input_audio":
		t.audio = 1 // its bytes count as text: a second of it is more bytes than tokens
	case "file", "input_file":
		t.documents, t.media = 1, m.file
		t.files = 1
		t.beyond(unseenFile)
	default:
		t.beyond("part " + kind)
	}
	return t, nil
}

// medium reads a member of a part that may hold its data.
func (p *parser) medium(name string, m *medium) (err error) {
	switch name {
	case "url", "image_url":
		if !p.w.is(jsontext.KindString) {
			return p.w.skip()
		}
		v, err := p.w.value(jsontext.KindString, "a string")
		if err == nil && strings.HasPrefix(string(v[:min(len(v), 6)]), `"data:`) {
			m.url = int64(len(v))
		}
		return err
	case "file_data":
		m.file, err = p.w.size()
		return err
	}
	return p.w.skip()
}

// caching reads how long what stands before is to be kept in the provider's cache.
func (p *parser) caching() error {
	if p.w.null() {
		return nil
	}
	p.r.writes = max(p.r.writes, brief)
	return p.w.object(func(name string) error {
		if name != "ttl" {
			return p.w.skip()
		}
		ttl, err := p.w.short()
		if ttl != "" && ttl != "5m" && ttl != "30m" {
			p.r.writes = long
		}
		return err
	})
}

// openaiWrites says what OpenAI may write into its cache and charge: models before
// GPT-5.6 write for nothing.
func openaiWrites(model string) writes {
	for _, old := range []string{"gpt-3", "gpt-4", "gpt-5-", "gpt-5.1", "gpt-5.2", "gpt-5.3", "gpt-5.4", "gpt-5.5", "o1", "o3", "o4", "chatgpt-4", "codex-", "ft:gpt-3", "ft:gpt-4"} {
		if strings.HasPrefix(model, old) {
			return none
		}
	}
	if model == "gpt-5" {
		return none
	}
	return brief
}

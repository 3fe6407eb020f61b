package dialect

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// common reads the members that requests to OpenAI share. known is false where it
// is none of them, and nothing was read.
func (p *parser) common(name string) (known bool, err error) {
	w, r := p.w, p.r
	switch name {
	case "model":
		if r.Model, err = w.short(); err == nil && (strings.Contains(r.Model, "-search-") || strings.Contains(r.Model, "deep-research")) {
			p.serve("web_search", 0)
			err = p.unseen(Loop, "model "+r.Model, 0)
		}
	case "stream":
		r.Stream, _, err = w.yes()
	case "service_tier":
		r.tiered, err = p.tier(name, "default", "flex")
	case "stream_options":
		err = p.streamOptions()
	case "prompt_cache_options":
		err = p.caching()
	default:
		return false, nil
	}
	return true, err
}

func (p *parser) streamOptions() error {
	e := &p.r.edits
	if p.w.is(jsontext.KindNull) {
		_, at, err := p.w.yes()
		e.options = at
		return err
	}
	members := 0
	err := p.w.object(func(name string) (err error) {
		members++
		if name != "include_usage" {
			return p.w.skip()
		}
		var at span
		if p.r.Usage, at, err = p.w.yes(); !p.r.Usage {
			e.usage = at
		}
		return err
	})
	e.within, e.empty = p.w.d.InputOffset()-1, members == 0
	return err
}

// chatMember reads a member of a request to /v1/chat/completions.
func (p *parser) chatMember(name string) (err error) {
	if known, err := p.common(name); known {
		return err
	}
	switch name {
	case "max_tokens", "max_completion_tokens":
		return p.cap(name)
	case "n":
		return p.choices(name)
	case "messages":
		return p.w.list(p.chatMessage)
	case "tools":
		return p.each(p.openaiTool)
	case "functions":
		return p.each(func() error {
			d, err := p.definition(nil)
			if err != nil {
				return err
			}
			return p.tool(d.name)
		})
	case "web_search_options":
		if p.w.null() {
			return nil
		}
		if err := p.w.skip(); err != nil {
			return err
		}
		p.serve("web_search", 0)
		return p.unseen(Loop, name, 0)
	case "prediction":
		p.r.predicted, err = p.w.size()
	case "modalities":
		return p.each(func() error { _, err := p.tier(name, "text"); return err })
	case "reasoning_effort":
		return p.effort()
	default:
		return p.w.skip()
	}
	return err
}

// effort reads how much is thought: what the body does not say may be any.
func (p *parser) effort() error {
	word, err := p.w.short()
	p.quiet = word == "none"
	return err
}

// choices reads how many answers are asked.
func (p *parser) choices(name string) error {
	n, _, ok, err := p.w.whole(name)
	if err != nil || !ok {
		return err
	}
	if n < 1 || n > maxChoices {
		return bad(fmt.Sprintf("%s is not between 1 and %d", name, maxChoices), "ask for fewer answers at once")
	}
	p.r.Choices = max(p.r.Choices, n)
	return nil
}

func (p *parser) chatMessage() error {
	var role, call, fn string
	var t tally
	var size int64
	err := p.w.object(func(name string) (err error) {
		switch name {
		case "role":
			role, err = p.w.short()
		case "tool_call_id":
			call, err = p.w.short()
		case "name":
			fn, err = p.w.short()
		case "content":
			t, size, err = p.content(p.part)
		case "tool_calls":
			err = p.each(p.chatCall)
		case "audio":
			err = p.nonempty(Wide, name)
		default:
			err = p.w.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if role == "tool" || role == "function" {
		if role == "tool" {
			fn = ""
		}
		if err := p.result(ToolResult{ID: call, Name: fn, Bytes: size}); err != nil {
			return err
		}
	}
	p.turn(role == "assistant")
	return p.count(t)
}

// chatCall reads a call that the model made before.
func (p *parser) chatCall() error {
	var id, fn string
	err := p.w.object(func(name string) (err error) {
		switch name {
		case "id":
			id, err = p.w.short()
		case "function", "custom":
			fn, err = p.nameIn()
		default:
			err = p.w.skip()
		}
		return err
	})
	p.called(id, fn)
	return err
}

// nameIn reads the name that an object has.
func (p *parser) nameIn() (s string, err error) {
	if !p.w.is(jsontext.KindBeginObject) {
		return "", p.w.skip()
	}
	err = p.w.object(func(name string) (err error) {
		if name != "name" {
			return p.w.skip()
		}
		s, err = p.w.short()
		return err
	})
	return s, err
}

// openaiTool reads a tool of a chat request, or of a response's.
func (p *parser) openaiTool() error {
	var kind, fn, where string
	before := len(p.r.Tools)
	err := p.w.object(func(name string) (err error) {
		switch name {
		case "type":
			kind, err = p.w.short()
		case "name":
			fn, err = p.w.short()
		case "function", "custom":
			fn, err = p.nameIn()
		case "tools":
			err = p.each(p.openaiTool) // of a namespace
		case "execution":
			where, err = p.w.short()
		case "environment":
			where, err = p.kindIn()
		default:
			err = p.w.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if fn == "" {
		fn = kind
	}
	if kind != "namespace" || len(p.r.Tools) == before {
		if err := p.tool(fn); err != nil {
			return err
		}
	}
	switch kind {
	case "function", "custom", "namespace", "":
		return nil
	case "computer", "computer_use_preview", "local_shell", "apply_patch":
		p.r.typed++
		return nil
	case "shell":
		if p.r.typed++; where == "local" {
			return nil
		}
	case "tool_search":
		if p.r.typed++; where == "client" {
			return nil
		}
	default:
		p.r.typed++
	}
	p.serve(kind, 0)
	return p.unseen(Loop, kind, 0)
}

// kindIn reads the type that an object has.
func (p *parser) kindIn() (s string, err error) {
	if !p.w.is(jsontext.KindBeginObject) {
		return "", p.w.skip()
	}
	err = p.w.object(func(name string) (err error) {
		if name != "type" {
			return p.w.skip()
		}
		s, err = p.w.short()
		return err
	})
	return s, err
}

// completionsMember reads a member of a request to /v1/completions.
func (p *parser) completionsMember(name string) error {
	if known, err := p.common(name); known {
		return err
	}
	switch name {
	case "max_tokens":
		return p.cap(name)
	case "n", "best_of":
		return p.choices(name)
	case "prompt":
		n, err := p.texts()
		p.r.edits.prompts = n
		return err
	}
	return p.w.skip()
}

// embeddingsMember reads a member of a request to /v1/embeddings.
func (p *parser) embeddingsMember(name string) error {
	switch name {
	case "model":
		var err error
		p.r.Model, err = p.w.short()
		return err
	case "input":
		_, err := p.texts()
		return err
	}
	return p.w.skip()
}

// texts reads a text, a list of texts, a list of tokens or a list of those, and says
// how many texts that is. A token that stands as a number is no fewer bytes.
func (p *parser) texts() (int64, error) {
	if !p.w.is(jsontext.KindBeginArray) {
		return 1, p.w.skip()
	}
	texts := int64(0)
	err := p.w.list(func() error {
		switch {
		case p.w.is(jsontext.KindNumber):
			texts = max(texts, 1)
			return p.w.skip()
		case p.w.is(jsontext.KindBeginArray):
			texts++
			return p.w.list(p.w.skip)
		}
		texts++
		return p.w.skip()
	})
	return texts, err
}

package dialect

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// messagesMember reads a member of a request to /v1/messages.
func (p *parser) messagesMember(name string) (err error) {
	w, r := p.w, p.r
	switch name {
	case "model":
		r.Model, err = w.short()
	case "max_tokens":
		return p.cap(name)
	case "stream":
		r.Stream, _, err = w.yes()
	case "messages":
		return w.list(p.message)
	case "system":
		var t tally
		if t, _, err = p.content(p.block); err == nil {
			err = p.count(t)
		}
	case "tools":
		return p.each(func() error {
			d, err := p.definition(nil)
			if err != nil {
				return err
			}
			return p.defined(d)
		})
	case "thinking":
		return p.thinking()
	case "output_format", "output_config":
		r.formed = true
		return w.skip()
	case "service_tier":
		r.tiered, err = p.tier(name, "standard_only")
	case speedTerm:
		_, err = p.tier(name, "standard")
	case placeTerm:
		r.placed, err = p.tier(name, "global")
	case "fallbacks":
		return p.fallbacks()
	case "mcp_servers", "container", "compaction":
		return p.nonempty(Loop, name)
	case "context_management":
		return p.management()
	case "cache_control":
		return p.caching()
	default:
		return w.skip()
	}
	return err
}

// each reads a list, or a null.
func (p *parser) each(one func() error) error {
	if p.w.null() {
		return nil
	}
	return p.w.list(one)
}

// cap reads the most output.
func (p *parser) cap(name string) error {
	n, at, ok, err := p.w.whole(name)
	if err != nil {
		return err
	}
	if !ok {
		if name == p.r.Dialect.capMember() {
			p.r.edits.cap = at
		}
		return nil
	}
	p.r.Capped, p.r.MaxOutput = true, max(n, p.r.MaxOutput)
	return nil
}

// tier reads a word that stands for another price, but for those that do not. named is
// false where it leaves the price to the provider.
func (p *parser) tier(name string, plain ...string) (named bool, err error) {
	word, err := p.w.short()
	if err != nil || word == "" || word == "auto" {
		return false, err
	}
	for _, w := range plain {
		if w == word {
			return true, nil
		}
	}
	return true, p.unseen(Dearer, name+"="+word, 0)
}

// nonempty notes what is neither null nor empty.
func (p *parser) nonempty(k UnseenKind, name string) error {
	any, err := p.w.nonempty()
	if err != nil || !any {
		return err
	}
	return p.unseen(k, name, 0)
}

func (p *parser) message() error {
	var role string
	var t tally
	err := p.w.object(func(name string) (err error) {
		switch name {
		case "role":
			role, err = p.w.short()
		case "content":
			t, _, err = p.content(p.block)
		default:
			err = p.w.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	p.turn(role == "assistant")
	return p.count(t)
}

func (p *parser) thinking() error {
	if p.w.null() {
		return nil
	}
	kind := ""
	err := p.w.object(func(name string) (err error) {
		if name != "type" {
			return p.w.skip()
		}
		kind, err = p.w.short()
		return err
	})
	p.r.Thinks = kind != "disabled"
	return err
}

// fallbacks reads the models that may answer where the first will not.
func (p *parser) fallbacks() error {
	if p.w.null() {
		return nil
	}
	if !p.w.is(jsontext.KindBeginArray) {
		if err := p.w.skip(); err != nil {
			return err
		}
		return p.unseen(Beyond, "fallbacks", 0)
	}
	n := int64(0)
	err := p.w.list(func() error {
		n++
		return p.w.object(func(name string) error {
			if name != "model" {
				return p.w.skip()
			}
			m, err := p.w.short()
			if err != nil {
				return err
			}
			return p.other(m)
		})
	})
	if err != nil || n == 0 {
		return err
	}
	return p.unseen(Loop, "fallbacks", n)
}

// management reads what is done with the context: what compacts it asks a model.
func (p *parser) management() error {
	if p.w.null() {
		return nil
	}
	return p.w.object(func(name string) error {
		if name != "edits" {
			return p.w.skip()
		}
		return p.each(func() error {
			return p.w.object(func(name string) error {
				if name != "type" {
					return p.w.skip()
				}
				kind, err := p.w.short()
				if err != nil || strings.HasPrefix(kind, "clear_") {
					return err
				}
				return p.unseen(Loop, kind, 1)
			})
		})
	})
}

// definition is a tool as a request defines it.
type definition struct {
	kind, name, model string
	calls             int64
}

// definition reads a tool. kind, where there is one, gets what sort it is.
func (p *parser) definition(kind *string) (d definition, err error) {
	err = p.w.object(func(name string) (err error) {
		switch name {
		case "type":
			d.kind, err = p.w.short()
		case "name":
			d.name, err = p.w.short()
		case "model":
			d.model, err = p.w.short()
		case "max_uses":
			d.calls, _, _, err = p.w.whole(name)
		case "cache_control":
			err = p.caching()
		default:
			err = p.w.skip()
		}
		return err
	})
	if kind != nil {
		*kind = d.kind
	}
	return d, err
}

// defined notes a tool of Anthropic's.
func (p *parser) defined(d definition) error {
	name := d.name
	if name == "" {
		name = d.kind
	}
	if err := p.tool(name); err != nil {
		return err
	}
	if d.model != "" {
		if err := p.other(d.model); err != nil {
			return err
		}
	}
	if d.kind == "" || d.kind == "custom" {
		return nil
	}
	p.r.typed++
	for _, own := range []string{"bash_", "text_editor_", "computer_", "memory_", "browser_"} {
		if strings.HasPrefix(d.kind, own) {
			return nil // the client runs it
		}
	}
	if d.calls > maxCalls {
		return bad(fmt.Sprintf("a tool may be called %d times", d.calls), fmt.Sprintf("allow at most %d", maxCalls))
	}
	p.serve(d.kind, d.calls)
	return p.unseen(Loop, d.kind, d.calls)
}

// maxCalls bounds how often a request may let a provider call its own tools.
const maxCalls = 1000

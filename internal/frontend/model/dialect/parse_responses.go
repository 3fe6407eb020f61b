package dialect

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// responsesMember reads a member of a request to /v1/responses.
func (p *parser) responsesMember(name string) (err error) {
	if name == "stream_options" { // it has no usage to ask for
		return p.w.skip()
	}
	if known, err := p.common(name); known {
		return err
	}
	switch name {
	case "max_output_tokens":
		return p.cap(name)
	case "max_tool_calls":
		return p.maxToolCalls(name)
	case "input":
		return p.input()
	case "tools":
		return p.each(p.openaiTool)
	case "previous_response_id", "conversation":
		return p.nonempty(Wide, name)
	case "prompt":
		return p.nonempty(Beyond, name)
	case "background":
		var late bool
		if late, _, err = p.w.yes(); err == nil && late {
			err = p.unseen(Beyond, name, 0)
		}
	case "context_management", "multi_agent":
		return p.nonempty(Loop, name)
	case "reasoning":
		return p.reasoning()
	default:
		return p.w.skip()
	}
	return err
}

func (p *parser) maxToolCalls(name string) error {
	n, at, ok, err := p.w.whole(name)
	if err != nil {
		return err
	}
	if p.r.edits.calls = at; ok {
		p.r.edits.said, p.r.edits.calls = max(1, n), span{}
	}
	return nil
}

func (p *parser) reasoning() error {
	if p.w.null() {
		return nil
	}
	return p.w.object(func(name string) error {
		switch name {
		case "effort":
			return p.effort()
		case "mode": // of several passes nobody says how many
			mode, err := p.w.short()
			if err != nil || mode == "" || mode == "standard" {
				return err
			}
			return p.unseen(Loop, "reasoning.mode="+mode, 0)
		}
		return p.w.skip()
	})
}

func (p *parser) input() error {
	if !p.w.is(jsontext.KindBeginArray) {
		return p.w.skip()
	}
	return p.w.list(p.item)
}

// item is one item of a response's input.
type item struct {
	kind, role, id, call, name string
	content, output            tally
	size                       int64
	said                       bool // it has content
}

func (p *parser) item() error {
	var it item
	err := p.w.object(func(name string) (err error) {
		switch name {
		case "type":
			it.kind, err = p.w.short()
		case "role":
			it.role, err = p.w.short()
		case "id":
			it.id, err = p.w.short()
		case "call_id", "approval_request_id":
			it.call, err = p.w.short()
		case "name":
			it.name, err = p.w.short()
		case "content":
			it.said = true
			it.content, _, err = p.content(p.part)
		case "output":
			it.output, it.size, err = p.itemOutput()
		case "tools":
			err = p.each(p.openaiTool) // of additional_tools and tool_search_output
		default:
			err = p.w.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.itemDone(it)
}

// itemOutput reads what a tool gave: a text, parts, or one part.
func (p *parser) itemOutput() (tally, int64, error) {
	if !p.w.is(jsontext.KindBeginObject) {
		return p.content(p.part)
	}
	before := p.w.d.InputOffset()
	t, err := p.part()
	return t, p.w.d.InputOffset() - before, err
}

func (p *parser) itemDone(it item) error {
	switch {
	case it.kind == "" && it.role == "" && !it.said: // the type of a reference may be left out
		return p.unseen(Wide, "item_reference", 0)
	case it.kind == "" || it.kind == "message":
		p.turn(it.role == "assistant")
		return p.count(it.content)
	case it.kind == "reasoning":
		p.turn(true)
		return nil
	case strings.HasSuffix(it.kind, "_output") || it.kind == "mcp_approval_response":
		id := it.call
		if id == "" {
			id = it.id
		}
		if err := p.result(ToolResult{ID: id, Bytes: it.size}); err != nil {
			return err
		}
		p.turn(false)
		switch it.kind {
		case "function_call_output", "custom_tool_call_output", "computer_call_output":
			return p.count(it.output)
		}
		return nil
	case strings.HasSuffix(it.kind, "_call"):
		if it.call == "" {
			it.call = it.id
		}
		if it.name == "" {
			it.name = strings.TrimSuffix(it.kind, "_call")
		}
		p.called(it.call, it.name)
		return nil
	case it.kind == "item_reference":
		return p.unseen(Wide, it.kind, 0)
	case it.kind == "compaction_trigger":
		return p.unseen(Loop, it.kind, 1)
	case it.kind == "configuration_update":
		p.loud = true
		return nil
	}
	switch it.kind {
	case "compaction", "additional_tools", "mcp_list_tools", "mcp_approval_request", "program":
		return nil
	}
	return p.unseen(Wide, "item "+it.kind, 0)
}

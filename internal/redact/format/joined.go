package format

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// delta is a string that carries on where the one before it ended: a piece of
// what a model says. [start, end) is where it stands, quotes included.
type delta struct {
	start, end int
	text       []byte
}

// joined masks what only shows when the deltas of a stream are put together: a
// key whose halves came in two events. The mask stands in the first of them,
// and what belonged to it is left out of the others.
func (n *nest) joined(d *draft, payloads []piece, level int) error {
	streams := map[string][]delta{}
	var keys []string
	var r deltas
	for _, p := range payloads {
		for _, x := range r.of(d.in[p.start:p.end]) {
			if len(streams[x.key]) == 0 {
				keys = append(keys, x.key)
			}
			x.start, x.end = x.start+p.start, x.end+p.start
			streams[x.key] = append(streams[x.key], x.delta)
		}
	}
	var changed []delta
	found := map[int][]finding.Finding{}
	for _, k := range keys {
		list, err := n.across(streams[k], found, level)
		if err != nil {
			return err
		}
		changed = append(changed, list...)
	}
	slices.SortFunc(changed, func(a, b delta) int { return cmp.Compare(a.start, b.start) })
	for _, c := range changed {
		q, _ := jsontext.AppendQuote(nil, c.text)
		d.whole(c.start, c.end, found[c.start])
		d.replace(c.start, c.end, q)
	}
	return nil
}

// across returns the pieces of one stream that change, because something lies
// across their ends, with what became of them; found gets what it was.
func (n *nest) across(list []delta, found map[int][]finding.Finding, level int) ([]delta, error) {
	if len(list) < 2 {
		return nil, nil
	}
	var text []byte
	ends := make([]int, len(list))
	for i, x := range list {
		text = append(text, x.text...)
		ends[i] = len(text)
	}
	spans, err := n.spans(text, level)
	if err != nil || len(spans) == 0 {
		return nil, err
	}
	var changed []delta
	at, start := 0, 0 // the span, and where the piece begins
	for i, x := range list {
		var out []byte
		touched := rule.None
		pos := start
		for ; at < len(spans) && spans[at].Start < ends[i]; at++ {
			sp := spans[at]
			touched = sp.Rule
			if sp.Start >= start {
				out = n.e.AppendMask(append(out, text[pos:sp.Start]...), sp.Rule, text[sp.Start:sp.End])
				found[x.start] = append(found[x.start], finding.Finding{Rule: rule.Names[sp.Rule]})
			}
			if pos = min(sp.End, ends[i]); sp.End > ends[i] {
				break // it goes on in the next piece
			}
		}
		if touched != rule.None {
			if found[x.start] == nil {
				found[x.start] = []finding.Finding{{Rule: rule.Names[touched]}}
			}
			changed = append(changed, delta{x.start, x.end, append(out, text[pos:ends[i]]...)})
		}
		start = ends[i]
	}
	return changed, nil
}

// keyed is a delta and what tells it from those of other streams.
type keyed struct {
	key string
	delta
}

// deltas reads the deltas of one document after another.
type deltas struct {
	d  *jsontext.Decoder
	in bytes.Buffer
}

// of returns the deltas of one event. Those at one place, under the same
// indices, are one stream.
func (r *deltas) of(doc []byte) []keyed {
	if bytes.IndexByte(doc, '"') < 0 {
		return nil
	}
	if r.d == nil {
		r.d = jsontext.NewDecoder(&r.in)
	}
	r.in = *bytes.NewBuffer(doc)
	r.d.Reset(&r.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var list []keyed
	var index strings.Builder
	var name []byte // of the member whose value comes next
	for {
		kind := r.d.PeekKind()
		if kind != jsontext.KindString && kind != jsontext.KindNumber {
			if _, err := r.d.ReadToken(); err == io.EOF {
				break
			} else if err != nil {
				return nil // no JSON
			}
			continue
		}
		parent, length := r.d.StackIndex(r.d.StackDepth())
		v, err := r.d.ReadValue()
		if err != nil {
			return nil
		}
		end := int(r.d.InputOffset())
		switch {
		case parent != jsontext.KindBeginObject:
		case length%2 == 0:
			name, _ = jsontext.AppendUnquote(name[:0], v)
		case kind == jsontext.KindNumber && bytes.HasSuffix(name, []byte("index")):
			index.WriteString("|" + string(r.d.StackPointer()) + "=" + string(v))
		case kind == jsontext.KindString && isDelta(string(name)):
			text, _ := jsontext.AppendUnquote(nil, v)
			list = append(list, keyed{string(r.d.StackPointer()), delta{end - len(v), end, text}})
		}
	}
	if index.Len() > 0 {
		for i := range list {
			list[i].key += index.String()
		}
	}
	return list
}

// isDelta knows the names under which models' answers come in pieces.
func isDelta(name string) bool {
	switch name {
	case "content", "text", "delta", "partial_json", "arguments", "thinking", "reasoning", "reasoning_content", "refusal", "completion",
		"response", "input", "output":
		return true
	}
	return false
}

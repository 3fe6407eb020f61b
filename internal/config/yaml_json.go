package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"go.yaml.in/yaml/v4"
)

// json keeps a YAML value as the JSON document it stands for.
func (d *decoder) json(n *yaml.Node, into *JSON) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == tagNull {
		return
	}
	var b bytes.Buffer
	if d.writeJSON(&b, n) {
		*into = b.Bytes()
	}
}

func (d *decoder) writeJSON(b *bytes.Buffer, n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, n.Content[i].Value)
			b.WriteByte(':')
			if !d.writeJSON(b, n.Content[i+1]) {
				return false
			}
		}
		b.WriteByte('}')
		return true
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if !d.writeJSON(b, c) {
				return false
			}
		}
		b.WriteByte(']')
		return true
	}
	return d.writeScalar(b, n)
}

func (d *decoder) writeScalar(b *bytes.Buffer, n *yaml.Node) bool {
	switch n.ShortTag() {
	case tagString:
		writeString(b, n.Value)
	case tagNull:
		b.WriteString("null")
	case tagBool:
		b.WriteString(strings.ToLower(n.Value))
	case tagInt, tagFloat:
		if !json.Valid([]byte(n.Value)) {
			d.problem(n.Line, "write it as JSON does", "%q is not a number in JSON", excerpt.Word(n.Value))
			return false
		}
		b.WriteString(n.Value)
	default:
		d.want(n, "a value", "a text")
		return false
	}
	return true
}

func writeString(b *bytes.Buffer, s string) {
	text, _ := json.Marshal(s) // a string always marshals
	b.Write(text)
}

// ruleText cuts the lines of inline rules out of the file and puts them where
// a rules file has them, in the same lines, so that what is wrong with a rule
// is reported where it stands.
func (d *decoder) ruleText(n *yaml.Node, into *ruleText) {
	if n.ShortTag() == tagNull {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.want(n, "rules.inline", "a list")
		return
	}
	if len(n.Content) == 0 {
		return
	}
	lines := bytes.SplitAfter(d.text, []byte("\n"))
	from, to := n.Content[0].Line, d.after(n, len(lines)+1)
	if n.Style&yaml.FlowStyle != 0 || from < 2 || !bytes.HasPrefix(bytes.TrimLeft(lines[from-1], " "), []byte("-")) {
		d.problem(n.Line, "begin each rule on a line of its own with a dash", "inline rules cannot be written on one line")
		return
	}
	var b bytes.Buffer
	b.WriteString(strings.Repeat("\n", from-2) + "rules:\n")
	for _, l := range lines[from-1 : to-1] {
		b.Write(l)
	}
	*into = b.Bytes()
}

// after returns the line of the first node that follows all of n.
func (d *decoder) after(n *yaml.Node, end int) int {
	inside := map[*yaml.Node]bool{}
	var mark func(*yaml.Node)
	mark = func(n *yaml.Node) {
		inside[n] = true
		for _, c := range n.Content {
			mark(c)
		}
	}
	mark(n)
	passed := false
	for _, o := range d.order {
		switch {
		case inside[o]:
			passed = true
		case passed:
			return o.Line
		}
	}
	return end
}

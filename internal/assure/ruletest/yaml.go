package ruletest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// maxDepth bounds the nesting of what a test writes down, well beyond what K1
// lets pass.
const maxDepth = 200

// tree reads a part of the archive, whose lines are then the archive's.
func (d *document) tree(p *part) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Load([]byte(strings.Repeat("\n", p.line-1)+p.text), &doc); err != nil {
		line, why := p.line, err.Error()
		var load *yaml.LoadError
		if errors.As(err, &load) && load.Mark.Line > 0 {
			line, why = load.Mark.Line, load.Message
		}
		return nil, d.wrong(line, p.name+" is not YAML: "+excerpt.Of(why, 200), "")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, d.wrong(p.line, p.name+" is empty", "")
	}
	return doc.Content[0], d.plain(doc.Content[0], 0)
}

// plain refuses what makes YAML more than a tree.
func (d *document) plain(n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return d.wrong(n.Line, "too deeply nested", "use json: '...' for a payload that is")
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return d.wrong(n.Line, "an anchor, an alias or a tag", "write the value out")
	}
	for _, c := range n.Content {
		if err := d.plain(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// members reads an object; a member that is not known is an error.
func (d *document) members(n *yaml.Node, what string, known []string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, d.wrong(n.Line, what+" is no object", "it has "+strings.Join(known, ", "))
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case known != nil && !slices.Contains(known, key.Value):
			return nil, d.wrong(key.Line, fmt.Sprintf("%s has no %q", what, excerpt.Of(key.Value, 64)), "it has "+strings.Join(known, ", "))
		case out[key.Value] != nil:
			return nil, d.wrong(key.Line, fmt.Sprintf("a second %q", excerpt.Of(key.Value, 64)), "")
		}
		out[key.Value] = n.Content[i+1]
	}
	return out, nil
}

func (d *document) list(n *yaml.Node, what string, most int) ([]*yaml.Node, error) {
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, d.wrong(n.Line, what+" is no list", "")
	}
	if len(n.Content) > most {
		return nil, d.wrong(n.Line, fmt.Sprintf("more than %d of %s", most, what), "make several archives")
	}
	return n.Content, nil
}

func (d *document) text(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return "", d.wrong(n.Line, what+" is no text", "")
	}
	return n.Value, nil
}

// json writes a YAML value as the JSON document that it stands for: numbers as
// they are written.
func (d *document) json(b []byte, n *yaml.Node) ([]byte, error) {
	var err error
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			if key := n.Content[i]; key.Kind != yaml.ScalarNode {
				return nil, d.wrong(key.Line, "the name of a member is no text", "quote it")
			}
			b = append(quoted(b, n.Content[i].Value), ':')
			if b, err = d.json(b, n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, c := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = d.json(b, c); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return d.scalar(b, n)
}

func (d *document) scalar(b []byte, n *yaml.Node) ([]byte, error) {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return append(b, "null"...), nil
	case "!!bool":
		yes, err := strconv.ParseBool(strings.ToLower(n.Value))
		if err != nil {
			return nil, d.wrong(n.Line, n.Value+" is neither true nor false", "")
		}
		return strconv.AppendBool(b, yes), nil
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			return nil, d.wrong(n.Line, excerpt.Of(n.Value, 64)+" is no number as JSON has them", "quote it if it is a text")
		}
		return append(b, n.Value...), nil
	}
	return quoted(b, n.Value), nil
}

func quoted(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...)
	}
	return append(b, q...)
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds on one configuration file.
const (
	maxConfig   = 1 << 20 // bytes
	maxNesting  = 40
	maxProblems = 50
)

// Tags of YAML's core types.
const (
	tagString = "!!str"
	tagInt    = "!!int"
	tagFloat  = "!!float"
	tagBool   = "!!bool"
	tagNull   = "!!null"
	tagTime   = "!!timestamp"
	tagMerge  = "!!merge"
)

// decoder reads one YAML document into a struct whose fields carry the tags
// yaml (the key), doc, need, enum, min and max, and collects every mistake
// with its line. Nothing is read that is not wanted and nothing is guessed: a
// key is known, its value has the field's type, and no alias, anchor, merge
// key or type tag stands anywhere.
type decoder struct {
	file     string
	text     []byte
	problems Problems
	order    []*yaml.Node   // the document's nodes as they stand in the file
	lines    map[string]int // where each value stands, by dotted path
}

// into fills out, a pointer to a struct.
func (d *decoder) into(out any) {
	d.lines = map[string]int{}
	if root := d.parse(); root != nil {
		d.value(root, reflect.ValueOf(out).Elem(), "", "")
	}
}

// join makes the path of a key; index that of an item.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (d *decoder) problem(line int, hint, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, Problem{Where: place(d.file, line), Why: fmt.Sprintf(format, args...), Hint: hint})
	}
}

func place(file string, line int) string {
	if line <= 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

// parse returns the document's root, or nil for an empty document and for one
// with a problem.
func (d *decoder) parse() *yaml.Node {
	if len(d.text) > maxConfig {
		d.problem(0, "", "more than %d bytes", maxConfig)
		return nil
	}
	if line, what := badText(d.text); what != "" {
		d.problem(line, "", "%s", what)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(d.text), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxNesting))))
	if err != nil {
		d.problem(0, "", "%v", err)
		return nil
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		// A file that was emptied must not turn into "nothing is forbidden".
		d.problem(0, "write version: 1, or remove the file", "the file is empty")
		return nil
	} else if err != nil {
		d.syntax(err)
		return nil
	}
	if err := loader.Load(&more); err == nil {
		d.problem(more.Line, "", "a second document; there must be only one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return nil
	}
	if len(doc.Content) != 1 {
		d.problem(1, "", "not one document")
		return nil
	}
	if root := doc.Content[0]; root.Kind == yaml.ScalarNode && root.ShortTag() == tagNull {
		d.problem(root.Line, "write version: 1, or remove the file", "the file is empty")
		return nil
	}
	d.walk(doc.Content[0], 0)
	if len(d.problems) > 0 {
		return nil
	}
	return doc.Content[0]
}

func (d *decoder) syntax(err error) {
	var e *yaml.LoadError
	if errors.As(err, &e) {
		line := max(e.Mark.Line, e.ContextMark.Line)
		d.problem(line, syntaxHint(e.Message), "not YAML: %s", e.Message)
		return
	}
	d.problem(0, "", "not YAML: %v", err)
}

// syntaxHint is what to do about the two mistakes whose message, the parser's
// own, speaks of something else.
func syntaxHint(message string) string {
	switch {
	case strings.HasPrefix(message, "unknown anchor"):
		return `what begins with a star stands in quotes, such as "*.example.com"`
	case strings.Contains(message, "cannot start any token"):
		return "lines are indented with spaces, never with tabs; what begins with @, % or ` stands in quotes"
	}
	return ""
}

// badText finds what no configuration file holds: bytes that are not UTF-8,
// and control characters. Line 0 means that the text is fine.
func badText(b []byte) (int, string) {
	line := 1
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && size <= 1:
			return line, "not valid UTF-8"
		case r == 0:
			return line, "a NUL character"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return line, fmt.Sprintf("a control character (U+%04X)", r)
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return line, fmt.Sprintf("a character that turns the direction of writing (U+%04X)", r)
		case r == '\n':
			line++
		}
		b = b[size:]
	}
	return 0, ""
}

// walk refuses what is refused everywhere, whatever the place means.
func (d *decoder) walk(n *yaml.Node, depth int) {
	d.order = append(d.order, n)
	switch {
	case depth > maxNesting:
		d.problem(n.Line, "", "nested deeper than %d", maxNesting)
		return
	case n.Kind == yaml.AliasNode:
		d.problem(n.Line, "write the value out", "aliases such as *%s are not allowed", excerpt.Word(n.Value))
		return
	case n.Anchor != "":
		d.problem(n.Line, "write the value out where it is used", "anchors such as &%s are not allowed",
			excerpt.Word(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		d.problem(n.Line, "remove it", "type tags such as %s are not allowed", excerpt.Word(n.Tag))
	}
	if n.Kind == yaml.MappingNode {
		d.keys(n)
	}
	for _, c := range n.Content {
		d.walk(c, depth+1)
	}
}

func (d *decoder) keys(n *yaml.Node) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode:
			d.problem(k.Line, "", "a key must be a plain text")
		case k.ShortTag() == tagMerge:
			d.problem(k.Line, "write the keys out", "merge keys (<<) are not allowed")
		case seen[k.Value] > 0:
			d.problem(k.Line, "keep one of the two", "the key %q is there twice, first in line %d", excerpt.Word(
				k.Value,
			), seen[k.Value])
		default:
			seen[k.Value] = k.Line
		}
	}
}

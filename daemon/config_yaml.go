package daemon

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/holdfast-dev/holdfast/internal/excerpt"
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
		d.problem(n.Line, "write the value out", "aliases such as *%s are not allowed", clip(n.Value))
		return
	case n.Anchor != "":
		d.problem(n.Line, "write the value out where it is used", "anchors such as &%s are not allowed", clip(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		d.problem(n.Line, "remove it", "type tags such as %s are not allowed", clip(n.Tag))
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
			d.problem(k.Line, "keep one of the two", "the key %q is there twice, first in line %d", clip(k.Value), seen[k.Value])
		default:
			seen[k.Value] = k.Line
		}
	}
}

// value fills v from n. path is for people, tag is the field's.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch t := v.Addr().Interface().(type) {
	case *notYet:
		d.problem(n.Line, "remove it", "%q is not available in this version", path)
		return
	case *JSON:
		d.json(n, t)
		return
	case *ruleText:
		d.ruleText(n, t)
		return
	case *HeaderConfig:
		if n.Kind == yaml.ScalarNode {
			d.problem(n.Line, "write {file: NAME} or {env: NAME}", "%s: no value stands in this file", path)
			return
		}
	case *RegisterConfig:
		if n.Kind == yaml.ScalarNode {
			d.problem(n.Line, "write {file: NAME}, {env: NAME} or {command: [PROGRAM, ARGS]}", "%s: no value stands in this file", path)
			return
		}
	case encoding.TextUnmarshaler:
		d.word(n, t, path)
		return
	}
	if n.ShortTag() == tagNull && (v.Kind() == reflect.Struct || v.Kind() == reflect.Map || v.Kind() == reflect.Slice) {
		return // a key whose lines are all commented out
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path, tag)
	case reflect.Slice:
		d.sequence(n, v, path, tag)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(n, p.Elem(), path, tag)
		v.Set(p)
	default:
		d.scalar(n, v, path, tag)
	}
}

func (d *decoder) want(n *yaml.Node, path, what string) {
	hint := ""
	if what == "a text" && n.Kind == yaml.ScalarNode && n.ShortTag() != tagNull {
		hint = "put it in quotes"
	}
	if what == "a list" && n.Kind == yaml.ScalarNode {
		hint = "put it in brackets: [A], or [A, B] for several"
	}
	if path == "" {
		path = "the file"
	}
	d.problem(n.Line, hint, "%s must be %s, not %s", path, what, kindOf(n))
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case tagNull:
		return "nothing"
	case tagInt, tagFloat:
		return "a number"
	case tagBool:
		return "true or false"
	case tagTime:
		return "a date"
	}
	return "a text"
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.want(n, path, "a mapping")
		return
	}
	if at := v.FieldByName("At"); at.IsValid() {
		at.SetString(place(d.file, n.Line))
	}
	known, given := map[string]reflect.StructField{}, map[string]bool{}
	var names []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			known[key] = f
			names = append(names, key)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		f, ok := known[k.Value]
		if !ok {
			hint := "the keys here are " + strings.Join(names, ", ")
			if k.Value == "contracts" {
				hint = "contracts stand under \"boundaries\""
			} else if near := nearest(k.Value, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			d.problem(k.Line, hint, "unknown key %q", clip(k.Value))
			continue
		}
		given[k.Value] = true
		at := join(path, k.Value)
		d.lines[at] = k.Line
		d.value(n.Content[i+1], v.FieldByIndex(f.Index), at, f.Tag)
	}
	for _, key := range names {
		if known[key].Tag.Get("need") != "" && !given[key] {
			d.problem(n.Line, known[key].Tag.Get("doc"), "%q is missing", key)
		}
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.MappingNode {
		d.want(n, path, "a mapping")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Content)/2))
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.ShortTag() != tagString {
			d.want(k, "a name in "+path, "a text")
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		at := join(path, k.Value)
		d.lines[at] = k.Line
		d.value(n.Content[i+1], e, at, tag)
		v.SetMapIndex(reflect.ValueOf(k.Value).Convert(v.Type().Key()), e)
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.SequenceNode {
		d.want(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		if v.Type().Elem().Kind() == reflect.Struct && c.ShortTag() == tagNull {
			d.want(c, index(path, i), "a mapping")
			continue
		}
		d.lines[index(path, i)] = c.Line
		d.value(c, v.Index(i), index(path, i), tag)
	}
}

func (d *decoder) word(n *yaml.Node, into encoding.TextUnmarshaler, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == tagNull {
		d.want(n, path, "a text")
		return
	}
	if err := into.UnmarshalText([]byte(n.Value)); err != nil {
		d.problem(n.Line, "", "%s: %v", path, err)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != tagString {
			d.want(n, path, "a text")
			return
		}
		if words := tag.Get("enum"); words != "" && !oneOf(words, n.Value) {
			d.problem(n.Line, "", "%s must be one of %s, not %q", path, strings.ReplaceAll(words, ",", ", "), clip(n.Value))
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != tagBool {
			d.want(n, path, "true or false")
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int, reflect.Int64:
		d.integer(n, v, path, tag)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || (tag != tagInt && tag != tagFloat) || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.want(n, path, "a number")
			return
		}
		if d.inRange(n, f, path, tag) {
			v.SetFloat(f)
		}
	default:
		d.problem(n.Line, "", "%s cannot be configured", path)
	}
}

// integer takes decimal digits only: 010 is eight to one reader and ten to
// another.
func (d *decoder) integer(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tagInt {
		d.want(n, path, "a whole number")
		return
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || v.OverflowInt(i) || strconv.FormatInt(i, 10) != n.Value {
		d.problem(n.Line, "write it in decimal digits", "%s must be a whole number below 2^63, not %q", path, clip(n.Value))
		return
	}
	if d.inRange(n, float64(i), path, tag) {
		v.SetInt(i)
	}
}

func (d *decoder) inRange(n *yaml.Node, f float64, path string, tag reflect.StructTag) bool {
	if s, ok := tag.Lookup("min"); ok {
		if least, _ := strconv.ParseFloat(s, 64); f < least {
			d.problem(n.Line, "", "%s must be at least %s, not %s", path, s, clip(n.Value))
			return false
		}
	}
	if s, ok := tag.Lookup("max"); ok {
		if most, _ := strconv.ParseFloat(s, 64); f > most {
			d.problem(n.Line, "", "%s must be at most %s, not %s", path, s, clip(n.Value))
			return false
		}
	}
	return true
}

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
			d.problem(n.Line, "write it as JSON does", "%q is not a number in JSON", clip(n.Value))
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

func oneOf(words, word string) bool {
	for w := range strings.SplitSeq(words, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// clip shortens what is quoted in a message.
func clip(s string) string { return excerpt.Of(s, 64) }

// nearest returns the known word that a typing error most likely meant, or "".
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if n := edits(word, k); n < least {
			best, least = k, n
		}
	}
	return best
}

// edits counts the insertions, deletions and replacements between two words.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			step := 1
			if a[i] == b[j] {
				step = 0
			}
			last, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, last+step)
		}
	}
	return row[len(b)]
}

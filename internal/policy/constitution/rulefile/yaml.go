package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
	"go.yaml.in/yaml/v4"
)

const (
	// MaxFile is the size of one rules file in bytes.
	MaxFile = 1 << 20
	// MaxExpression is the length of one expression in bytes.
	MaxExpression = 4 << 10
)

// LocatedError is a mistake at a place of a file. It wraps a *holdfast.Error whose Rule is the place, and whose Why is
// the place and the reason.
type LocatedError struct {
	Where  string // such as rules.yaml:3:7
	Reason string
	letter *holdfast.Error
}

// NewLocatedError returns letter with its Rule and Why made of where and reason.
func NewLocatedError(letter holdfast.Error, where, reason string) *LocatedError {
	letter.Rule, letter.Why = where, where+": "+reason
	return &LocatedError{where, reason, &letter}
}

// Error implements error.
func (e *LocatedError) Error() string { return e.letter.Error() }

// Unwrap returns the *holdfast.Error.
func (e *LocatedError) Unwrap() error { return e.letter }

// File is one rules file while it is read. It collects what is wrong with it.
type File struct {
	Name  string
	lines []string
	Errs  []Located
}

// Located is an error with its place, so that errors can be sorted.
type Located struct {
	File, Line, Col int
	Err             error
}

// Fail notes an error at a line and column, both from 1.
func (f *File) Fail(line, col int, why, hint string) {
	where := fmt.Sprintf("%s:%d:%d", f.Name, line, col)
	letter := holdfast.Error{Kind: holdfast.KindPredicateParse, Gate: holdfast.K8, Hint: hint}
	f.Errs = append(f.Errs, Located{Line: line, Col: col, Err: NewLocatedError(letter, where, why)})
}

func (f *File) FailAt(n *yaml.Node, why, hint string) { f.Fail(n.Line, n.Column, why, hint) }

// Parse reads the text up to the nodes of the list of rules. Nothing is
// decoded: anchors, aliases and tags are refused before anything could be
// expanded, and every value keeps its place.
func (f *File) Parse(text []byte) []*yaml.Node {
	if len(text) > MaxFile {
		f.Fail(1, 1, fmt.Sprintf("the file has %d bytes", len(text)), fmt.Sprintf("at most %d are allowed", MaxFile))
		return nil
	}
	if !f.readable(text) {
		return nil
	}
	f.lines = strings.Split(string(text), "\n")
	var document yaml.Node
	if err := loadOne(text, &document); err != nil {
		f.failYAML(err)
		return nil
	}
	if !f.plain(&document) {
		return nil
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		f.Fail(1, 1, "the file is not one YAML document", "")
		return nil
	}
	return f.ruleNodes(document.Content[0])
}

// readable refuses what no editor shows as it is.
func (f *File) readable(text []byte) bool {
	at := bytes.IndexByte(text, 0)
	why := "a NUL byte"
	if !utf8.Valid(text) {
		why = "not UTF-8"
		at = 0
		for at < len(text) {
			r, size := utf8.DecodeRune(text[at:])
			if r == utf8.RuneError && size <= 1 {
				break
			}
			at += size
		}
	}
	if at < 0 {
		return true
	}
	line := 1 + bytes.Count(text[:at], []byte("\n"))
	f.Fail(line, at-bytes.LastIndexByte(text[:at], '\n'), why, "save the file as UTF-8 text")
	return false
}

// What is wrong with the number of documents of a file.
var (
	errNoDocument = errors.New("no document")
	errDocuments  = errors.New("more than one document")
)

// loadOne reads the one document of a text.
func loadOne(text []byte, document *yaml.Node) error {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := loader.Load(document); errors.Is(err, io.EOF) {
		return errNoDocument
	} else if err != nil {
		return err
	}
	var more any
	if err := loader.Load(&more); err == nil {
		return errDocuments
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (f *File) failYAML(err error) {
	var load *yaml.LoadError
	switch {
	case errors.As(err, &load) && load.Mark.Line > 0:
		f.Fail(load.Mark.Line, load.Mark.Column, "not YAML: "+Clip(load.Message), f.quoteHint(load.Mark.Line))
	case errors.Is(err, errNoDocument):
		f.Fail(1, 1, "the file is empty", "write `rules: []` if there are to be none")
	case errors.Is(err, errDocuments):
		f.Fail(1, 1, "the file holds more than one document", "put all rules under one `rules:`")
	default:
		f.Fail(1, 1, "not YAML: "+Clip(err.Error()), "")
	}
}

// inQuotes is what to do with a text that YAML takes for something else.
const inQuotes = "put the whole value in single quotes, or on lines of its own under `|`"

// quoteHint says what is most likely wrong with a line that is not YAML.
func (f *File) quoteHint(line int) string {
	if line > len(f.lines) {
		return ""
	}
	raw := f.lines[line-1]
	if indent := raw[:len(raw)-len(strings.TrimLeft(raw, " \t"))]; strings.Contains(indent, "\t") {
		return "indent with spaces; YAML allows no tabs there"
	}
	return inQuotes
}

// plain refuses what makes YAML more than a tree of plain values.
func (f *File) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		f.FailAt(n, "an alias", "write the value out; a rules file has no anchors and aliases")
		return false
	case n.Anchor != "":
		f.FailAt(n, "an anchor", "write the value out; a rules file has no anchors and aliases")
		return false
	case n.Style&yaml.TaggedStyle != 0:
		hint := inQuotes
		if strings.HasPrefix(n.Tag, "!!") {
			hint = "write the value without " + Clip(n.Tag)
		}
		f.FailAt(n, "a tag", hint)
		return false
	}
	for _, c := range n.Content {
		if !f.plain(c) {
			return false
		}
	}
	return true
}

func (f *File) ruleNodes(root *yaml.Node) []*yaml.Node {
	members, ok := f.Members(root, "the file", []string{"rules"})
	if !ok {
		return nil
	}
	list := members["rules"]
	if list == nil {
		f.FailAt(root, "there is no `rules:`", "write `rules: []` if there are to be none")
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		f.FailAt(list, "`rules` is not a list", "begin each rule with `- id: ...`")
		return nil
	}
	return list.Content
}

// Members reads a mapping with known keys.
func (f *File) Members(n *yaml.Node, what string, known []string) (map[string]*yaml.Node, bool) {
	if n.Kind != yaml.MappingNode {
		f.FailAt(n, what+" is not a mapping", "write `key: value` lines")
		return nil, false
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := Clip(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || !contains(known, key.Value):
			hint := "known are " + strings.Join(known, ", ")
			if near := suggest.FindName(key.Value, known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			f.FailAt(key, fmt.Sprintf("unknown key %q", name), hint)
		case out[key.Value] != nil:
			f.FailAt(key, fmt.Sprintf("%q is given twice", name), "keep one")
		default:
			out[key.Value] = value
		}
	}
	return out, true
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// maxText bounds a message or hint, in code points.
const maxText = 1_000

// Text reads a string member. A missing one is the default.
func (f *File) Text(members map[string]*yaml.Node, key, absent string) string {
	n := members[key]
	if n == nil {
		return absent
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && key != "version" && key != "when" || n.Tag == "!!null" {
		f.FailAt(n, fmt.Sprintf("%q is not text", key), "put it in quotes")
		return absent
	}
	if key == "when" {
		return n.Value
	}
	if strings.TrimSpace(n.Value) == "" {
		f.FailAt(n, fmt.Sprintf("%q is empty", key), "leave it out or fill it in")
		return absent
	}
	for _, r := range n.Value {
		if unicode.IsControl(r) && r != '\n' || !unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			f.FailAt(n, fmt.Sprintf("%q holds a character that cannot be seen (%U)", key, r), "write plain text")
			return absent
		}
	}
	if utf8.RuneCountInString(n.Value) > maxText {
		f.FailAt(n, fmt.Sprintf("%q is longer than %d characters", key, maxText), "")
		return absent
	}
	return strings.TrimSpace(n.Value)
}

// Choice reads a member that is one of a few words.
func (f *File) Choice(members map[string]*yaml.Node, key, absent string, words ...string) string {
	before := len(f.Errs)
	got := f.Text(members, key, absent)
	if got == "" || len(f.Errs) > before || contains(words, got) {
		return got
	}
	hint := "one of " + strings.Join(words, ", ")
	if near := suggest.FindName(got, words); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	f.FailAt(members[key], fmt.Sprintf("%q is %q", key, Clip(got)), hint)
	return absent
}

// Place maps a place inside a scalar's value, as CEL counts it (line from 1,
// column from 0, in code points), to the file's line and column. It follows
// the value's visible characters through the raw text, whatever the scalar's
// style; where that fails, the answer is where the scalar begins.
func (f *File) Place(n *yaml.Node, celLine, celCol int) (line, col int) {
	target := Offset(n.Value, celLine, celCol)
	if target < 0 {
		return n.Line, n.Column
	}
	line, col = n.Line, n.Column
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		line, col = n.Line+1, 1
	}
	raw := f.rawFrom(line, col)
	at := 0
	for i, r := range []rune(n.Value) {
		if unicode.IsSpace(r) && i < target {
			continue
		}
		for at < len(raw) && raw[at].r != r {
			at++
		}
		if at >= len(raw) {
			return n.Line, n.Column
		}
		if i >= target {
			return raw[at].line, raw[at].col
		}
		at++
	}
	if at > 0 && at <= len(raw) {
		return raw[at-1].line, raw[at-1].col
	}
	return n.Line, n.Column
}

// Offset returns the index in code points of a place in a text, or -1.
func Offset(s string, line, col int) int {
	lines := strings.Split(s, "\n")
	if line < 1 || line > len(lines) || col < 0 {
		return -1
	}
	n := 0
	for _, l := range lines[:line-1] {
		n += utf8.RuneCountInString(l) + 1
	}
	return n + col
}

type rawRune struct {
	r         rune
	line, col int
}

// rawFrom returns the file's code points from a place on, enough for one
// expression.
func (f *File) rawFrom(line, col int) []rawRune {
	var out []rawRune
	for l := line; l >= 1 && l <= len(f.lines) && len(out) < 2*MaxExpression; l++ {
		for c, r := range []rune(f.lines[l-1] + "\n") {
			if l > line || c+1 >= col {
				out = append(out, rawRune{r, l, c + 1})
			}
		}
	}
	return out
}

// Id reads an id that is fit for a ledger column and a command line.
func (f *File) Id(m map[string]*yaml.Node) string {
	id := f.Text(m, "id", "")
	if ok, err := regexp.MatchString(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$`, id); id != "" && (err != nil || !ok) {
		f.FailAt(m["id"], fmt.Sprintf("%q is not an id", Clip(id)),
			"letters, digits, and _ . / - after the first; at most 128")
		return ""
	}
	return id
}

// Clip shortens a text that came from a file or a parser.
func Clip(s string) string { return excerpt.Of(strings.Join(strings.Fields(s), " "), 300) }

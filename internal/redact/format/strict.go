package format

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// maxDepth bounds the nesting of JSON in a body.
const maxDepth = 512

// strict redacts a JSON document, which must be unambiguous (RFC 7493): in
// UTF-8, without a name that stands twice, of bounded depth. It says whether b
// is one.
func (n *nest) strict(b []byte, level int) (finding.Result, bool, error) {
	if !looksJSON(b) {
		return finding.Result{}, false, nil
	}
	if !isStrict(b) {
		if !valid(b) {
			return finding.Result{}, false, nil
		}
		return finding.Result{}, true, n.ambiguity(b)
	}
	r, err := n.document(b, level)
	if err != nil || !r.Found() {
		return finding.Result{Out: b}, true, err
	}
	if !isStrict(r.Out) {
		return finding.Result{}, true, n.ambiguity(r.Out)
	}
	return r, true, nil
}

// document redacts a valid JSON document whose strings may be wrapped.
func (n *nest) document(b []byte, level int) (finding.Result, error) {
	w := n.walker(b)
	w.nested, w.limit = level, maxDepth
	defer func() { n.spare = w }()
	w.walk()
	if w.deep {
		return finding.Result{}, unscannable(fmt.Sprintf("JSON nested more than %d levels deep", maxDepth), nil)
	}
	return w.result(), w.err
}

// ambiguity names what is wrong with a document that is valid but not strict.
func (n *nest) ambiguity(b []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	_, err := d.ReadValue()
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		return unscannable("JSON that readers may take for different things", err)
	}
	if !errors.Is(err, jsontext.ErrDuplicateName) {
		return unscannable(fmt.Sprintf("JSON that is not UTF-8 at byte %d", at.ByteOffset), nil)
	}
	name := n.e.Text([]byte(at.JSONPointer.LastToken())).Out
	return &holdfast.Error{
		Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact/duplicate",
		Why:  fmt.Sprintf("the name %.64q stands twice in one JSON object, at byte %d", name, at.ByteOffset),
		Hint: "nothing was sent; readers differ on which of the two counts: send each name once",
	}
}

// looksJSON says whether b begins as an object, an array or a string does, or
// is one number.
func looksJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 {
		return false
	}
	return b[0] == '{' || b[0] == '[' || b[0] == '"' || b[0] == '-' || char.Class[b[0]]&char.Digit != 0
}

// depth returns how deep the brackets of what looks like JSON are nested.
func depth(b []byte) int {
	deep, most := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			deep++
			most = max(most, deep)
		case '}', ']':
			deep--
		}
	}
	return most
}

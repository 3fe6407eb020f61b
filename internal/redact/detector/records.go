package detector

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// Finder finds names and addresses in a text. Detector is one.
type Finder interface {
	Find(ctx context.Context, text []byte) ([]redact.Finding, error)
}

// Records masks the texts of records: by the engine, and what is left by the finder. If the finder fails, the whole
// text is masked under the rule "fault". The offsets of a finding of the finder are those of the whole text if the
// engine found something too, or if a JSON string has escapes. Masks are kept, so a second time changes nothing that
// the finder does not find in its own masks' surroundings.
type Records struct {
	engine *redact.Engine
	finder Finder // nil for none
}

// NewRecords returns the redaction of records. finder may be nil.
func NewRecords(e *redact.Engine, finder Finder) *Records { return &Records{e, finder} }

// Engine returns the engine without the finder, for structure and decisions.
func (r *Records) Engine() *redact.Engine { return r.engine }

// HasFinder reports whether more than the engine finds something.
func (r *Records) HasFinder() bool { return r.finder != nil }

// Text redacts a text, as redact.Engine.Text does.
func (r *Records) Text(s []byte) redact.Result {
	res := r.engine.Text(s)
	if r.finder == nil || !hasLetter(res.Out) {
		return res
	}
	found, err := r.finder.Find(context.Background(), res.Out)
	if err != nil {
		return hideText(res, len(s), mask.Secret)
	}
	out, found := r.engine.Mask(res.Out, found)
	if found == nil {
		return res
	}
	if len(res.Findings) > 0 {
		for i := range found {
			found[i].Offset, found[i].Length = 0, len(s)
		}
	}
	// A mask can bring together what was apart.
	return redact.Result{Out: r.engine.Text(out).Out, Findings: slices.Concat(found, res.Findings)}
}

// hideText returns the result of a text that the finder could not search.
func hideText(res redact.Result, size int, shown string) redact.Result {
	fault := redact.Finding{Rule: rule.Names[rule.Fault], Length: size}
	return redact.Result{Out: []byte(shown), Findings: slices.Concat([]redact.Finding{fault}, res.Findings)}
}

// JSON redacts a document, as redact.Engine.JSON does. The finder gets the strings that are values, not the names of
// members. A document stays one.
func (r *Records) JSON(doc []byte) (redact.Result, error) {
	res, err := r.engine.JSON(doc)
	if err != nil || r.finder == nil {
		return res, err
	}
	values, ok := listStrings(res.Out, nil)
	if !ok {
		return r.Text(doc), nil
	}
	found, err := r.findInStrings(values)
	if err != nil {
		return hideText(res, len(doc), `"`+mask.Secret+`"`), nil
	}
	out, list := r.replaceStrings(res.Out, values, found)
	if list == nil {
		return res, nil
	}
	if len(res.Findings) > 0 {
		for i := range list {
			list[i].Offset, list[i].Length = 0, len(doc)
		}
	}
	after, err := r.engine.JSON(out)
	return redact.Result{Out: after.Out, Findings: slices.Concat(list, res.Findings)}, err
}

// Members redacts the strings under members of these names, at any depth of a JSON document, and leaves the rest to
// the engine. Of a record that are the texts for people: its other strings are words of closed lists and IDs.
func (r *Records) Members(doc []byte, names ...string) []byte {
	if r.finder == nil {
		return doc
	}
	values, _ := listStrings(doc, names)
	if len(values) == 0 {
		return doc
	}
	for i := range values {
		values[i].text = r.engine.Text(values[i].text).Out
		values[i].changed = true
	}
	found, err := r.findInStrings(values)
	if err != nil {
		for i := range values {
			values[i].text = []byte(mask.Secret)
		}
	}
	out, _ := r.replaceStrings(doc, values, found)
	return out
}

// value is a string of a document.
type value struct {
	start, end int // with its quotes
	text       []byte
	escaped    bool
	changed    bool
}

// listStrings returns the strings of a document that are values and have a letter. If names is not nil, only those of
// members with such a name. ok is false if doc is not a document.
func listStrings(doc []byte, names []string) (list []value, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	wanted := names == nil
	for {
		from := dec.InputOffset()
		token, err := dec.ReadToken()
		if err != nil {
			return list, err == io.EOF && dec.StackDepth() == 0 && len(bytes.TrimSpace(doc)) > 0
		}
		if token.Kind() != '"' {
			continue
		}
		in, n := dec.StackIndex(dec.StackDepth())
		if in == '{' && n%2 == 1 {
			wanted = names == nil || slices.Contains(names, token.String())
			continue
		}
		if !wanted {
			continue
		}
		v := value{start: int(from), end: int(dec.InputOffset()), text: []byte(token.String())}
		v.start += bytes.IndexByte(doc[v.start:v.end], '"')
		v.escaped = v.end-v.start != len(v.text)+2
		if hasLetter(v.text) {
			list = append(list, v)
		}
	}
}

// hasLetter reports whether a text has a letter, and so may have a name.
func hasLetter(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return true
		}
	}
	return false
}

// findInStrings returns what the finder finds in each value. It gets many in one text, each on a line.
func (r *Records) findInStrings(values []value) ([][]redact.Finding, error) {
	return findInValues(context.Background(), r.finder, values)
}

// findInValues is findInStrings with any finder.
func findInValues(ctx context.Context, f Finder, values []value) ([][]redact.Finding, error) {
	found := make([][]redact.Finding, len(values))
	for first := 0; first < len(values); {
		var text []byte
		last := first
		for ; last < len(values) && (last == first || len(text)+len(values[last].text) < maxWindow); last++ {
			text = append(append(text, values[last].text...), '\n')
		}
		list, err := f.Find(ctx, text)
		if err != nil {
			return nil, err
		}
		base := 0
		for i := first; i < last; i++ {
			end := base + len(values[i].text)
			for _, f := range list {
				from, to := max(f.Offset, base), min(f.Offset+f.Length, end)
				if from < to {
					found[i] = append(found[i], redact.Finding{Rule: f.Rule, Offset: from - base, Length: to - from})
				}
			}
			base = end + 1
		}
		first = last
	}
	return found, nil
}

// replaceStrings returns doc with masks for what was found in its values, and the findings with their places in doc.
func (r *Records) replaceStrings(doc []byte, values []value, found [][]redact.Finding) ([]byte, []redact.Finding) {
	var out []byte
	var all []redact.Finding
	last := 0
	for i, v := range values {
		text, list := v.text, []redact.Finding(nil)
		if found != nil {
			text, list = r.engine.Mask(text, found[i])
		}
		if !v.changed && list == nil {
			continue
		}
		for _, f := range list {
			if f.Offset += v.start + 1; v.escaped {
				f.Offset, f.Length = v.start, v.end-v.start
			}
			all = append(all, f)
		}
		out = append(out, doc[last:v.start]...)
		out, _ = jsontext.AppendQuote(out, text) // invalid UTF-8 is replaced
		last = v.end
	}
	return append(out, doc[last:]...), all
}

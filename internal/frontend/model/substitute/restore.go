package substitute

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// Restore restores the placeholders in the texts of an answer that is one document, and notes what the
// provider signed in it. What is no document of the dialect stays as it is.
func Restore(p *mapping.Snapshot, d dialect.Dialect, doc []byte) ([]byte, mapping.Counts) {
	var all mapping.Counts
	texts, err := modeltext.ListAnswerTexts(d, doc)
	if err != nil {
		return doc, all
	}
	var out []byte
	at := 0
	for _, t := range texts {
		value, n := restoreText(p, t, doc[t.Start:t.End])
		all.Add(n)
		if n.Restored > 0 {
			out = append(append(out, doc[at:t.Start]...), value...)
			at = t.End
		}
	}
	if out == nil {
		return doc, all
	}
	return append(out, doc[at:]...), all
}

// restoreText returns the JSON value of a text with its placeholders restored.
func restoreText(p *mapping.Snapshot, t modeltext.Text, value []byte) ([]byte, mapping.Counts) {
	if t.Kind == modeltext.Data && !isString(value) {
		return p.RestoreText(true, value)
	}
	if t.Kind != modeltext.Signed && t.Kind != modeltext.Plain && t.Kind != modeltext.Arguments {
		return value, mapping.Counts{}
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return value, mapping.Counts{}
	}
	if t.Kind == modeltext.Signed {
		p.NoteSigned(sha256.Sum256(text))
		return value, mapping.Counts{}
	}
	out, n := p.RestoreText(t.Kind == modeltext.Arguments, text)
	if n.Restored == 0 {
		return value, n
	}
	quoted, _ := jsontext.AppendQuote(nil, out)
	return quoted, n
}

package substitute

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
	"github.com/holdfast-dev/holdfast/internal/redact/pdftext"
)

// Binaries tells what happens to pictures, documents and sound in a request.
type Binaries uint8

const (
	// RefuseBinaries refuses them, unless they are text in which nothing is found.
	RefuseBinaries Binaries = iota
	// AllowBinaries sends them. A secret in a document refuses the request.
	AllowBinaries
	// UnsearchedBinaries sends them without a search.
	UnsearchedBinaries
)

const (
	// documentTime bounds the time for the text of one document, documentsTime that of all.
	documentTime  = time.Second
	documentsTime = 5 * time.Second

	maxNotInspected = 16
)

// checkBinary searches a picture, a document or sound, as far as the row says. It refuses a secret in a document.
func (w *replacing) checkBinary(t modeltext.Text, value []byte) error {
	v, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return err
	}
	place := partOf(t.Path)
	if w.binaries == RefuseBinaries {
		r, err := w.engine.Body("", v)
		if err != nil || r.Found() {
			return refusedAt(place, "a document or picture cannot be searched, or holds what must not leave",
				"leave it out, or write `binary: allow` in the row: then documents are searched and pictures pass")
		}
		return nil
	}
	data, isData := decodeData(v)
	isDocument := t.Document || pdftext.IsPDF(data) || !isData
	switch {
	case w.binaries == UnsearchedBinaries:
		w.noteNotInspected(place, "not searched by the row")
	case pdftext.IsPDF(data):
		return w.checkPDF(place, data)
	case utf8.Valid(data) && bytes.IndexByte(data, 0) < 0:
		return w.checkText(place, "the document in ", data)
	case isDocument:
		w.noteNotInspected(place, "a document that is no PDF")
	default:
		w.noteNotInspected(place, "a picture or sound")
	}
	return nil
}

// partOf returns the path of the part of a message that a path is in.
func partOf(path string) string {
	if end := strings.LastIndexByte(path, ']'); end > 0 {
		return path[:end+1]
	}
	return path
}

// decodeData returns the content of base64, alone or in a data: URL. isData is false for other text; then the
// content is v.
func decodeData(v []byte) (data []byte, isData bool) {
	encoded := v
	if len(v) > 5 && strings.EqualFold(string(v[:5]), "data:") {
		_, encoded, _ = bytes.Cut(v, []byte(","))
	}
	encoded = bytes.TrimRight(bytes.Map(func(c rune) rune {
		switch c {
		case ' ', '\n', '\r', '\t':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return c
	}, encoded), "=")
	data, err := base64.RawStdEncoding.AppendDecode(nil, encoded)
	if err != nil {
		return v, false
	}
	return data, true
}

// checkPDF refuses a document with a secret in its text.
func (w *replacing) checkPDF(place string, data []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), min(documentTime, documentsTime-w.documents))
	begun := time.Now()
	d := pdftext.Read(ctx, data)
	cancel()
	w.documents += time.Since(begun)
	if d.IsRead() {
		w.read.Count, w.read.Pages = w.read.Count+1, w.read.Pages+int64(d.Pages)
		for _, s := range d.Sections {
			w.read.Text += int64(len(s.Text))
		}
	}
	for _, s := range d.Sections {
		where := fmt.Sprintf("page %d of the PDF in ", s.Page)
		if s.Page == 0 {
			where = "what is on no page of the PDF in "
		}
		if err := w.checkText(place, where, s.Text); err != nil {
			return err
		}
	}
	if len(d.Gaps) > 0 {
		gaps := make([]string, len(d.Gaps))
		for i, g := range d.Gaps {
			gaps[i] = string(g)
		}
		w.noteNotInspected(place, "PDF: "+strings.Join(gaps, ", "))
	}
	return nil
}

// checkText refuses text of a document that holds a secret.
func (w *replacing) checkText(place, where string, text []byte) error {
	rules := w.findSecrets(text)
	if len(rules) == 0 {
		return nil
	}
	return refusedAt("", "cannot send the request: "+where+place+" holds a secret ("+strings.Join(rules, ", ")+")",
		"remove the secret from the document, or the document from the request; `binary: unsearched` in the row "+
			"sends documents without a search")
}

// findSecrets returns the rules that find a secret in the text of a document. Personal data is no secret, and
// neither is a word that only its name makes one.
func (w *replacing) findSecrets(text []byte) (rules []string) {
	probe := func(rule string, value []byte) []byte {
		isSecret := mapping.KindOf(rule) == "secret" &&
			!(isNamed(rule) && !isTelling(value)) && !w.request.IsPlaceholder(value)
		if isSecret && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
		return value
	}
	for _, e := range w.all {
		if _, _, err := e.WithReplace(probe).Replace(text); err != nil {
			rules = append(rules, "fault")
		}
	}
	slices.Sort(rules)
	return rules
}

// isNamed reports whether a rule finds a value by its name alone.
func isNamed(rule string) bool {
	return rule == "secret.assignment" || rule == "secret.field"
}

// isTelling reports whether a value is in one piece and differs from a word, as manuals have it after "password:".
func isTelling(value []byte) bool {
	letters, digits, others := 0, 0, 0
	for _, c := range value {
		switch {
		case c <= ' ':
			return false
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters++
		case c >= '0' && c <= '9':
			digits++
		default:
			others++
		}
	}
	return len(value) >= 8 && letters > 0 && digits > 0 && (others > 0 || len(value) >= 12)
}

// noteNotInspected notes a part that could not be searched, and why.
func (w *replacing) noteNotInspected(place, why string) {
	note := place + ": " + why
	if slices.Contains(w.notInspected, note) {
		return
	}
	if w.uninspected++; len(w.notInspected) < maxNotInspected {
		w.notInspected = append(w.notInspected, note)
	}
}

package engine

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/encoded"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// maxLevels is the number of encodings of a text, one in another, that are opened.
const maxLevels = 2

// OpenRun searches what a run of base64, base32 or hexadecimal holds. It returns the rule and the part of the run that
// is to be masked, or rule.None.
func (e *Engine) OpenRun(code []byte) (r rule.Rule, from, to int) { return e.openRun(code, maxLevels) }

func (e *Engine) openRun(code []byte, levels int) (r rule.Rule, from, to int) {
	if !encoded.MayHold(code) {
		return rule.None, 0, 0
	}
	reader := runReader{e: e, levels: levels}
	search := encoded.Search{Reader: &reader, OnlyText: true}
	over, from, to := search.Run(code)
	if r = reader.found; over && from == 0 && to == len(code) {
		from, to = search.TrimPath(code)
	}
	return r, from, to
}

// runReader reads what a run holds.
type runReader struct {
	e      *Engine
	levels int // that may be opened, with this one
	found  rule.Rule
}

func (r *runReader) ReadWhole(d []byte) (over, read bool) {
	if encoded.IsPrivateKey(d) && r.e.Class.Has(rule.PrivateKey) && !r.e.OnlyRegistered {
		r.found = rule.PrivateKey
		return true, true
	}
	if w := encoded.FindWide(d); w.Size > 0 {
		d, _ = w.Decode(d)
	}
	if !encoded.IsReadable(d) {
		return false, false
	}
	return r.readText(d, encoded.FindMedium(d) != ""), true
}

// ReadStretch reads text between other bytes. In a picture or a font only secrets count: those name their makers.
func (r *runReader) ReadStretch(d []byte, media bool) (over bool) { return r.readText(d, media) }

func (r *runReader) readText(text []byte, media bool) (over bool) {
	found := r.e.plainPass(text, false)
	if r.levels > 1 {
		var scan encoded.Scanner
		found = scan.Scan(text, true, found, func(code []byte) (rule.Rule, int, int) {
			return r.e.openRun(code, r.levels-1)
		})
	}
	// What is decoded from a random run has an address by chance, but hardly one of characters.
	found = slices.DeleteFunc(found, func(sp span.Span) bool { return !encoded.IsText(text[sp.Start:sp.End]) })
	r.found = encoded.Strongest(found, media)
	return r.found != rule.None
}

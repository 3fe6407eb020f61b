// Package format redacts documents: it chooses by type and by looking (body), reads
// JSON, forms, multipart, mail, events, URLs and header fields, and opens what is
// wrapped in them: escapes, runs of base64, archives (runs, packed, zip). peek does so
// for the ledger: it masks unreadable strings in place of refusing the document.
package format

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/encoded"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// maxReadings bounds how often a body is read: until nothing is found in what
// came out, so that a second redaction changes nothing.
const maxReadings = 4

// Body redacts the body of a message, as redact.Engine documents it.
func (e *Reader) Body(contentType string, body []byte) (r finding.Result, err error) {
	defer caught(&r, &err)
	if e.Engine == nil {
		return finding.Result{}, fault("the engine was not made by New", nil)
	}
	r = finding.Result{Out: body}
	for n := 0; ; n++ {
		d := e.nest(len(r.Out))
		next, err := d.doc(contentType, r.Out, 0, false)
		d.done()
		if err != nil {
			return finding.Result{}, err
		}
		if !next.Found() || bytes.Equal(next.Out, r.Out) {
			break
		}
		if n == maxReadings {
			return finding.Result{}, unscannable("a body in which every reading finds something more", nil)
		}
		if n == 0 {
			r.Findings = next.Findings
		} else {
			r.Findings = later(r.Findings, next, len(body))
		}
		r.Out = next.Out
	}
	if e.Literals.Find(r.Out) != nil {
		return finding.Result{}, unscannable("a registered secret that cannot be masked where it stands", nil)
	}
	return r, nil
}

// later adds the rules of a later reading that are new.
func later(list []finding.Finding, next finding.Result, size int) []finding.Finding {
	for _, rule := range next.Rules() {
		known := false
		for _, f := range list {
			known = known || f.Rule == rule
		}
		if !known {
			list = append([]finding.Finding{{Rule: rule, Offset: 0, Length: size}}, list...)
		}
	}
	return list
}

// doc redacts one document of any form: a body, a part of one, or what was
// wrapped in one. opaque says that bytes of no known form may pass: what is
// wrapped in text can be a hash or a key's identifier.
func (n *nest) doc(contentType string, b []byte, level int, opaque bool) (finding.Result, error) {
	if len(b) == 0 {
		return finding.Result{Out: b}, nil
	}
	kind, params := mediaType(contentType)
	if boundary := boundaryOf(kind, params, b); boundary != "" {
		return n.multipart(boundary, b, level, opaque)
	}
	if isMessage(kind, b) {
		return n.message(b, level, opaque)
	}
	if err := readableCharset(params["charset"], b); err != nil {
		return finding.Result{}, err
	}
	switch sniff(b) {
	case formPacked:
		return n.sealed(b, level, opaque)
	case formSealed:
		return finding.Result{}, unscannable(sealedName(b)+" data", nil)
	case formWide:
		return n.wideDoc(contentType, b, level, opaque)
	case formMedia:
		return n.readableIn(mediaName(b), b, level, opaque)
	case formBinary:
		if encoded.IsPrivateKey(b) {
			return finding.Result{}, unscannable("a private key in DER", nil)
		}
		if opaque {
			return n.readableIn("binary", b, level, opaque)
		}
		if params["charset"] == "" || bytes.IndexByte(b, 0) >= 0 {
			return finding.Result{}, unscannable("binary data of no known form", nil)
		}
		// Letters of a declared 8-bit character set.
	}
	if err := behindOthers(b); err != nil {
		return finding.Result{}, err
	}
	return n.textual(kind, b, level)
}

// textual redacts what is written in characters.
func (n *nest) textual(kind string, b []byte, level int) (finding.Result, error) {
	if head := []byte("\xef\xbb\xbf"); bytes.HasPrefix(b, head) {
		r, err := n.textual(kind, b[len(head):], level)
		return shifted(r, b, len(head)), err
	}
	if r, is, err := n.strict(b, level); is || err != nil {
		return r, err
	}
	if looksJSON(b) && depth(b) > maxDepth {
		return finding.Result{}, unscannable(fmt.Sprintf("JSON nested more than %d levels deep", maxDepth), nil)
	}
	switch {
	case kind == "application/x-www-form-urlencoded" && bytes.IndexByte(b, '=') > 0, kind != "text/event-stream" &&
		looksForm(b):
		return n.formBody(b, level)
	case kind == "text/event-stream" || looksEvents(b):
		return n.events(b, level)
	case looksLines(b):
		return n.lines(b, level)
	case looksMarkup(b) && n.e.Masks == mask.Pseudonyms:
		// A pseudonym would be a tag.
		plain := *n.e
		plain.Engine = plain.WithMasks(mask.Egress)
		sub := *n
		sub.e = &plain
		r, err := sub.text(b, level)
		n.left, n.opened = sub.left, sub.opened
		return r, err
	}
	return n.text(b, level)
}

// shifted puts the n bytes that were left out back before r.
func shifted(r finding.Result, b []byte, n int) finding.Result {
	if !r.Found() {
		return finding.Result{Out: b}
	}
	for i := range r.Findings {
		r.Findings[i].Offset += n
	}
	r.Out = append(b[:n:n], r.Out...)
	return r
}

// sealed reads compressed data. It cannot be written again.
func (n *nest) sealed(b []byte, level int, opaque bool) (finding.Result, error) {
	list, err := n.packed(b, level, opaque)
	if err == errNotPacked {
		if isBinary(b) {
			if opaque {
				return n.readableIn("binary", b, level, opaque)
			}
			return finding.Result{}, unscannable("binary data of no known form", nil)
		}
		return n.textual("", b, level)
	}
	if err != nil || len(list) == 0 {
		return finding.Result{Out: b}, err
	}
	return closed(packNames[packing(b)]+" data", list, b, opaque)
}

// closed answers for findings in what cannot be written again: a refusal, or
// where it stands in text that is masked as a whole, the findings.
func closed(what string, list []finding.Finding, b []byte, opaque bool) (finding.Result, error) {
	r := finding.Result{Out: b, Findings: list}
	if !opaque {
		return finding.Result{}, unscannable(what+" in which there is something to mask: "+strings.Join(r.Rules(), ", "), nil)
	}
	return r, nil
}

// narrow reads b as a reader does that ignores marks and NULs: to it, characters of
// one byte after them are another text.
func (n *nest) narrow(b []byte, level int) (list []finding.Finding, failed error) {
	stretches(b, func(_ int, s []byte) bool {
		var spans []span.Span
		if spans, failed = n.spans(s, level); failed == nil {
			list = finding.FromSpans(spans, 0, list)
		}
		return failed == nil
	})
	return list, failed
}

// readableIn reads what is readable between other bytes, and those without
// NUL too, for UTF-16.
func (n *nest) readableIn(name string, b []byte, level int, opaque bool) (finding.Result, error) {
	list, failed := n.narrow(b, level)
	if failed == nil && bytes.IndexByte(b, 0) >= 0 {
		var more []finding.Finding
		more, failed = n.narrow(bytes.ReplaceAll(b, []byte{0}, nil), level)
		list = append(list, more...)
	}
	if failed == nil {
		failed = behindOthers(b)
	}
	if failed == nil && name == "PNG" {
		var more []finding.Finding
		more, failed = n.pngTexts(b, level)
		list = append(list, more...)
	}
	if failed != nil || len(list) == 0 {
		return finding.Result{Out: b}, failed
	}
	return closed(name+" data", list, b, opaque)
}

// wideDoc redacts UTF-16 and UTF-32.
func (n *nest) wideDoc(contentType string, b []byte, level int, opaque bool) (finding.Result, error) {
	if level >= maxLevels {
		return finding.Result{}, unscannable("UTF-16 wrapped more than 4 times", nil)
	}
	if list, err := n.narrow(b, level); err != nil || len(list) > 0 {
		if err != nil {
			return finding.Result{}, err
		}
		return closed("what begins as UTF-16 and may be read as other text", list, b, opaque)
	}
	w := encoded.FindWide(b)
	text, rest := w.Decode(b)
	if err := n.spend(len(text)); err != nil {
		return finding.Result{}, err
	}
	kind, _ := mediaType(contentType)
	if isBinary(text) {
		if opaque {
			return finding.Result{Out: b}, nil
		}
		return finding.Result{}, unscannable("binary data of no known form", nil)
	}
	r, err := n.textual(kind, text, level+1)
	if err != nil || !r.Found() {
		return finding.Result{Out: b}, err
	}
	d := draft{in: b}
	d.whole(0, len(b), r.Findings)
	d.replace(0, len(b), w.Encode(b, r.Out, rest))
	return d.result(), nil
}

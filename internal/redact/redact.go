// Package redact masks what must not be written, sent or shown. The ledger accepts
// only what an Engine made (spec 003 section 1.7, D13, D14a).
//
// The packages below it, lowest first:
//
//   - rule, span, finding: the names of rules, stretches of text, results
//   - char, cursor, escape: reading bytes, words, groups of digits and escapes
//   - mask: the masks, and what is one already
//   - checksum, fieldname, mailhost: check digits; names whose value is secret; hosts of addresses
//   - literal, memory: registered secrets, and pages that reach no disk
//   - certain: what its own form or a telling name shows, from API keys to IBANs
//   - encoded: base64, base32 and hexadecimal in text
//   - engine: passes over a text until nothing more is found
//   - format: JSON, forms, multipart, mail, events, archives, URLs, header fields
//   - stream: text in pieces
//
// All scanners are written by hand. Each skips from one telling byte (a digit, "@",
// ":", "_") to the next and looks at a bounded window around it, so time is linear in
// the text. They work on bytes; invalid UTF-8 hides nothing.
//
// doc/redaction.md says what is masked, how well, and what is not.
package redact

import (
	"bytes"
	"io"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/format"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
	"github.com/holdfast-dev/holdfast/internal/redact/stream"
)

// Record is a document that passed the engine. The zero Record is empty and
// is refused by every store; only an Engine makes another (D14a).
type Record struct{ b []byte }

// Bytes returns the document. The caller must not change it.
func (r Record) Bytes() []byte { return r.b }

// Text redacts text of any kind. It opens base64, base32 and hexadecimal two levels
// deep. If the engine is not one that New made, or faults, the whole text is masked
// under the rule "fault".
func (e *Engine) Text(s []byte) Result {
	if e == nil {
		return engine.Hidden(s)
	}
	return e.text.Text(s)
}

// Body redacts the body of a message: JSON, JSON lines, server-sent events, a
// form, multipart, a message of mail, XML, HTML or plain text, in UTF-8, UTF-16 or UTF-32.
// contentType is the header's value and only a hint: the bytes decide where
// they tell. A valid document stays valid, and what is not masked keeps its
// bytes; a value that had to be decoded is encoded again.
//
// What is wrapped is opened, four levels deep: escapes, JSON in strings,
// base64, base64url, base32 and hexadecimal runs of 24 bytes or more (masked whole
// where something is found inside), gzip, zlib, bzip2 and zip. In pictures,
// sound and fonts the readable stretches are read.
//
// The error is a RedactionError, and nothing may be shown or sent then. Rule
// "redact/unscannable": something in the body cannot be read to its end (it
// expands too far, is encrypted, wrapped too deep or of a form that is not
// known), or something was found where it cannot be masked, inside compressed
// data or a picture. Rule "redact/duplicate": a name stands twice in one JSON
// object. Rule "redact": the engine is not one that New made, or it faulted.
//
// Findings are those of the first reading, as JSON gives them; what is masked
// as a whole, a run or a value that was decoded, has one for each rule. What
// only a later reading found stands at the whole body.
func (e *Engine) Body(contentType string, body []byte) (Result, error) {
	return e.reader().Body(contentType, body)
}

// BodyOf redacts as Body does, but finds only that class: of secrets and personal data one class stays as it
// is. Within a text, personal data in a secret is part of the secret. The engine must be one that New made.
func (e *Engine) BodyOf(class Class, contentType string, body []byte) (Result, error) {
	r := e.reader()
	switch {
	case e == nil || class == AnyClass:
	case class == OnlySecrets:
		r = e.secrets
	default:
		r = e.personal
	}
	if r == nil {
		r = new(format.Reader)
	}
	return r.Body(contentType, body)
}

// Replace reads one text of a message, opened as JSON opens strings, and has the function of WithReplace
// write the replacement of each finding. A text that is a JSON document is read as one, and stays
// one. unread says that something wrapped in the text could not be opened completely, and was read
// unopened. The error is a RedactionError: the engine was not made by WithReplace, or it faulted.
func (e *Engine) Replace(text []byte) (r Result, unread bool, err error) {
	return e.reader().Replace(text)
}

// JSON redacts one JSON document: names, strings (read with their escapes
// written out) and numbers. Under a name that says its value is secret or
// personal every string and number is masked, nested ones included; so is the
// "value" beside a "name" that says so. What is left keeps its bytes, and a
// valid document stays valid. Anything else than one JSON document of at most
// 10 000 levels is redacted as text. Names and strings are opened for text
// in base64 and escapes, as Body opens them; what is not completely readable
// there is masked. The error is a RedactionError: the engine is not one that New
// made, or it faulted; then nothing may be shown.
func (e *Engine) JSON(doc []byte) (Result, error) { return e.reader().JSON(doc) }

// Seal redacts a ledger leaf as JSON does and makes it a Record, which owns
// its bytes. The strings and numbers directly under a top-level name in
// exempt (an id, a hash, an identity) are passed unread where they are at
// most 1024 bytes long; registered literals are masked there too. A path of two
// names, "data.signature", is passed where it holds a signature or a signed
// document in base64, but for registered literals; else it is read as text and not
// opened for what is wrapped in it. The leaf
// must be strict JSON (RFC 7493: UTF-8, no name twice) of at most 64 levels,
// before and after, else the error is a RedactionError.
func (e *Engine) Seal(doc []byte, exempt ...string) (Record, error) {
	b, err := e.reader().Seal(doc, exempt...)
	if err != nil {
		return Record{}, err
	}
	return Record{b}, nil
}

// Header redacts the fields of a message's head, an http.Header among them:
// names, and each value by its name. Under one that says so (Authorization,
// X-Api-Key) the value is masked whole; of cookies the values are, not their
// names; in a URL only what must be. What cannot be read to its end is masked
// whole, under the rule "fault". Findings are in the order of the names, their
// offsets those of the one value or name. Where nothing was found the answer
// is h itself, else a new map.
func (e *Engine) Header(h map[string][]string) (map[string][]string, []Finding) {
	return e.reader().Header(h)
}

// URL redacts a URL in any part: credentials before the host, the host, the
// path, the query and the fragment, also where they are percent-encoded, twice
// or more. A value under a name that says it is secret or personal is masked.
// Masks are percent-encoded, so that a URL stays one; a host is replaced by
// "redacted.invalid". Findings are offsets in the URL as it is given. What
// cannot be read to its end is masked whole, under the rule "fault".
func (e *Engine) URL(raw string) (out string, list []Finding) { return e.reader().URL(raw) }

// Mask returns s with a mask in place of each of findings, which are in order, apart and made by others, and the parts
// of s that were masked. What is a mask already stays.
func (e *Engine) Mask(s []byte, findings []Finding) ([]byte, []Finding) {
	if e == nil || e.text == nil {
		r := engine.Hidden(s)
		return r.Out, r.Findings
	}
	var spans []span.Span
	for _, f := range findings {
		spans = appendUnmasked(spans, s, f)
	}
	if spans == nil {
		return s, nil
	}
	out, _ := e.text.Apply(s, spans)
	return out, finding.FromSpans(spans, 0, nil)
}

// appendUnmasked appends the parts of a finding that are not masks, and have more than spaces.
func appendUnmasked(spans []span.Span, s []byte, f Finding) []span.Span {
	r := rule.Rule(max(0, slices.Index(rule.Names[:], f.Rule)))
	end := min(f.Offset+f.Length, len(s))
	for from := max(0, f.Offset); from < end; {
		to := from
		for to < end && !mask.IsWithin(s, to, to+1) {
			to++
		}
		if len(bytes.TrimSpace(s[from:to])) > 0 {
			spans = append(spans, span.Span{Start: from, End: to, Rule: r})
		}
		from = to
		for from < end && mask.IsWithin(s, from, from+1) {
			from++
		}
	}
	return spans
}

// Stream returns a stream that writes to w.
func (e *Engine) Stream(w io.Writer) *Stream {
	if e == nil {
		return stream.Open(nil, w)
	}
	return stream.Open(e.text, w)
}

// reader returns what redacts documents, or what refuses them.
func (e *Engine) reader() *format.Reader {
	if e == nil || e.bodies == nil {
		return new(format.Reader)
	}
	return e.bodies
}

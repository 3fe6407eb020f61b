// Package substitute puts placeholders into requests to models, and restores them in answers (D13a). It
// knows which parts of a document are texts, and package mapping the values of placeholders. It is pure, bytes in
// and bytes out, except that it bounds the time of documents.
package substitute

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// MaxFindings is the number of findings of one request that are kept.
const MaxFindings = 1000

// Request is a request in which placeholders are in place of what must not leave.
type Request struct {
	// Body is the body; it is the one that was given if nothing was found.
	Body  []byte
	Found []redact.Finding
	// Kinds counts what was replaced, by kind (mapping.KindOf).
	Kinds map[string]int
	// Placeholders are those by which the answer is restored.
	Placeholders *mapping.Snapshot
	// Uninspected is the number of parts that could not be searched, such as pictures; NotInspected are the places
	// of the first ones, with reasons.
	Uninspected  int
	NotInspected []string
	// Documents are the documents of which all text was read.
	Documents dialect.Documents
}

// Replace puts placeholders of a session in place of what e finds in the texts of a request's body. Nothing but
// texts is changed, except that a registered secret is replaced at every place. The body is not changed. finder, if
// not nil, finds names and addresses in the texts; its error is Replace's.
//
// Errors are *holdfast.Error: those of modeltext.ListTexts, and KindDomainBlocked for secrets in parts that must not
// be changed, with their place. Any other error is that of an engine or a finder that failed.
func Replace(
	e *redact.Engine, finder detector.Finder, s *mapping.Session, d dialect.Dialect, body []byte, binaries Binaries,
) (*Request, error) {
	texts, err := modeltext.ListTexts(d, body)
	if err != nil {
		return nil, err
	}
	w := &replacing{engine: e, finder: finder, binaries: binaries, body: body, texts: texts, session: s}
	if err := w.replaceAll(); err != nil {
		return nil, err
	}
	return &Request{Body: w.out, Found: w.found, Kinds: w.request.Kinds, Placeholders: w.request.Snapshot(),
		Uninspected: w.uninspected, NotInspected: w.notInspected, Documents: w.read}, nil
}

// replacing is the state of one Replace.
type replacing struct {
	engine   *redact.Engine
	finder   detector.Finder // nil for none
	binaries Binaries
	body     []byte
	texts    []modeltext.Text
	session  *mapping.Session

	request *mapping.Request
	first   *redact.Engine   // the row's, which writes placeholders
	again   []*redact.Engine // find the session's values
	all     []*redact.Engine // the row's, and again
	// detected finds what the finder found; nil for nothing.
	detected *redact.Engine
	values   [][]byte // of texts, decoded; of data and of unsearched texts unchanged
	changed  []bool
	found    []redact.Finding
	out      []byte

	uninspected  int
	notInspected []string
	documents    time.Duration // that documents took so far
	read         dialect.Documents
}

// isSearched reports whether a text of a request is searched.
func isSearched(k modeltext.TextKind) bool {
	return k != modeltext.Signed && k != modeltext.Binary
}

// isString reports whether a JSON value is a string; any other text is a separate document.
func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

func (w *replacing) replaceAll() error {
	w.values, w.changed = make([][]byte, len(w.texts)), make([]bool, len(w.texts))
	var own [][]byte // what an agent or a person wrote
	for i, t := range w.texts {
		w.values[i] = w.body[t.Start:t.End]
		if isString(w.values[i]) && t.Kind != modeltext.Binary {
			v, err := jsontext.AppendUnquote(nil, w.values[i])
			if err != nil {
				return err
			}
			w.values[i] = v
		}
		if isSearched(t.Kind) && t.Kind != modeltext.Served && !t.Thought {
			own = append(own, w.values[i])
		}
	}
	w.request = w.session.Begin(own, w.engine.HasRegistered)
	w.first = w.engine.WithReplace(w.request.Replace)
	w.request.SearchWith(w.searchDecoded)
	if err := w.searchTexts(w.first); err != nil {
		return err
	}
	if err := w.detectTexts(); err != nil {
		return err
	}
	// What was found at one place goes nowhere else either.
	again, err := w.request.FindAgain()
	if err != nil {
		return err
	}
	w.again = again
	w.replaceEncoded()
	for _, e := range again {
		if err := w.searchTexts(e); err != nil {
			return err
		}
	}
	w.all = append([]*redact.Engine{w.engine}, again...)
	if w.detected != nil {
		w.all = append(w.all, w.detected)
	}
	if err := w.checkFixed(); err != nil {
		return err
	}
	if w.request.HasLost() {
		return &holdfast.Error{Kind: holdfast.KindPayloadTooLarge,
			Why:  "the request has more secrets and personal data than placeholders can be kept for",
			Hint: "send less at a time"}
	}
	w.spliceTexts()
	return w.hideRegistered()
}

// searchDecoded returns the content of an encoded text with placeholders, nil if it cannot be searched.
func (w *replacing) searchDecoded(text []byte) []byte {
	out := text
	for _, e := range append([]*redact.Engine{w.first}, w.again...) {
		r, _, err := e.Replace(out)
		if err != nil {
			return nil
		}
		out = r.Out
	}
	return out
}

// replaceEncoded replaces encodings of the session's values in the texts.
func (w *replacing) replaceEncoded() {
	for i, t := range w.texts {
		if !isSearched(t.Kind) {
			continue
		}
		if out, found := w.request.ReplaceEncoded(w.values[i]); found != nil {
			w.values[i], w.changed[i] = out, true
			w.noteFound(found)
		}
	}
}

// searchTexts has an engine replace what it finds in the texts.
func (w *replacing) searchTexts(engine *redact.Engine) error {
	for i, t := range w.texts {
		if !isSearched(t.Kind) {
			continue
		}
		r, unread, err := engine.Replace(w.values[i])
		if err != nil {
			return err
		}
		if unread {
			w.noteNotInspected(t.Path, "wrapped too deep, or damaged")
		}
		if !r.Found() || bytes.Equal(r.Out, w.values[i]) {
			continue
		}
		w.values[i], w.changed[i] = r.Out, true
		w.noteFound(r.Findings)
	}
	return nil
}

// detectTexts has the finder search the texts, and replaces what it finds. A finding that overlaps a placeholder is
// left out.
func (w *replacing) detectTexts() error {
	if w.finder == nil {
		return nil
	}
	var found detector.Texts
	keep := func(_ string, text []byte) []byte { return text }
	collecting := found.Collect(w.engine).WithReplace(keep)
	for i, t := range w.texts {
		if isSearched(t.Kind) || t.Kind == modeltext.Signed && !w.session.IsSigned(sha256.Sum256(w.values[i])) {
			if _, _, err := collecting.Replace(w.values[i]); err != nil {
				return err
			}
		}
	}
	if err := found.Find(context.Background(), w.finder); err != nil || !found.HasFindings() {
		return err
	}
	w.detected = found.ApplyExcept(w.engine, w.request.FindPlaceholders)
	return w.searchTexts(w.detected.WithReplace(w.request.Replace))
}

// noteFound counts findings, and keeps the first ones.
func (w *replacing) noteFound(list []redact.Finding) {
	w.request.Count(list)
	w.found = append(w.found, list[:min(len(list), max(0, MaxFindings-len(w.found)))]...)
}

// checkFixed refuses secrets in parts that must not be changed: signed parts and documents.
func (w *replacing) checkFixed() error {
	for i, t := range w.texts {
		switch t.Kind {
		case modeltext.Signed:
			if w.session.IsSigned(sha256.Sum256(w.values[i])) {
				continue
			}
			if rules := w.findIn(w.values[i]); len(rules) > 0 {
				return refusedAt(t.Path, "a part that the provider signed holds what must not leave: "+strings.Join(rules, ", "),
					"start a new session: a signed part cannot be changed")
			}
		case modeltext.Binary:
			if err := w.checkBinary(t, w.values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// findIn returns the rules that find something in a text that cannot be changed. What is a placeholder is not
// counted.
func (w *replacing) findIn(value []byte) (rules []string) {
	probe := func(rule string, text []byte) []byte {
		isOurs := w.request.IsPlaceholder(text) || bytes.HasSuffix(text, []byte(mapping.MailDomain))
		if !isOurs && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
		return text
	}
	for _, e := range w.all {
		if _, _, err := e.WithReplace(probe).Replace(value); err != nil {
			rules = append(rules, "fault")
		}
	}
	slices.Sort(rules)
	return rules
}

func refusedAt(path, why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "redact/place",
		Why: strings.TrimPrefix(path+": "+why, ": "), Hint: hint}
}

// spliceTexts writes the body with the texts that were changed.
func (w *replacing) spliceTexts() {
	w.out = w.body
	if !slices.Contains(w.changed, true) {
		return
	}
	w.out = make([]byte, 0, len(w.body)+len(w.body)/8)
	at := 0
	for i, t := range w.texts {
		if !w.changed[i] {
			continue
		}
		w.out = append(w.out, w.body[at:t.Start]...)
		if at = t.End; !isString(w.body[t.Start:t.End]) {
			w.out = append(w.out, w.values[i]...)
			continue
		}
		w.out, _ = jsontext.AppendQuote(w.out, w.values[i])
	}
	w.out = append(w.out, w.body[at:]...)
}

// hideRegistered replaces registered secrets outside of the texts, which nothing else searches.
func (w *replacing) hideRegistered() error {
	if !w.engine.HasRegistered(w.out) {
		return nil
	}
	r, _, err := w.engine.Registered().WithReplace(w.request.Replace).Replace(w.out)
	if err != nil {
		return err
	}
	w.request.Count(r.Findings)
	w.found = append(w.found, r.Findings...)
	w.out = r.Out
	return nil
}

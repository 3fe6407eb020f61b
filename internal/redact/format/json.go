package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/checksum"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/literal"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const (
	// maxSealDepth bounds the nesting of a ledger leaf.
	maxSealDepth = 64
	// maxNested bounds JSON inside strings inside JSON.
	maxNested = 4
	// maxExempt bounds a string that an exempt key may hold unread.
	maxExempt = 1024
)

// JSON redacts one JSON document, as redact.Engine documents it.
func (e *Reader) JSON(doc []byte) (r finding.Result, err error) {
	defer caught(&r, &err)
	if e.Engine == nil {
		return finding.Result{}, fault("the engine was not made by New", nil)
	}
	if !valid(doc) {
		return e.WithOpening().Text(doc), nil
	}
	n := e.peek(len(doc))
	defer n.done()
	w := n.walker(doc)
	w.walk()
	n.spare = w
	return w.result(), nil
}

// Seal returns the bytes of a record, as redact.Engine documents it. The caller owns
// them.
func (e *Reader) Seal(doc []byte, exempt ...string) (out []byte, err error) {
	defer caught(&out, &err)
	if e.Engine == nil {
		return nil, fault("the engine was not made by New", nil)
	}
	if err := strict(doc); err != nil {
		return nil, err
	}
	n := e.peek(len(doc))
	defer n.done()
	w := n.walker(doc)
	w.exempt.exempting(exempt)
	w.limit = maxSealDepth
	w.walk()
	if w.deep {
		return nil, fault("the record is nested more than 64 levels deep", nil)
	}
	r := w.result()
	n.spare = w
	if !r.Found() {
		return bytes.Clone(doc), nil
	}
	if err := strict(r.Out); err != nil {
		return nil, err
	}
	return r.Out, nil
}

func strict(doc []byte) error {
	if isStrict(doc) {
		return nil
	}
	return fault("the record is not one strict JSON document", nil)
}

func fault(why string, err error) error {
	return &holdfast.Error{
		Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact", Why: why, Err: err,
		Hint: "nothing was written; see the log for the cause",
	}
}

// caught turns a panic into a RedactionError and takes back the result.
func caught[T any](out *T, err *error) {
	if p := recover(); p != nil {
		var zero T
		*out, *err = zero, fault("the redaction engine faulted", fmt.Errorf("panic: %v", p))
	}
}

// frame is one open object or array.
type frame struct {
	object bool
	// name says that the next string is a member's name.
	name bool
	// inherited is what the names above say of everything in here, own what
	// the current member's name says, pair what a "name" member announced.
	inherited, own, pair fieldname.Kind
	// labels and holds say that the current member is a "name" or "value".
	labels, holds bool
	form          namedForm
	exempt        bool
	// plain says that names in here tell nothing: of what a model counts and scores.
	plain bool
	// plainMember is plain for the current member.
	plainMember bool
	// within begins the exempt paths below the current member, and is empty
	// where there are none; shut says that the member is one of those.
	within string
	shut   bool
}

// walker reads a document that is known to be valid.
type walker struct {
	draft
	e       *Reader
	exempt  exemptions
	limit   int
	deep    bool
	stack   []frame
	scratch []byte
	names   map[string]int
	nested  int
	array   [32]frame

	// nest opens what strings are wrapped in; err ends the walk of a body.
	nest *nest
	err  error
}

func (w *walker) walk() {
	w.stack = w.array[:0]
	in := w.in
	for i := 0; i < len(in) && w.err == nil; {
		switch c := in[i]; c {
		case '{', '[':
			if w.limit > 0 && len(w.stack) == w.limit {
				w.deep = true
				return
			}
			f := w.openFrame(c, i)
			// An exempt list passes its own scalars, not what is deeper.
			f.exempt = c == '[' && len(w.stack) == 1 && w.stack[0].exempt
			w.stack = append(w.stack, f)
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
		case ',':
			t := w.top()
			if t.name = t.object; t.object {
				t.own, t.labels, t.holds, t.exempt, t.plainMember = fieldname.None, false, false, false, false
			}
		case '"':
			i = w.text(i)
			continue
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i = w.number(i)
			continue
		}
		i++
	}
}

// outside stands for the frame around the document.
func (w *walker) top() *frame {
	if len(w.stack) == 0 {
		return &frame{}
	}
	return &w.stack[len(w.stack)-1]
}

// kind is what the names say of the value that comes now.
func (w *walker) kind() fieldname.Kind {
	if len(w.stack) == 0 || w.e.OnlyRegistered {
		return fieldname.None
	}
	t := &w.stack[len(w.stack)-1]
	k := t.inherited
	switch {
	case t.exempt:
		return fieldname.None
	case t.own != fieldname.None:
		k = t.own
	case t.holds && t.pair != fieldname.None:
		k = t.pair
	}
	return w.e.SoughtKind(k)
}

// text reads the string whose quote stands at i and returns its end.
func (w *walker) text(i int) int {
	end := i + 1 + bytes.IndexByte(w.in[i+1:], '"')
	escaped := bytes.IndexByte(w.in[i+1:end], '\\') >= 0
	if escaped {
		for end = i + 1; w.in[end] != '"'; end++ {
			if w.in[end] == '\\' {
				end++
			}
		}
	}
	s := w.in[i+1 : end]
	if end++; escaped {
		w.scratch, _ = jsontext.AppendUnquote(w.scratch[:0], w.in[i:end])
		s = w.scratch
	}
	if t := w.top(); t.name {
		t.name = false
		w.member(t, i, end, s, escaped)
	} else {
		w.value(t, i, end, s, escaped)
	}
	return end
}

// member judges a name.
func (w *walker) member(t *frame, i, end int, s []byte, escaped bool) {
	known := w.nest.knownName(s)
	judged := known != nil && known.is(s)
	if judged {
		t.own = known.kind
	} else if had := w.nest.familiar().of(s); had != nil {
		judged, t.own = true, had.kind
	} else {
		t.own = fieldname.Of(s)
	}
	w.nameForm(t, i, end, s)
	t.labels, t.holds = isLabelName(s), isValueName(s)
	if len(w.exempt.list) > 0 && len(w.stack) <= 2 {
		w.exempts(t, s)
	}
	kind := t.own
	w.applyPlace(t, s, i, end)
	if judged || w.e.Finder != nil {
		return
	}
	out := w.judge(i, end, s, escaped)
	if out == nil {
		if known != nil {
			known.keep(s, kind)
		}
		if w.err == nil && !t.shut && len(w.in) < maxTeaching { // what is shut is not opened
			w.nest.familiar().keep(s, kind)
		}
		return
	}
	if t.own == fieldname.None {
		t.own = fieldname.Of(out) // what a second reading would take it for
	}
	w.rename(i, end, out)
}

// exempts says what the exempt keys make of the member s: at the top, passed or
// leading to paths; below such a one, shut.
func (w *walker) exempts(t *frame, s []byte) {
	if len(w.stack) == 1 {
		t.exempt, t.within = w.exempt.passes(s), w.exempt.within(s)
		return
	}
	t.shut = w.exempt.holds(w.stack[0].within, s)
}

// rename writes a masked name. Two that were different stay different: from
// the second on they are numbered.
func (w *walker) rename(i, end int, out []byte) {
	if w.e.Replacement != nil { // of two different names there are two
		q, _ := jsontext.AppendQuote(nil, out)
		w.replace(i, end, q)
		return
	}
	if w.names == nil {
		w.names = namesOf(w.in)
	}
	n := w.names[string(out)]
	for taken := n > 0; taken; {
		n++
		_, taken = w.names[string(numbered(out, n))]
	}
	w.names[string(out)] = max(n, 1)
	if n > 0 {
		out = numbered(out, n)
		w.names[string(out)] = 1
	}
	q, _ := jsontext.AppendQuote(nil, out)
	w.replace(i, end, q)
}

func numbered(name []byte, n int) []byte {
	return strconv.AppendInt(append(slices.Clip(name), " #"...), int64(n), 10)
}

// namesOf returns the names of all members of a valid document, decoded.
func namesOf(doc []byte) map[string]int {
	names := map[string]int{}
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		start := i
		for i++; doc[i] != '"'; i++ {
			if doc[i] == '\\' {
				i++
			}
		}
		after := i + 1
		for after < len(doc) && char.Class[doc[after]]&char.Space != 0 {
			after++
		}
		if after < len(doc) && doc[after] == ':' {
			name, _ := jsontext.AppendUnquote(nil, doc[start:i+1])
			names[string(name)] = 1
		}
	}
	return names
}

// judge redacts the string s, which stands at [i, end), notes what was found
// and returns what became of it, or nil where that is s.
func (w *walker) judge(i, end int, s []byte, escaped bool) []byte {
	if len(s) <= maxWord && isSmallWord(s) && w.e.OnlyRules() {
		return nil
	}
	if !w.nest.peeks {
		return w.open(i, end, s, escaped)
	}
	out, spans := w.peek(s)
	if spans == nil {
		return nil
	}
	if escaped {
		w.whole(i, end, finding.FromSpans(spans, 0, nil))
	} else {
		w.findings = finding.FromSpans(spans, i+1, w.findings)
	}
	return out
}

// peek opens s, unless it stands at an exempt path: what is wrapped in there is
// somebody's word, which is worth nothing when it is changed.
func (w *walker) peek(s []byte) ([]byte, []span.Span) {
	if t := w.top(); t.shut {
		return w.e.Clean(s)
	}
	return w.nest.peek(s, w.nested)
}

// isSigned says that s is a signature of 64 bytes, or a document that was signed,
// in base64. To a search such text is noise, in which one out of some ten
// thousand has what looks like personal data; and what nobody opens shows nothing.
func isSigned(s []byte) bool {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Strict().Decode(raw, s)
	raw = raw[:n]
	return err == nil && (n == 64 || n > 2 && raw[0] == '{' && valid(raw))
}

// isHash reports whether s is a SHA-256 in lower-case hexadecimal. Decoded, a few of them look as if they had
// personal data.
func isHash(s []byte) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// maxWord is the length of a string in which no search finds anything where
// it is all small letters and "_": most names of members, and many values.
const maxWord = 16

func isSmallWord(s []byte) bool {
	for _, c := range s {
		if char.Class[c]&char.Lower == 0 && c != '_' {
			return false
		}
	}
	return true
}

// open is judge for a body, where a string may be wrapped.
func (w *walker) open(i, end int, s []byte, escaped bool) []byte {
	r, exact, err := w.nest.leaf(s, w.nested)
	if err != nil {
		w.err = within(err, "the string at byte "+strconv.Itoa(i))
		return nil
	}
	if !r.Found() {
		return nil
	}
	if escaped || !exact {
		w.whole(i, end, r.Findings)
	} else {
		for _, f := range r.Findings {
			w.findings = append(w.findings, finding.Finding{Rule: f.Rule, Offset: i + 1 + f.Offset, Length: f.Length})
		}
	}
	return r.Out
}

// value judges a string that is no name.
func (w *walker) value(t *frame, i, end int, s []byte, escaped bool) {
	if t.labels {
		t.pair = fieldname.Of(s)
	} else if t.holds && t.pair == fieldname.None && t.object {
		t.pair = w.labelAhead(end)
	}
	k := w.kind()
	if !t.object { // ["--token", "x"]
		if len(s) > 0 && s[0] == '-' {
			k = w.e.SoughtKind(t.inherited)
		}
		t.own = fieldname.OfFlag(s)
	}
	if t.exempt && len(s) <= maxExempt || t.shut && (isSigned(s) || isHash(s)) {
		if w.e.Literals.Find(s) == nil {
			return
		}
	} else if k != fieldname.None {
		if mask.Len(s) == len(s) {
			return
		}
		if fieldname.CanHold(k, s) {
			w.hide(i, end, k, s)
			return
		}
	}
	if w.hideForm(t, i, end, s) {
		return
	}
	if w.nest.peeks && len(s) > 2 && (s[0] == '{' || s[0] == '[') && w.nested < maxNested && w.inner(i, end, s) {
		return
	}
	out := w.judge(i, end, s, escaped)
	if out == nil {
		return
	}
	if t.labels && t.pair == fieldname.None {
		t.pair = fieldname.Of(out)
	}
	q, _ := jsontext.AppendQuote(nil, out)
	w.replace(i, end, q)
}

// inner redacts a string that is a JSON document itself, as the results of
// tools often are, and says whether it was one.
func (w *walker) inner(i, end int, s []byte) bool {
	if !valid(s) {
		return false
	}
	sub := w.nest.walker(s)
	sub.nested = w.nested + 1
	sub.walk()
	r := sub.result()
	w.nest.spare = sub
	if !r.Found() {
		return true
	}
	w.whole(i, end, r.Findings)
	q, _ := jsontext.AppendQuote(nil, r.Out)
	w.replace(i, end, q)
	return true
}

// isStrict says whether doc is one JSON document without doubt (RFC 7493).
func isStrict(doc []byte) bool { return sureJSON(doc, true) || jsontext.Value(doc).IsValid() }

// valid says whether doc is one JSON document, strict or not.
func valid(doc []byte) bool {
	return sureJSON(doc, false) ||
		jsontext.Value(doc).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// hide masks a whole value, which reads s, for its name's sake.
func (w *walker) hide(i, end int, k fieldname.Kind, s []byte) {
	r := rule.PIIField
	if k.IsSecret() {
		r = rule.Field
	}
	w.findings = append(w.findings, finding.Finding{Rule: rule.Names[r], Offset: i, Length: end - i})
	w.replace(i, end, w.newMask(i, r, s))
}

// newMask returns the value in place of the one at i, in which r found text. A mask is a string; what
// replaces a number stays one.
func (w *walker) newMask(i int, r rule.Rule, text []byte) []byte {
	m := w.e.AppendMask([]byte{'"'}, r, text)
	if w.e.Replacement == nil {
		return append(m, '"')
	}
	if m = m[1:]; w.in[i] != '"' && jsontext.Value(m).Kind() == jsontext.KindNumber && jsontext.Value(m).IsValid() {
		return m
	}
	q, _ := jsontext.AppendQuote(nil, m)
	return q
}

// number reads the number at i and returns its end. What is masked becomes 0, so that
// it stays a number.
func (w *walker) number(i int) int {
	end := i + 1
	for end < len(w.in) && isNumberByte(w.in[end]) {
		end++
	}
	t := w.top()
	k := w.kind()
	if !t.object {
		t.own = fieldname.None
	}
	if k != fieldname.None && k != fieldname.Person && k != fieldname.Key && k != fieldname.Likely &&
		!(k == fieldname.Secret && t.own == k && end-i <= maxShort) {
		w.maskNumber(i, end, fieldRule(k))
		return end
	}
	if t.exempt && end-i <= maxExempt && w.e.Literals == nil || end-i < literal.MinLen {
		return end
	}
	d := w.in[i:end]
	if !t.exempt && !w.e.OnlyRegistered {
		if whole := integer(d); w.e.Class.Has(rule.Card) && len(whole) >= 13 && checksum.IsCard(whole) && w.isCard() {
			w.maskNumber(i, end, rule.Card)
			return end
		}
	}
	if w.e.Literals.Find(d) != nil {
		w.maskNumber(i, end, rule.Literal)
		return end
	}
	if len(d) >= minRun && char.DigitsFrom(d, 0, len(d)) == len(d) {
		w.digits(i, end)
	}
	return end
}

// digits reads a number that is long enough to be hexadecimal for something: that
// of digits has no letter.
func (w *walker) digits(i, end int) {
	r, _, _, err := w.nest.run(w.in[i:end], w.nested)
	if err != nil && !w.nest.peeks {
		w.err = err
		return
	}
	if err != nil {
		r = rule.Fault
	}
	if r != rule.None {
		w.maskNumber(i, end, r)
	}
}

// maskNumber masks the number at [i, end).
func (w *walker) maskNumber(i, end int, r rule.Rule) {
	if string(w.in[i:end]) == "0" || !w.e.Class.Has(r) {
		return
	}
	w.findings = append(w.findings, finding.Finding{Rule: rule.Names[r], Offset: i, Length: end - i})
	if w.e.Replacement != nil {
		w.replace(i, end, w.newMask(i, r, w.in[i:end]))
		return
	}
	w.replace(i, end, []byte{'0'})
}

func isNumberByte(c byte) bool {
	return char.Class[c]&char.Digit != 0 || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}

// integer returns the digits of a JSON number of at most 19 digits that is
// whole, however it is written (4.1e15, 41.0), or nil.
func integer(d []byte) []byte {
	if d[0] == '-' {
		d = d[1:]
	}
	if char.DigitsFrom(d, 0, len(d)) == len(d) {
		if len(d) > 19 {
			return nil
		}
		return d
	}
	if len(d) < 4 || len(d) > 64 || !maybeWhole(d) {
		return nil
	}
	r, ok := new(big.Rat).SetString(string(d))
	if !ok || !r.IsInt() {
		return nil
	}
	s := r.Num().String()
	if len(s) > 19 {
		return nil
	}
	return []byte(s)
}

// maybeWhole says, cheaply, whether a number with a fraction or an exponent
// can be a whole number of 19 digits.
func maybeWhole(d []byte) bool {
	e := bytes.IndexAny(d, "eE")
	if e < 0 {
		dot := bytes.IndexByte(d, '.')
		return len(bytes.Trim(d[dot+1:], "0")) == 0
	}
	x := bytes.TrimLeft(d[e+1:], "+-0")
	return len(x) <= 2
}

package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// reachSentence is the number of bytes between a name and the verb of its sentence.
const reachSentence = 60

// maskSpoken judges the word for a password whose "w" is at i: what is said or set behind it.
func (x *Scanner) maskSpoken(i int) {
	if !x.Fold(i-4, "passw") {
		return
	}
	e := x.End(i, 8, char.Letter)
	start := x.back(i, max(0, i-maxTail), char.Ident, "")
	if b, end, after := x.stringAt(e + 1); after > 0 && x.S[e] == '{' && b >= x.low && x.Has(after, "}") {
		if isAssigned(x.S[b:end], fieldname.Password, false) {
			x.mask(b, end, ruleOf(fieldname.Password, false))
		}
		return
	}
	if !x.Is(e, char.Blank) {
		x.maskBelowHead(i)
		x.maskInserted(start, e)
		x.maskElement(start, e)
		x.maskNextLine(start, e)
		return
	}
	v := x.End(e, 8, char.Blank)
	if v < x.low || fieldname.OfName(x.S[start:e]) != fieldname.Password {
		return
	}
	x.maskBelowHead(i)
	if b, end, after := x.stringAt(v); after > 0 && x.S[b-1] != '`' {
		sql := isCapital(x.S[i]) || bytes.Contains(x.S[max(0, start-MaxBehind):start], []byte("OPTIONS ("))
		if isAssigned(x.S[b:end], fieldname.Password, !sql) &&
			!fieldname.IsProse(x.S[b:end]) {
			x.mask(b, end, ruleOf(fieldname.Password, false))
		}
		return
	}
	if x.afterVerb(v, fieldname.Password) {
		return
	}
	if x.Fold(v, "for ") { // SET PASSWORD FOR 'ann'@'host' = 'x'
		eol := lineEnd(x.S, v, v+reachSentence)
		x.Touch(eol)
		if at := bytes.Index(x.S[v:eol], []byte(" = ")); at > 0 {
			if b, end, after := x.stringAt(v + at + 3); after > 0 && isAssigned(x.S[b:end], fieldname.Password, false) {
				x.mask(b, end, rule.Assignment)
				return
			}
		}
	}
	// "the password for the server is x"
	stop := min(len(x.S), v+reachSentence)
	x.Touch(v + reachSentence)
	sentence := x.S[v:stop]
	if n := bytes.IndexByte(sentence, '\n'); n >= 0 {
		sentence = sentence[:n]
	}
	if at := bytes.Index(sentence, []byte(" is ")); at > 0 && !bytes.ContainsAny(sentence[:at], ".:;,?!\"") {
		x.afterVerb(v+at+1, fieldname.Password)
		return
	}
	if end := x.wordEnd(v); fieldname.IsStrong(x.S[v:end]) && isAssigned(x.S[v:end], fieldname.Password, true) {
		x.mask(v, end, ruleOf(fieldname.Password, false))
	}
}

// maskElement masks the string that follows the name [start, end) in a literal of a pair:
// {password, "x"}, {"password", "x"}; and the argument of its comparison: password.equals("x").
func (x *Scanner) maskElement(start, end int) {
	open, e := start-1, end
	if start > 1 && char.IsQuote(x.S[open]) && x.Has(end, string(x.S[open:start])) {
		open, e = open-1, end+1
	}
	v, weak := 0, true
	switch {
	case x.Has(open, "{") && x.Has(e, ","):
		v = x.End(e+1, 8, char.Blank)
	case x.Has(e, ".equals("):
		v = e + len(".equals(")
	case x.Has(e, ".assign("):
		v, weak = e+len(".assign("), false
	default:
		return
	}
	if b, to, after := x.stringAt(v); after > 0 && b >= x.low && isAssigned(x.S[b:to], fieldname.Password, weak) {
		x.mask(b, to, rule.Assignment)
	}
}

// maskNextLine masks the word alone on the line below a heading that ends at end, if it looks
// like a password.
func (x *Scanner) maskNextLine(start, end int) {
	if !x.Has(end, "\n") && !x.Has(end, "\r\n") {
		return
	}
	b := x.back(start, max(0, start-maxTail), char.Blank, "#*")
	if b > 0 && x.S[b-1] != '\n' {
		return
	}
	v := x.End(end, 4, char.Space)
	e := x.wordEnd(v)
	if x.Touch(e); v >= x.low && (e == len(x.S) || x.Is(e, char.Space) && x.S[e] < ' ' && x.S[e] != '\t') &&
		fieldname.IsStrong(x.S[v:e]) && isAssigned(x.S[v:e], fieldname.Password, true) &&
		!bytes.ContainsAny(x.S[v:e], "(){}[]<>:=;,|/\\") {
		x.mask(v, e, rule.Assignment)
	}
}

// afterVerb masks the value behind the verb at v: "is x". It reports whether one is there.
func (x *Scanner) afterVerb(v int, k fieldname.Kind) bool {
	for _, verb := range fieldname.Verbs {
		if !x.Has(v, verb) || !x.Is(v+len(verb), char.Blank) {
			continue
		}
		v = x.End(v+len(verb), 8, char.Blank)
		if v < x.low {
			return true
		}
		b, e, after := x.stringAt(v)
		if after == 0 {
			if b = v; x.Is(v, char.Space) {
				return true
			}
			b = x.endOf(v, 3, '*')
			e = x.wordEnd(b)
			for e > b && x.S[e-1] == '*' && b > v {
				e--
			}
		}
		if isAssigned(x.S[b:e], k, true) || k == fieldname.Password && x.isCode(b, e) {
			x.mask(b, e, ruleOf(k, false))
		}
		return true
	}
	return false
}

// isCode reports whether [b, e) is 4 to 8 digits that end a part of a sentence.
func (x *Scanner) isCode(b, e int) bool {
	if e-b < 4 || e-b > 8 || char.DigitsFrom(x.S, b, 9) < e-b || x.Is(e, char.Blank) {
		return false
	}
	return !x.Is(e, char.Word)
}

// maskAfterVerb judges the verb that may begin at i: "the token is x". Behind any other word it waits for nothing.
func (x *Scanner) maskAfterVerb(i int) int {
	if i < 4 || !x.Is(i-1, char.Blank) || i+3 < len(x.S) && !x.isVerbAt(i) {
		return i + 1
	}
	start, end := x.Name(i)
	if start > 0 && x.S[start-1] >= 0x80 {
		start = x.back(start, max(0, start-maxTail), char.Word, "")
	}
	if start == end {
		return i + 1
	}
	k := fieldname.OfName(x.S[start:end])
	if k == fieldname.None || k == fieldname.Key {
		k = x.twoWords(start, end)
	}
	if (k == fieldname.Password || k == fieldname.Secret) && x.isVerbAt(i) {
		x.afterVerb(i, k)
	}
	return i + 1
}

// isVerbAt reports whether a verb of two or three letters is at i, whose second one is "s".
func (x *Scanner) isVerbAt(i int) bool {
	return x.Is(i+2, char.Blank) || x.Has(i+2, "t") && x.Is(i+3, char.Blank)
}

// valueBelow masks the line after a name and a colon at v that has one word on it, which
// looks like a password. It reports whether nothing else follows the colon.
func (x *Scanner) valueBelow(v int, k fieldname.Kind) bool {
	if k != fieldname.Password && k != fieldname.Secret || v >= len(x.S) || x.S[v] != '\n' && x.S[v] != '\r' {
		return false
	}
	b, breaks := v, 0
	for b < len(x.S) && b < v+maxTail && char.Class[x.S[b]]&char.Space != 0 {
		if x.S[b] == '\n' {
			breaks++
		}
		b++
	}
	x.Touch(b)
	if breaks > 2 || b >= len(x.S) || b < x.low {
		return true
	}
	if b = x.endOf(b, 1, '`'); b >= len(x.S) {
		return true
	}
	e := x.wordEnd(b)
	at := x.End(e, 8, char.Blank)
	x.Touch(at)
	if at < len(x.S) && x.S[at] != '\n' && x.S[at] != '\r' && x.S[at] != '`' || bytes.ContainsAny(x.S[b:e],
		"(){}[]<>:=;,|/\\") {
		return true
	}
	if isAssigned(x.S[b:e], k, true) {
		x.mask(b, e, ruleOf(k, false))
	}
	return true
}

// maskItems masks the items of a YAML list whose first "-" is at i.
func (x *Scanner) maskItems(i int, k fieldname.Kind) {
	for n := 0; n < 16 && x.Has(i, "- "); n++ {
		b := x.End(i+2, 8, char.Blank)
		if x.Is(b, char.Alnum) || !x.Has(b, "-") {
			if q, _, after := x.stringAt(b); after > 0 {
				b = q
			}
			if e := x.wordEnd(b); b >= x.low && isAssigned(x.S[b:e], k, true) && !bytes.ContainsAny(x.S[b:e], ":(") {
				x.mask(b, e, ruleOf(k, false))
			}
		}
		eol := lineEnd(x.S, b, b+MaxBehind)
		x.Touch(eol)
		i = x.End(eol, 32, char.Space)
	}
}

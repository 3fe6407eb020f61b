package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/command"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// reachSentence is the number of bytes between a name and the verb of its sentence.
const reachSentence = 60

// maskSpoken judges the word for a password whose "w" is at i: what is said or set after it.
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
	if x.maskCommand(command.FindArgument(x.S, start, e)) {
		return
	}
	if x.Has(e, "'s ") {
		e += len("'s")
	} else if !x.Is(e, char.Blank) {
		if e < len(x.S) && char.IndexByte(".,;!?)\n", x.S[e]) >= 0 {
			x.maskBefore(start)
		}
		x.maskBelowHead(i)
		x.maskInserted(start, e)
		x.maskElement(start, e)
		x.maskNextLine(start, e)
		return
	}
	v := x.End(e, 8, char.Blank)
	if v < x.low || fieldname.OfName(bytes.TrimSuffix(x.S[start:e], []byte("'s"))) != fieldname.Password {
		return
	}
	x.maskBelowHead(i)
	if b, end, after := x.stringAt(v); after > 0 && x.S[b-1] != '`' {
		sql := isCapital(x.S[i]) || bytes.Contains(x.S[max(0, start-MaxBefore):start], []byte("OPTIONS ("))
		if isAssigned(x.S[b:end], fieldname.Password, !sql) &&
			!fieldname.IsProse(x.S[b:end]) {
			x.mask(b, end, ruleOf(fieldname.Password, false))
		}
		return
	}
	if x.afterVerb(v, fieldname.Password) && x.low > v {
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
		return
	}
	// "the password was changed to x"
	for n, b := 0, v; n < 6 && b < v+reachSentence; n++ {
		end := x.wordEnd(b)
		if x.isUnlikeWord(b, end) {
			x.mask(b, end, rule.Assignment)
			return
		}
		if b = x.End(end, 8, char.Blank); b == end {
			return // the end of the sentence
		}
	}
}

// maskBefore masks the word that a sentence calls a password before it does so: "Use x as the password." start is where
// the name begins.
func (x *Scanner) maskBefore(start int) {
	e := start
	for range 3 {
		if e = x.back(e, max(0, e-8), char.Blank, ""); e == 0 || x.S[e-1] == '\n' {
			return
		}
		b := e
		for b > 0 && e-b < maxTail && char.Class[x.S[b-1]]&char.Space == 0 && !char.IsQuote(x.S[b-1]) {
			b--
		}
		if b > 0 && char.Class[x.S[b-1]]&char.Space == 0 {
			return
		}
		if b >= x.low && x.isUnlikeWord(b, e) {
			x.mask(b, e, rule.Assignment)
			return
		}
		if char.Class[x.S[e-1]]&char.Letter == 0 {
			return
		}
		e = b
	}
}

// maskAfterSentence masks the word after a colon at i that ends its line, where the sentence before announces a secret:
// "Here is the API key you asked for: x". It reports whether it did.
func (x *Scanner) maskAfterSentence(i int) bool {
	words := x.S[max(0, i-1-reachSentence) : i-1]
	words = bytes.TrimLeft(words[bytes.LastIndexByte(words, '\n')+1:], " \t")
	if bytes.Count(words, []byte(" ")) < 2 || !x.Is(i, char.Blank) || bytes.ContainsAny(words, "(){}[]=;<>\"") ||
		!fieldname.HasName(words) {
		return false
	}
	v := x.End(i, 8, char.Blank)
	if v < x.low || !x.Is(v, char.Alnum) {
		return false
	}
	end := x.wordEnd(v)
	if !x.isUnlikeWord(v, end) {
		return false
	}
	x.mask(v, end, rule.Assignment)
	return true
}

// isUnlikeWord reports whether [b, e) looks like a password or a key, and like nothing else in a sentence: letters and
// digits with a sign among them, or random.
func (x *Scanner) isUnlikeWord(b, e int) bool {
	v := x.S[b:e]
	return fieldname.IsStrong(v) && (bytes.ContainsAny(v[1:len(v)-1], "!@#$%^&*?+~") || fieldname.IsRandom(v)) &&
		!bytes.ContainsAny(v, "(){}[]<>:=;,|/\\") && isAssigned(v, fieldname.Password, true)
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
	if end = x.endOf(end, 2, '*'); !x.Has(end, "\n") && !x.Has(end, "\r\n") {
		return
	}
	b := x.back(start, max(0, start-maxTail), char.Blank, "#*")
	if b > 0 && x.S[b-1] != '\n' {
		return
	}
	v := x.endOf(x.End(end, 4, char.Space), 1, '`')
	e := x.wordEnd(v)
	if x.Touch(e); v >= x.low && (e == len(x.S) || x.S[e] == '`' || x.S[e] == '\n' || x.S[e] == '\r') &&
		fieldname.IsStrong(x.S[v:e]) && isAssigned(x.S[v:e], fieldname.Password, true) &&
		!bytes.ContainsAny(x.S[v:e], "(){}[]<>:=;,|/\\") {
		x.mask(v, e, rule.Assignment)
	}
}

// afterVerb masks the value after the verb at v: "is x". It reports whether one is there.
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
		eol := lineEnd(x.S, b, b+MaxBefore)
		x.Touch(eol)
		i = x.End(eol, 32, char.Space)
	}
}

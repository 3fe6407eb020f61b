package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/command"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/line"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// assign judges the ":" or "=" of w bytes at i: a name before it that says
// its value is secret, or a URL with credentials.
func (x *Scanner) assign(i, w int, sep byte) int {
	if i+w+2 < x.low {
		return i + w
	}
	if x.clock(i) {
		return i + w
	}
	start, end, k := x.nameBefore(i, sep)
	if k == fieldname.Weak && sep == ':' && line.IsTestResult(x.S[max(0, start-4):x.wordEnd(i+2)], min(4, start)) {
		return i + w
	}
	if k != fieldname.None && k != fieldname.Number {
		return x.assigned(i, w, k, sep, start)
	}
	if sep == '=' {
		if start < end {
			x.parameter(i, w, start, end)
		}
		x.azureKey(i)
		return i + w
	}
	switch {
	case x.Has(i+w, "//"):
		return x.userinfo(i+w+2, i)
	case end-start == 13 && x.Has(start, "Private-Lines"):
		return x.putty(i)
	case x.thinAddress(i):
		return i + w
	case start > 0 && x.S[start-1] == '/' && x.maskCommand(command.FindAtSwitch(x.S, i)):
	case sep == ':' && x.maskAfterSentence(i+w):
	}
	return x.colonToken(i, w)
}

// clock says whether the byte at i stands between an hour and a minute.
func (x *Scanner) clock(i int) bool {
	if i < 3 || i+2 >= len(x.S) ||
		char.Class[x.S[i-1]]&char.Class[x.S[i+1]]&char.Class[x.S[i-2]]&char.Class[x.S[i+2]]&char.Digit == 0 {
		return false
	}
	c := x.S[i-3]
	return c == ' ' || c == 'T' || c == ':' || c == '"'
}

// assigned masks the value behind the sign at i.
func (x *Scanner) assigned(i, w int, k fieldname.Kind, sep byte, name int) int {
	v := i + w
	if sep == '=' && (x.Has(v, "~") || token.EndsBase64(x.S, name)) {
		return v // a match, or padding
	}
	for n := 0; n < 2 && v < len(x.S) && (x.S[v] == '=' || x.S[v] == '>' || x.S[v] == ':' && sep == ':'); n++ {
		v++
	}
	if sep == ':' {
		v = x.behindEmphasis(v)
	}
	v = x.End(v, maxBlanks, char.Blank)
	switch {
	case v < x.low:
	case sep == ':' && x.maskDefault(v, name, k):
	case sep == ':' && (x.block(v, name, k) || x.valueBelow(v, k)):
	default:
		x.value(v, k, sep, name)
	}
	return i + w
}

// maskDefault masks what a shell or a configuration takes for a variable that is missing:
// ${NAME:-x}, ${name:x}. It reports whether the name at name is one.
func (x *Scanner) maskDefault(v, name int, k fieldname.Kind) bool {
	if !x.Has(name-2, "${") || !k.IsSecret() {
		return false
	}
	if x.Has(v, "-") || x.Has(v, "=") || x.Has(v, "?") || x.Has(v, "+") {
		v++
	}
	e := v
	for e < len(x.S) && e < v+maxJudged && x.S[e] != '}' && x.S[e] != '\n' {
		e++
	}
	x.Touch(e)
	if x.Has(e, "}") && isAssigned(x.S[v:e], k, false) {
		x.mask(v, e, ruleOf(k, false))
	}
	return true
}

// value masks the value of kind k at v, whose name begins at name.
func (x *Scanner) value(v int, k fieldname.Kind, sep byte, name int) {
	v += char.WideQuoteLen(x.S[min(v, len(x.S)):])
	q, slashes := x.literalPrefix(v), 0
	for q < len(x.S) && x.S[q] == '\\' && slashes < 8 {
		q, slashes = q+1, slashes+1
	}
	end, quoted := 0, false
	switch {
	case q < len(x.S) && char.IsQuote(x.S[q]):
		if slashes == 0 && x.closesString(name, q) {
			return
		}
		v = q + 1
		x.Touch(v + 1)
		if v+1 < len(x.S) && x.S[v] == x.S[q] && x.S[v+1] == x.S[q] {
			v += 2 // three quotes open a longer text
		} else if v+1 < len(x.S) && x.S[q] == '`' && x.S[v] == '`' && char.Class[x.S[v+1]]&char.Space == 0 {
			v++ // code in reStructuredText
		}
		end, quoted = x.closing(v, x.S[q], slashes), true
	case q < len(x.S) && (x.S[q] == '(' || x.S[q] == '[') && k == fieldname.Likely && x.maskPassword(q+1,
		line.ClosingBracket(x.S[q])):
		return
	case q < len(x.S) && x.S[q] == '[' && !x.Has(q+1, "]") && mask.Len(x.S[q:]) == 0:
		x.listValue(q+1, k, sep, name)
		return
	default:
		end = x.bare(v, k, sep, name)
	}
	if k == fieldname.Weak && sep == ':' && x.isBehindUser(name) {
		k = fieldname.Password
	}
	connection := k == fieldname.Password && sep == '=' && x.inConnection(name)
	if connection && !quoted {
		if semi := bytes.IndexByte(x.S[v:end], ';'); semi > 0 {
			end = v + semi
		}
	}
	if k == fieldname.Secret && sep == ':' && !quoted && x.Has(end, " / ") { // credentials: user / password
		if next := x.wordEnd(end + 3); isSecretForm(x.S[end+3 : next]) {
			end = next
		}
	}
	v, end = x.withoutEmphasis(v, end, sep)
	if v >= end {
		return
	}
	if !quoted && sep != ' ' && mask.Len(x.S[v:end]) == 0 {
		if e := x.phraseEnd(v, end, k, sep, name); e > end && (sep == '=' || !x.isExpression(v, end, k, sep, name)) {
			end = e
		}
	}
	if m := mask.Len(x.S[v:end]); m > 0 && len(trimTail(x.S[v+m:end])) == 0 {
		return
	}
	if k == fieldname.Password && bytes.HasPrefix(x.S[v:end], []byte("pass:")) {
		v += len("pass:") // -passin pass:x of openssl
	}
	switch {
	case end-v > maxJudged:
	case mask.Len(x.S[v:end]) > 0: // what a mask hides is not all of it
	case !canHold(x.S[v:end], k, sep):
		return
	case quoted && (!x.isSecretLiteral(v, end, k, sep, name) || x.isScored(name, end)):
		return
	case !quoted && !connection && x.isExpression(v, end, k, sep, name):
		x.maskWrapped(v, k)
		return
	}
	x.mask(v, end, ruleOf(k, connection))
}

// isBehindUser reports whether the member before the one at name is a user: {user: 'ann', pass: 'x'}.
func (x *Scanner) isBehindUser(name int) bool {
	low := max(0, name-reachUser)
	e := x.back(name, low, char.Space, "\"'`\\,")
	colon := bytes.LastIndexByte(x.S[low:e], ':')
	if e == name || colon < 0 || bytes.ContainsAny(x.S[low+colon:e], "\n,;(){}") {
		return false
	}
	b, end := x.Name(low + colon)
	return end-b >= 4 && (char.HasFoldSuffix(x.S[b:end], "user") || char.HasFoldSuffix(x.S[b:end], "username") ||
		char.HasFoldSuffix(x.S[b:end], "login"))
}

// reachUser is the number of bytes before a name in which the one of its user is looked for.
const reachUser = 96

// ruleOf returns the rule under which the value of a name is masked.
func ruleOf(k fieldname.Kind, connection bool) rule.Rule {
	switch {
	case k == fieldname.PII || k == fieldname.Person:
		return rule.PIIField
	case connection:
		return rule.Connection
	}
	return rule.Assignment
}

// canHold reports whether v may be what a name of kind k announces before sep.
func canHold(v []byte, k fieldname.Kind, sep byte) bool {
	if k != fieldname.Password && len(v) <= 6 && char.DigitsFrom(v, 0, 7) == len(v) {
		return false
	}
	switch k {
	case fieldname.Weak:
		if sep == ':' && !fieldname.IsTelling(v) {
			return false
		}
	case fieldname.Cookie:
		if mask.Len(v) == 0 && !fieldname.IsCookie(v) {
			return false
		}
	}
	return fieldname.CanHold(k, v)
}

// closing finds the quote that closes a value opened behind slashes
// backslashes; the end of the line closes it too.
func (x *Scanner) closing(v int, quote byte, slashes int) int {
	run := 0
	for i := v; i < len(x.S); i++ {
		switch c := x.S[i]; {
		case c == '\n':
			return i
		case c == '\\':
			run++
			continue
		case c == quote && (slashes == 0 && run%2 == 0 || slashes > 0 && run <= slashes):
			return i - min(run, slashes)
		}
		run = 0
	}
	x.Touch(len(x.S))
	return len(x.S)
}

// bare finds the end of a value without quotes.
func (x *Scanner) bare(v int, k fieldname.Kind, sep byte, name int) int {
	i := x.credentials(v)
	i += mask.Len(x.S[i:])
	long := k == fieldname.Line || k == fieldname.Cookie || k == fieldname.PII || k == fieldname.Person ||
		sep == ':' && x.tagged(v)
	var quote byte
	if name > 0 && char.IsQuote(x.S[name-1]) {
		quote = x.S[name-1]
	}
	whole := -1 // 1 if the line begins with the name, 0 if not
	for ; i < len(x.S); i++ {
		c := x.S[i]
		switch {
		case c == '\n' || c == '\r':
		case c == '&' && sep == '=' || c == '<' || char.IsQuote(c) && (!long || c == quote):
			if whole < 0 {
				whole = 0
				if l := x.lineOf(name, v); sep != ' ' && x.S[name] != '-' && l.BeginsWithName() {
					whole = 1
				}
			}
			if whole > 0 && i > v && !x.endsSetting(i) {
				continue
			}
		case c >= 0xe3 && !long && char.IsWideStop(x.S[i:]):
		case (k == fieldname.PII || k == fieldname.Person) && (c == ',' || c == ';' || c == '('):
		case !long && char.Class[c]&char.Space != 0:
		default:
			continue
		}
		break
	}
	x.Touch(i)
	return v + len(trimTail(x.S[v:i]))
}

// endsSetting reports whether the "&", "<" or quote at i ends the value of a setting that its line begins
// with: before the next parameter of a query, a tag that closes, the end of a word.
func (x *Scanner) endsSetting(i int) bool {
	switch x.S[i] {
	case '&':
		if x.Is(i+1, char.Space) || x.Has(i+1, "&") || i+1 >= len(x.S) {
			return true
		}
		return x.Has(x.End(i+1, maxTail, char.Ident), "=")
	case '<':
		return x.Has(i+1, "/") || x.Has(i+1, "br") || x.Has(i+1, "<")
	}
	x.Touch(i + 1)
	if char.IndexByte("[(,+=", x.S[i-1]) >= 0 {
		return true // of an expression
	}
	return i+1 >= len(x.S) || x.Is(i+1, char.Space) || char.IndexByte(",;:)]}", x.S[i+1]) >= 0 || char.IsQuote(x.S[i+1])
}

// maxWords is the greatest number of words of a value without quotes.
const maxWords = 8

// phraseEnd returns the end of the words that the value [v, end) begins, which its line has behind its name and
// nothing else; or end.
func (x *Scanner) phraseEnd(v, end int, k fieldname.Kind, sep byte, name int) int {
	if k != fieldname.Password && k != fieldname.Secret || x.S[v] == '#' || !x.Is(end, char.Blank) ||
		!x.Is(end+1, char.Alnum) {
		return end
	}
	eol := lineEnd(x.S, end, end+MaxBefore)
	x.Touch(eol)
	rest := bytes.TrimRight(x.S[end:eol], " \t\r")
	if n := bytes.Index(rest, []byte(" #")); n >= 0 {
		rest = bytes.TrimRight(rest[:n], " \t")
	}
	words := 0
	for i, c := range rest {
		switch {
		case c == ' ' && i+1 < len(rest) && rest[i+1] != ' ':
			words++
		case char.Class[c]&char.Alnum == 0 && char.IndexByte("-_'!?$@&*%+#~^", c) < 0:
			return end
		}
	}
	l := x.lineOf(name, end+len(rest))
	if words >= maxWords || !l.BeginsWithName() || line.IsProseWord(x.S[v:end], x.S[end:eol]) || fieldname.IsProse(
		x.S[v:end+len(rest)]) || (sep == '=' || x.Is(v-2, char.Blank)) && !l.HasSettingNext() || l.IsAmongCode() {
		return end
	}
	return end + len(rest)
}

// credentials steps over the scheme before a header's credentials.
func (x *Scanner) credentials(v int) int {
	for _, word := range [...]string{"bearer", "basic", "token", "digest"} {
		if x.Fold(v, word) && x.Is(v+len(word), char.Blank) {
			next := x.End(v+len(word), 8, char.Blank)
			if word == "token" && !fieldname.IsTelling(x.S[next:x.wordEnd(next)]) {
				return v // "token has expired"
			}
			return next
		}
	}
	return v
}

// trimTail cuts what closes a sentence or a bracket around a value. A mask's
// own bracket stays.
func trimTail(v []byte) []byte {
	for low := len(v) - maxTail; len(v) > max(low, 0); {
		if c := v[len(v)-1]; (c == ']' || c == '>') && mask.Len(v) == len(v) {
			return v
		}
		switch v[len(v)-1] {
		case ',', ';', ')', ']', '}', '>', '.', ' ', '\t', '\\':
			v = v[:len(v)-1]
		default:
			return v
		}
	}
	return v
}

// element masks the text of <password>x</password>, whose first ">" is at i. A type such as
// List<Token> has no tag that closes it.
func (x *Scanner) element(i int) int {
	k, weak := x.elementKind(i)
	if k == fieldname.None || k == fieldname.Number {
		return i + 1
	}
	start, stop := x.End(i+1, maxTail, char.Space), byte('<')
	if start >= len(x.S) {
		return i + 1
	}
	if x.Has(start, cdata) {
		start, stop = start+len(cdata), ']'
	}
	end := start + mask.Len(x.S[start:])
	for end < len(x.S) && x.S[end] != stop && x.S[end] != '\n' {
		end++
	}
	x.Touch(end)
	if stop == '<' && end-start < maxJudged && !x.Has(x.End(end, maxTail, char.Space), "</") &&
		(end < len(x.S) || !x.beginsLine(i)) {
		return i + 1
	}
	v := bytes.TrimSpace(x.S[start:end])
	if len(v) == 0 || mask.Len(v) == len(v) || !fieldname.CanHold(k, v) || weak && len(v) < maxJudged &&
		isLabel(v) {
		return i + 1
	}
	x.mask(start, start+len(v), ruleOf(k, false))
	return i + 1
}

// beginsLine reports whether nothing but blanks is before the tag that ends at i.
func (x *Scanner) beginsLine(i int) bool {
	low := max(0, i-reachPair)
	b := x.back(low+max(0, bytes.LastIndexByte(x.S[low:i], '<')), low, char.Blank, "")
	return b == 0 || x.S[b-1] == '\n' || x.S[b-1] == '>'
}

const cdata = "<![CDATA["

// userinfo masks the credentials of a URL whose authority starts at i, its
// scheme's ":" at colon. It looks at 256 bytes; a password with a raw "/" is
// seen where what stands before it cannot be a port.
func (x *Scanner) userinfo(i, sign int) int {
	if start, end, r, ok := token.Hook(&x.Cursor, i); ok {
		if end > start {
			x.mask(start, end, r)
		}
		return i
	}
	at, colon, stop := -1, -1, min(len(x.S), i+256)
scan:
	for j := i; j < stop; j++ {
		switch c := x.S[j]; {
		case c == '@':
			at = j
		case c == ':' && colon < 0:
			colon = j
		case c == '/' || c == '?' || c == '#':
			if at >= 0 || colon < 0 || j == colon+1 || char.DigitsFrom(x.S, colon+1, 6) == j-colon-1 || x.Has(j, "//") {
				break scan
			}
		case char.Class[c]&char.Space != 0 || char.IsQuote(c) || c == '<' || c == '>' || c == '\\':
			break scan
		}
	}
	switch {
	case at <= i || colon >= 0 && colon < at && (fieldname.IsReference(x.S[colon+1:at]) ||
		fieldname.IsFiller(x.S[colon+1:at])):
	case colon >= 0 && colon < at && x.isDatabase(sign):
		x.mask(i, at, rule.Connection)
	case colon >= 0 && colon < at || isOpaque(x.S[i:at]):
		x.mask(i, at, rule.URL)
	}
	return i
}

// isOpaque says whether the user of a URL is a token: 20 or more letters and
// digits.
func isOpaque(v []byte) bool {
	var have uint16
	for _, c := range v {
		if char.Class[c]&char.URL64 == 0 {
			return false
		}
		have |= char.Class[c]
	}
	return len(v) >= 20 && have&char.Digit != 0 && have&char.Letter != 0
}

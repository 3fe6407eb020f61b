package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/line"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// reachType is the longest type, in bytes, between a name and "=".
const reachType = 64

// nameBefore returns the name before the ":" or "=" at i and what it says: next to it,
// in Markdown's or HTML's emphasis, before "is", before a type, or of two words.
func (x *Scanner) nameBefore(i int, sep byte) (start, end int, k fieldname.Kind) {
	if sep == ':' && x.endsUntelling(i) {
		return i, i, fieldname.None
	}
	start, end = x.Name(i)
	if start == end && sep == '=' && i > 1 && char.IndexByte("|?!", x.S[i-1]) >= 0 {
		start, end = x.nameBeforeOperator(i)
	}
	if start == end && sep == '=' && x.Has(i+1, ">") { // (name) => "x"
		if e := x.back(i, max(0, i-8), char.Blank, ""); e > 1 && x.S[e-1] == ')' {
			if start, end = x.Name(e - 1); start == 0 || x.S[start-1] != '(' {
				start, end = i, i
			}
		}
	}
	if start == end {
		start, end = x.Name(x.beforeEmphasis(i))
	}
	if end-start > 1 && end-start < 7 && fieldname.IsVerb(x.S[start:end]) {
		start, end = x.Name(start)
	}
	if start == end || x.S[end] == ']' && char.DigitsFrom(x.S[start:end], 0, 8) == end-start {
		start, end = x.nameBeforeBrackets(i)
	}
	if start < end && (char.Class[x.S[end-1]]&char.Letter == 0 || end < 2 ||
		nameTails.May(x.S[end-2], x.S[end-1])) {
		name := x.S[start:end]
		k = fieldname.OfName(name)
		if (k == fieldname.None || k == fieldname.Key) && start > 0 && char.Class[x.S[start-1]]&char.Blank != 0 {
			if two := x.twoWords(start, end); two != fieldname.None {
				return start, end, two
			}
		}
		if k == fieldname.Key && len(name) == len("key") {
			k = x.ofKeyAlone(start, end, sep)
		}
		if k == fieldname.None && (len(name) == len("value") || len(name) == len("default")) {
			if char.EqualFold(name, "value") || char.EqualFold(name, "default") {
				if k = x.paired(start); k == fieldname.None {
					k = x.pairedAround(start, i+1, sep)
				}
			} else if sep == '=' && char.EqualFold(name, "content") {
				k = x.pairedAround(start, i+1, sep)
			}
		}
	}
	if k == fieldname.None && start > 0 && x.S[start-1] >= 0x80 {
		if b := x.back(start, max(0, start-maxTail), char.Word, ""); b < start {
			if of := fieldname.OfName(x.S[b:end]); of != fieldname.None {
				return b, end, of
			}
		}
	}
	if k == fieldname.None && sep == '=' {
		if b, e := x.nameBeforeType(i, start, end); b < e {
			if of := fieldname.OfName(x.S[b:e]); of.IsSecret() {
				return b, e, of
			}
		}
	}
	return start, end, k
}

// ofKeyAlone returns the kind of the name "key" at start: None in a query, whose parameters are looked at
// elsewhere, and behind a word that makes it another key.
func (x *Scanner) ofKeyAlone(start, end int, sep byte) fieldname.Kind {
	if start > 0 && sep == '=' && char.IndexByte("?&", x.S[start-1]) >= 0 {
		return fieldname.None
	}
	e := x.back(start, max(0, start-4), char.Blank, "")
	if b := x.back(e, max(0, e-maxTail), char.Letter, ""); e < start && b < e {
		return fieldname.OfName(x.S[b:end])
	}
	return fieldname.Key
}

// nameTails are those of the names that nameBefore knows: OfName's, verbs, and names of pairs.
var nameTails = tailsOfNames()

func tailsOfNames() fieldname.Tails {
	t := fieldname.NewTails()
	for _, w := range fieldname.Verbs {
		t.Add(w)
	}
	for _, w := range [...]string{"was", "value", "default", "content", "private-lines", "prod", "dev", "live",
		"confirm", "old", "new"} {
		t.Add(w)
	}
	return t
}

// endsUntelling reports whether the name next to the ":" at i, or in quotes next to it, ends in
// letters that no telling name ends in.
func (x *Scanner) endsUntelling(i int) bool {
	if i < 3 {
		return false
	}
	a, b := x.S[i-2], x.S[i-1]
	if char.IsQuote(b) {
		a, b = x.S[i-3], a
	}
	return char.Class[a]&char.Class[b]&char.Lower != 0 && !nameTails.May(a, b)
}

// nameBeforeOperator returns the name before "||=", "??=", "?=", and before "!=" where a
// string follows, whose "=" is at i.
func (x *Scanner) nameBeforeOperator(i int) (start, end int) {
	if start, end = x.Name(x.back(i, i-2, 0, "|?!")); start == end || !fieldname.OfName(x.S[start:end]).IsSecret() {
		return i, i
	}
	if x.S[i-1] == '!' {
		if v := x.End(x.endOf(i+1, 1, '='), 8, char.Blank); v >= len(x.S) || !char.IsQuote(x.S[v]) {
			return i, i
		}
	}
	return start, end
}

// inType has the bytes of types, and of blanks between them.
var inType = bytesOfTypes()

func bytesOfTypes() (t [256]bool) {
	for c := range 256 {
		t[c] = char.Class[c]&(char.Alnum|char.Blank) != 0 || char.IndexByte("_.<>[]&'|?*,", byte(c)) >= 0
	}
	return t
}

// nameBeforeType returns the name before the type that ends before the "=" at i: "x: string =",
// "var x string =", "Dim x As String =". [start, end) is the word before the sign.
func (x *Scanner) nameBeforeType(i, start, end int) (b, e int) {
	if i < 2 || x.S[i-1] != ' ' && char.Class[x.S[i-1]]&char.Alnum == 0 && x.S[i-1] != ']' {
		return 0, 0
	}
	low := max(0, i-reachType)
	for j := i - 1; j > low; j-- {
		if inType[x.S[j]] {
			continue
		}
		if x.S[j] != ':' {
			break
		}
		if x.S[j-1] == ':' {
			j--
			continue
		}
		if x.Is(j+1, char.Blank) || x.Is(j+1, char.Letter) {
			return x.Name(j)
		}
		return 0, 0
	}
	if start == end || !line.IsType(x.S[start:end]) {
		return 0, 0
	}
	if b, e = x.Name(x.back(start, low, 0, "*[]&")); e-b == 2 && char.EqualFold(x.S[b:e], "as") {
		b, e = x.Name(b)
	}
	return b, e
}

// nameBeforeBrackets returns the name before "[32]" or "{ get; set; }", which end before i.
func (x *Scanner) nameBeforeBrackets(i int) (start, end int) {
	e := x.back(i, max(0, i-8), char.Blank, "")
	if e == 0 || x.S[e-1] != ']' && x.S[e-1] != '}' {
		return i, i
	}
	low := max(0, e-40)
	open := bytes.LastIndexByte(x.S[low:e], x.S[e-1]-2)
	if open < 0 {
		return i, i
	}
	inner := bytes.TrimSpace(x.S[low+open+1 : e-1])
	if x.S[e-1] == '}' && !bytes.HasPrefix(inner, []byte("get")) || x.S[e-1] == ']' && char.DigitsFrom(inner, 0,
		len(inner)) < len(inner) {
		return i, i
	}
	return x.Name(low + open)
}

// wideColon judges the colon of full width whose last byte is at i.
func (x *Scanner) wideColon(i int) int {
	if i < 3 || x.S[i-1] != 0xbc || x.S[i-2] != 0xef {
		return i + 1
	}
	e := i - 2
	b := x.back(e, max(0, e-maxTail), char.Word, "_-")
	if k := fieldname.OfName(x.S[b:e]); (k == fieldname.Password || k == fieldname.Secret) && b < e {
		return x.assigned(e, 3, k, ':', b)
	}
	return i + 1
}

// emphases are the tags that set off a word.
var emphases = [...]string{"b>", "strong>", "em>", "i>", "code>", "label>", "span>", "th>", "dt>"}

// beforeEmphasis returns where the emphasis begins that ends before i: "**", "</b>".
func (x *Scanner) beforeEmphasis(i int) int {
	for n := 0; n < 3 && i > 0 && x.S[i-1] == '*'; n++ {
		i--
	}
	if i > 0 && x.S[i-1] == '>' {
		for _, tag := range emphases {
			if at := i - len(tag) - 2; at > 0 && x.Has(at, "</") && x.Has(at+2, tag) {
				return at
			}
		}
	}
	return i
}

// behindEmphasis returns where the value begins behind emphasis that ends at v: "** x",
// "</b> x".
func (x *Scanner) behindEmphasis(v int) int {
	stars := x.endOf(v, 3, '*')
	if stars > v && x.Is(stars, char.Blank) {
		return stars
	}
	if stars = x.endOf(v, 2, '_'); stars == v+2 && x.Is(stars, char.Blank) {
		return stars
	}
	if x.Has(v, "</") {
		for _, tag := range emphases {
			if x.Has(v+2, tag) {
				v = x.End(v+2+len(tag), 8, char.Blank)
				break
			}
		}
	}
	if x.Has(v, "<") {
		for _, tag := range emphases {
			if x.Has(v+1, tag) {
				return v + 1 + len(tag)
			}
		}
	}
	return v
}

// endOf returns the end of at most n bytes c from i on.
func (x *Scanner) endOf(i, n int, c byte) int {
	for ; n > 0 && i < len(x.S) && x.S[i] == c; n-- {
		i++
	}
	x.Touch(i)
	return i
}

// withoutEmphasis returns [v, end) without the stars, quotes or strokes around all of it.
func (x *Scanner) withoutEmphasis(v, end int, sep byte) (int, int) {
	if sep != ':' {
		return v, end
	}
	for n := 0; n < 3 && end-v > 4 && (x.S[v] == '*' || x.S[v] == '~' || x.S[v] == '_') && x.S[end-1] == x.S[v]; n++ {
		v, end = v+1, end-1
	}
	return v, end
}

// literalPrefix returns where the quote is that opens a string with a prefix at v: b"x",
// u8"x", @"x", r#"x"#; or v.
func (x *Scanner) literalPrefix(v int) int {
	q := v
	for q < len(x.S) && q < v+3 && (char.Class[x.S[q]]&char.Alnum != 0 || char.IndexByte("@$&#*", x.S[q]) >= 0) {
		q++
	}
	if q == v || q >= len(x.S) || !char.IsQuote(x.S[q]) {
		return v
	}
	if c := x.S[q-1]; (c == '&' || c == '*') && x.S[q] != '"' {
		return v // a lifetime
	}
	if isOneOf(x.S[v:q], literalPrefixes[:]) {
		return q
	}
	return v
}

// literalPrefixes are before the quote of a string, in the languages that have them.
var literalPrefixes = [...]string{
	"b", "r", "f", "u", "l", "n", "e", "c", "s", "q", "u8", "rb", "br", "fr", "rf", "cr", "@", "$", "$@",
	"@$", "&", "*", "r#", "br#", "#", "ur", "raw",
}

// closesString reports whether the quote at q ends a string in which the name at name is:
// "Cookie: " + x.
func (x *Scanner) closesString(name, q int) bool {
	low := max(0, name-MaxBefore)
	n := bytes.LastIndexByte(x.S[low:name], '\n')
	if n < 0 && low > 0 {
		return false
	}
	open := false
	for i := low + n + 1; i < name; i++ {
		switch c := x.S[i]; {
		case c == '\\':
			i++
		case c == x.S[q] && !(c == '\'' && x.Is(i-1, char.Letter) && x.Is(i+1, char.Letter)):
			open = !open
		}
	}
	if e := x.End(name, maxTail, char.Ident); !open || x.S[name-1] == x.S[q] && x.Has(e, string(x.S[q:q+1])) {
		return false
	}
	return !x.Is(q+1, char.Alnum)
}

// listValue masks the strings of a list that begins at v, behind "[": of code those in
// quotes, of settings the words too.
func (x *Scanner) listValue(v int, k fieldname.Kind, sep byte, name int) {
	end := min(v+mask.Len(x.S[v:]), len(x.S))
	window := x.S[end:min(max(end, v+MaxAhead/2), len(x.S))]
	if i := bytes.IndexByte(window, ']'); i >= 0 {
		window = window[:i]
	}
	if i := bytes.IndexByte(window, '\n'); i >= 0 {
		window = window[:i]
	}
	end += len(window)
	x.Touch(end)
	list := x.S[v:end]
	if len(bytes.TrimSpace(list)) == 0 {
		return
	}
	q := x.End(v, 8, char.Blank)
	slashes := x.endOf(q, 8, '\\') - q
	if q += slashes; q < end && char.IsQuote(x.S[q]) {
		for q < end {
			close := x.closing(q+1, x.S[q], slashes)
			if close > end || close >= len(x.S) {
				close = end
			}
			if text := x.S[q+1 : close]; len(text) > 0 && len(text) < maxJudged && canHold(text, k, sep) &&
				!fieldname.IsNameOfSecret(text) && !fieldname.IsPattern(text) &&
				(line.HasDigit(text) || fieldname.IsTelling(text) || !k.IsSecret()) && !bytes.ContainsAny(text,
				":. |") {
				x.mask(q+1, close, ruleOf(k, false))
			}
			next := bytes.IndexByte(x.S[close:end], ',')
			if next < 0 {
				return
			}
			q = x.End(close+next+1, 8, char.Blank)
			if q = x.endOf(q, slashes, '\\'); q >= end || !char.IsQuote(x.S[q]) {
				return
			}
		}
		return
	}
	if sep != ':' || x.S[name] == '$' {
		return
	}
	l := x.lineOf(name, end)
	if len(l.Head) == 0 && bytes.Equal(bytes.TrimSpace(l.Tail), []byte("]")) && fieldname.IsTelling(list) &&
		!bytes.ContainsAny(list, "():.|$") {
		x.mask(v, v+len(trimTail(list)), ruleOf(k, false))
	}
}

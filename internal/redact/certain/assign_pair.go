package certain

import (
	"bytes"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// reachPair is how far before a value the name of its pair may stand.
const reachPair = 200

// paired is the kind of the name in a pair whose "value" begins at i: on the
// line above, as Kubernetes has it; beside it, in an attribute or a member.
func (x *Scanner) paired(i int) fieldname.Kind {
	low := max(0, i-reachPair)
	e := x.back(i, low, char.Space, "\"'`\\,-;{")
	b := x.back(e, low, char.Ident, ".")
	sign := x.back(b, low, char.Blank, "\"'`\\")
	if b == e || sign == low || x.S[sign-1] != ':' && x.S[sign-1] != '=' {
		return fieldname.None
	}
	end := x.back(sign-1, low, char.Blank, "\"'`\\")
	if start := x.back(end, low, char.Letter, ""); !isPairName(x.S[start:end]) {
		return fieldname.None
	}
	return fieldname.OfName(x.S[b:e])
}

// pairNames are what announces, before or behind a value, what it is.
var pairNames = [...]string{"name", "key", "id", "variable", "property", "header"}

// pairedAround returns the kind of the name in the same tag, behind the value, or of the
// variable in whose block the name at start is. v is where the value is.
func (x *Scanner) pairedAround(start, v int, sep byte) fieldname.Kind {
	low := max(0, start-reachPair)
	if sep == ':' {
		return x.pairedBehind(v)
	}
	if at := bytes.LastIndex(x.S[low:start], []byte("variable \"")); at >= 0 && bytes.IndexByte(x.S[low+at:start],
		'}') < 0 {
		b := low + at + len("variable \"")
		return fieldname.OfName(x.S[b:x.nameEnd(b, start)])
	}
	if at := bytes.LastIndexAny(x.S[low:start], "<>"); at >= 0 && x.S[low+at] == '<' {
		stop := min(len(x.S), v+reachPair)
		x.Touch(v + reachPair)
		if end := bytes.IndexByte(x.S[v:stop], '>'); end >= 0 {
			stop = v + end
		}
		return attributeKind(x.S[low+at : stop])
	}
	return x.pairedBehind(v)
}

// attributeKind returns what the attributes of a tag announce.
func attributeKind(tag []byte) fieldname.Kind {
	for i := 1; i+1 < len(tag); i++ {
		if tag[i] != '=' || !char.IsQuote(tag[i+1]) {
			continue
		}
		b := i
		for b > 0 && char.Class[tag[b-1]]&char.Ident != 0 {
			b--
		}
		e := bytes.IndexByte(tag[i+2:], tag[i+1])
		if e < 0 {
			break
		}
		value := tag[i+2 : i+2+e]
		if isOneOf(tag[b:i], pairNames[:]) || char.EqualFold(tag[b:i], "type") && char.EqualFold(value, "password") {
			if k := fieldname.OfName(value); k != fieldname.None {
				return k
			}
		}
	}
	return fieldname.None
}

// pairedBehind returns the kind of the name of a pair that follows the value at v: value:
// x, name: DB_PASSWORD, on one line or on the next.
func (x *Scanner) pairedBehind(v int) fieldname.Kind {
	v = x.End(v, 8, char.Blank)
	e := v
	if b, _, after := x.stringAt(v); after > 0 && b > v {
		e = after
	} else {
		for e < len(x.S) && e < v+reachPair && char.Class[x.S[e]]&char.Space == 0 && x.S[e] != ',' {
			e++
		}
	}
	stop := min(len(x.S), e+maxTail)
	x.Touch(e + maxTail)
	for e < stop && (char.Class[x.S[e]]&char.Space != 0 || char.IndexByte(",;\"'", x.S[e]) >= 0) {
		e++
	}
	n := e
	for n < stop && char.Class[x.S[n]]&char.Letter != 0 {
		n++
	}
	if !isOneOf(x.S[e:n], pairNames[:]) {
		return fieldname.None
	}
	for n < stop && (char.Class[x.S[n]]&char.Blank != 0 || char.IndexByte("\"':=", x.S[n]) >= 0) {
		n++
	}
	return fieldname.OfName(x.S[n:x.nameEnd(n, min(len(x.S), n+maxTail))])
}

// back returns where the run of a class, or of one of more, begins that ends
// at i; not before low.
func (x *Scanner) back(i, low int, bits uint16, more string) int {
	for i > low && (char.Class[x.S[i-1]]&bits != 0 || char.IndexByte(more, x.S[i-1]) >= 0) {
		i--
	}
	return i
}

func isPairName(w []byte) bool {
	return char.EqualFold(w, "name") || char.EqualFold(w, "key") || char.EqualFold(w, "id") ||
		char.EqualFold(w, "variable")
}

// elementKind is the kind of the element whose tag ends at i, with ">": by its
// own name, an attribute's value, or the element before it, as property lists
// have it. The text of a weak one may be what people read.
func (x *Scanner) elementKind(i int) (k fieldname.Kind, weak bool) {
	if i > 0 && (x.S[i-1] == '-' || x.S[i-1] == '=') {
		return fieldname.None, false // an arrow
	}
	low := max(0, i-reachPair)
	tag := i
	for tag > low && x.S[tag-1] != '<' && x.S[tag-1] != '>' && x.S[tag-1] != '\n' {
		tag--
	}
	if tag == low || x.S[tag-1] != '<' {
		return fieldname.None, false
	}
	if x.Is(tag-2, char.Alnum) || tag > 1 && char.IsQuote(x.S[tag-2]) {
		return fieldname.None, false // a type's parameter
	}
	end := x.nameEnd(tag, i)
	if end < i && x.S[end] == ':' && end > tag {
		tag = end + 1
		end = x.nameEnd(tag, i)
	}
	if end == tag || end < i && char.Class[x.S[end]]&char.Blank == 0 {
		return fieldname.None, false // a pseudonym's ":" for one
	}
	if k = fieldname.Of(x.S[tag:end]); k != fieldname.None || x.S[i-1] == '/' {
		return k, false
	}
	if k = x.named(tag - 1); k != fieldname.None {
		return k, true
	}
	if isOneOf(x.S[tag:end], []string{"value", "string", "text"}) {
		if k = x.namedAbove(tag - 1); k != fieldname.None {
			return k, true
		}
	}
	for _, name := range [...]string{"name=", "key=", "id=", "Name=", "Key="} {
		if at := bytes.Index(x.S[end:i], []byte(name)); at > 0 && char.Class[x.S[end+at-1]]&char.Space != 0 {
			v := end + at + len(name)
			if v < i && char.IsQuote(x.S[v]) {
				return fieldname.OfName(x.S[v+1 : x.nameEnd(v+1, i)]), true
			}
		}
	}
	return fieldname.None, false
}

// nameEnd returns the end of the name that begins at i, at most end.
func (x *Scanner) nameEnd(i, end int) int {
	for i < end && (char.Class[x.S[i]]&char.Ident != 0 || x.S[i] == '.') {
		i++
	}
	return i
}

// named is the kind of the name in an element that ends before the tag at i:
// <key>password</key>.
func (x *Scanner) named(i int) fieldname.Kind {
	low := max(0, i-reachPair)
	e := x.back(i, low, char.Space, "")
	for _, closing := range [...]string{"</key>", "</name>", "</Key>", "</Name>", "</th>", "</td>", "</dt>"} {
		if bytes.HasSuffix(x.S[low:e], []byte(closing)) {
			e -= len(closing)
			return fieldname.OfName(x.S[x.back(e, low, char.Ident|char.Blank, ".:"):e])
		}
	}
	return fieldname.None
}

// namedAbove returns the kind of the name in the attributes of the tag that ends before
// the one at i: <property name="password"><value>.
func (x *Scanner) namedAbove(i int) fieldname.Kind {
	low := max(0, i-reachPair)
	e := x.back(i, low, char.Space, "")
	if e == low || x.S[e-1] != '>' || e > low+1 && x.S[e-2] == '/' {
		return fieldname.None
	}
	open := bytes.LastIndexByte(x.S[low:e-1], '<')
	if open < 0 || x.Has(low+open+1, "/") {
		return fieldname.None
	}
	return attributeKind(x.S[low+open : e])
}

// isLabel says whether the text of an element may be what people read: words,
// or one that has letters only.
func isLabel(v []byte) bool {
	for _, c := range v {
		if char.Class[c]&char.Blank != 0 {
			return true
		}
	}
	for _, c := range v {
		if char.Class[c]&char.Letter == 0 && c < 0x80 {
			return false
		}
	}
	return true
}

// sqlPassword masks what SQL sets a password to: behind PASSWORD at i, or BY.
func (x *Scanner) sqlPassword(i int, word string, before ...string) bool {
	if !x.Fold(i, word) || x.Is(i-1, char.Word) {
		return false
	}
	// What stands before is asked first: an ordinary "by" waits for nothing behind it.
	e := x.back(i, max(0, i-16), char.Blank, "")
	w := x.S[x.back(e, max(0, e-16), char.Letter, ""):e]
	if word == "by" && char.EqualFold(w, "password") { // IDENTIFIED WITH mysql_native_password BY
		b := x.back(e-len(w), max(0, e-maxTail), char.Ident, "")
		if b = x.back(b, max(0, b-8), char.Blank, ""); b >= len("identified with") &&
			x.Fold(b-len("identified with"), "identified with") {
			w = []byte("identified")
		}
	}
	if !slices.ContainsFunc(before, func(b string) bool { return char.EqualFold(w, b) }) ||
		!x.Is(i+len(word), char.Blank) {
		return false
	}
	v := x.End(i+len(word), 8, char.Blank)
	if x.Fold(v, "for ") { // SET PASSWORD FOR NAME = 'x'
		eol := lineEnd(x.S, v, v+MaxBefore)
		x.Touch(eol)
		if sign := bytes.IndexByte(x.S[v:eol], '='); sign > 0 {
			v = x.End(v+sign+1, 8, char.Blank)
		}
	}
	if !x.Has(v, "'") && !x.Has(v, `"`) {
		if end := x.wordEnd(v); word == "by" && x.Has(i+2, " ") && v >= x.low &&
			(x.S[i] == 'B' || x.altersUser(e-len(w))) && isAssigned(x.S[v:end], fieldname.Password, false) {
			x.mask(v, end, rule.Assignment)
			return true
		}
		return false
	}
	if end := x.closing(v+1, x.S[v], 0); end > v+1 && end-v < span.MaxLen && mask.Len(x.S[v+1:end]) == 0 {
		x.mask(v+1, end, rule.Assignment)
	}
	return true
}

// altersUser reports whether the words before i create or alter a user: alter user ann identified by x.
func (x *Scanner) altersUser(i int) bool {
	low := max(0, i-maxTail)
	line := x.S[low:i]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	for _, verb := range [...]string{"alter user ", "create user ", "alter role ", "create role "} {
		if bytes.Contains(bytes.ToLower(line), []byte(verb)) {
			return true
		}
	}
	return false
}

// tagged says whether a YAML tag or anchor stands before the value at v.
func (x *Scanner) tagged(v int) bool {
	if v >= len(x.S) || x.S[v] != '!' && x.S[v] != '&' {
		return false
	}
	e := x.End(v+1, 64, char.Ident)
	if x.Has(v+1, "!") {
		e = x.End(v+2, 64, char.Ident)
	}
	return e > v+1 && x.Is(e, char.Blank)
}

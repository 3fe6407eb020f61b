package redact

import (
	"bytes"
	"slices"
)

// reachPair is how far before a value the name of its pair may stand.
const reachPair = 200

// paired is the kind of the name in a pair whose "value" begins at i: on the
// line above, as Kubernetes has it; beside it, in an attribute or a member.
func (x *scanner) paired(i int) kind {
	low := max(0, i-reachPair)
	e := x.back(i, low, isSpace, "\"'`\\,-;{")
	b := x.back(e, low, isIdent, ".")
	sign := x.back(b, low, isBlank, "\"'`\\")
	if b == e || sign == low || x.s[sign-1] != ':' && x.s[sign-1] != '=' {
		return kindNone
	}
	end := x.back(sign-1, low, isBlank, "\"'`\\")
	if start := x.back(end, low, isLetter, ""); !isPairName(x.s[start:end]) {
		return kindNone
	}
	return kindOfName(x.s[b:e])
}

// back returns where the run of a class, or of one of more, begins that ends
// at i; not before low.
func (x *scanner) back(i, low int, bits uint16, more string) int {
	for i > low && (class[x.s[i-1]]&bits != 0 || indexByte(more, x.s[i-1]) >= 0) {
		i--
	}
	return i
}

func isPairName(w []byte) bool {
	return isFold(w, "name") || isFold(w, "key") || isFold(w, "id") || isFold(w, "variable")
}

// elementKind is the kind of the element whose tag ends at i, with ">": by its
// own name, an attribute's value, or the element before it, as property lists
// have it. The text of a weak one may be what people read.
func (x *scanner) elementKind(i int) (k kind, weak bool) {
	low := max(0, i-reachPair)
	n := bytes.LastIndexAny(x.s[low:i], "<>\n")
	if n < 0 || x.s[low+n] != '<' {
		return kindNone, false
	}
	tag := low + n + 1
	end := x.nameEnd(tag, i)
	if end == tag || end < i && class[x.s[end]]&isBlank == 0 {
		return kindNone, false // a pseudonym's ":" for one
	}
	if k = kindOf(x.s[tag:end]); k != kindNone || x.s[i-1] == '/' {
		return k, false
	}
	if k = x.named(tag - 1); k != kindNone {
		return k, true
	}
	for _, name := range [...]string{"name=", "key=", "id="} {
		if at := bytes.Index(x.s[end:i], []byte(name)); at > 0 && class[x.s[end+at-1]]&isSpace != 0 {
			v := end + at + len(name)
			if v < i && isQuote(x.s[v]) {
				return kindOfName(x.s[v+1 : x.nameEnd(v+1, i)]), true
			}
		}
	}
	return kindNone, false
}

// nameEnd returns the end of the name that begins at i, at most end.
func (x *scanner) nameEnd(i, end int) int {
	for i < end && (class[x.s[i]]&isIdent != 0 || x.s[i] == '.') {
		i++
	}
	return i
}

// named is the kind of the name in an element that ends before the tag at i:
// <key>password</key>.
func (x *scanner) named(i int) kind {
	low := max(0, i-reachPair)
	e := x.back(i, low, isSpace, "")
	for _, closing := range [...]string{"</key>", "</name>", "</Key>", "</Name>"} {
		if bytes.HasSuffix(x.s[low:e], []byte(closing)) {
			e -= len(closing)
			return kindOfName(x.s[x.back(e, low, isIdent, "."):e])
		}
	}
	return kindNone
}

// isLabel says whether the text of an element may be what people read: words,
// or one that has letters only.
func isLabel(v []byte) bool {
	for _, c := range v {
		if class[c]&isBlank != 0 {
			return true
		}
	}
	for _, c := range v {
		if class[c]&isLetter == 0 && c < 0x80 {
			return false
		}
	}
	return true
}

// sqlPassword masks what SQL sets a password to: behind PASSWORD at i, or BY.
func (x *scanner) sqlPassword(i int, word string, before ...string) bool {
	if !x.fold(i, word) || x.is(i-1, isWord) {
		return false
	}
	// What stands before is asked first: an ordinary "by" waits for nothing behind it.
	e := x.back(i, max(0, i-16), isBlank, "")
	w := x.s[x.back(e, max(0, e-16), isLetter, ""):e]
	if !slices.ContainsFunc(before, func(b string) bool { return isFold(w, b) }) || !x.is(i+len(word), isBlank) {
		return false
	}
	v := x.end(i+len(word), 8, isBlank)
	if !x.has(v, "'") {
		return false
	}
	if end := x.closing(v+1, '\'', 0); end > v+1 && end-v < maxSpan && maskLen(x.s[v+1:end]) == 0 {
		x.mask(v+1, end, ruleAssignment)
	}
	return true
}

// tagged says whether a YAML tag or anchor stands before the value at v.
func (x *scanner) tagged(v int) bool {
	if v >= len(x.s) || x.s[v] != '!' && x.s[v] != '&' {
		return false
	}
	e := x.end(v+1, 64, isIdent)
	if x.has(v+1, "!") {
		e = x.end(v+2, 64, isIdent)
	}
	return e > v+1 && x.is(e, isBlank)
}

// isSign says whether a value is an operator of code, or a verb of printf.
func isSign(v []byte) bool {
	if len(v) > 6 || len(v) < 1 {
		return false
	}
	if v[0] == '%' && len(v) > 1 {
		if n := bytes.IndexByte(v, '\\'); n > 1 {
			v = v[:n]
		}
		return len(v) < 4 && indexByte("svqwdxXTct", v[len(v)-1]) >= 0 && (len(v) == 2 || v[1] == '+' || v[1] == '#')
	}
	for _, c := range v {
		if indexByte("([{+=!&|", c) < 0 {
			return false
		}
	}
	return true
}

package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/command"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/line"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// flag masks the argument of a secret-looking flag whose name starts at i:
// "--password hunter2", `"--token", "x"` in a list, "- --token" and "- x" in
// YAML. The form with "=" is an assignment.
func (x *Scanner) flag(i int) int {
	e := x.End(i, 64, char.Ident)
	v := e
	if v < len(x.S) && (char.IsQuote(x.S[v]) || x.S[v] == '\\') {
		v = x.listed(v)
	} else if v = x.End(v, 8, char.Blank); v == e {
		v = x.dashed(v)
	}
	if v == e || v >= len(x.S) || x.S[v] == '-' || v < x.low {
		return i
	}
	name := x.S[i:e]
	switch k := fieldname.OfName(name); {
	case k.IsSecret():
		sep := byte('=')
		if x.isArgument(v, i) {
			sep = ' '
		}
		x.value(v, k, sep, i)
	case char.EqualFold(name, "user") || char.EqualFold(name, "proxy-user"):
		x.userFlag(v, ':')
	}
	return i
}

// isArgument reports whether the word at v, one blank behind the flag whose name is at i, is its argument on a
// command line: a command is before it, and the line ends or another flag follows.
func (x *Scanner) isArgument(v, i int) bool {
	if !x.Is(v-1, char.Blank) || x.Is(v-2, char.Blank) || len(bytes.TrimSpace(x.before(i-2))) == 0 &&
		!x.Has(i-4, "  ") {
		return false
	}
	e := x.wordEnd(v)
	if e == v || fieldname.IsNameOfSecret(x.S[v:e]) || line.IsType(x.S[v:e]) ||
		line.IsProseWord(x.S[v:e], []byte(" of")) {
		return false
	}
	next := x.End(e, 8, char.Blank)
	x.Touch(next + 1)
	return next >= len(x.S) || char.IndexByte("\n\r\\|&;>`", x.S[next]) >= 0 || next > e && x.S[next] == '-'
}

// listed returns where the next string of a list begins whose last one ends
// at the quote at i; i where there is none.
func (x *Scanner) listed(i int) int {
	j := i
	for x.Has(j, `\`) && j < i+8 {
		j++
	}
	if j == len(x.S) || !char.IsQuote(x.S[j]) {
		return i
	}
	j++
	gap := x.End(j, 8, char.Blank)
	if x.Has(gap, ",") {
		gap = x.End(gap+1, 64, char.Space)
	} else if gap == j {
		return i
	}
	q := gap
	for x.Has(q, `\`) && q < gap+8 {
		q++
	}
	if q < len(x.S) && char.IsQuote(x.S[q]) && !x.Has(q+1, "-") {
		return gap
	}
	return i
}

// dashed returns where the next item of a YAML list begins behind the line
// break at i; i where there is none.
func (x *Scanner) dashed(i int) int {
	j := i
	if x.Has(j, "\r") {
		j++
	}
	if !x.Has(j, "\n") {
		return i
	}
	if j = x.End(j+1, 64, char.Blank); !x.Has(j, "- ") {
		return i
	}
	return x.End(j+2, 8, char.Blank)
}

// userFlag masks the "name:password" of "curl -u name:password" at v, whose two parts sign separates. Numbers
// alone are a user and a group.
func (x *Scanner) userFlag(v int, sign byte) {
	if v < len(x.S) && char.IsQuote(x.S[v]) {
		v++
	}
	end, colon, letters := v, false, false
	for ; end < len(x.S) && end < v+256 && char.Class[x.S[end]]&char.Space == 0 && !char.IsQuote(x.S[end]); end++ {
		colon = colon || end > v && x.S[end-1] == sign // something follows it
		letters = letters || char.Class[x.S[end]]&char.Letter != 0
	}
	x.Touch(end)
	if colon && letters && x.Is(v, char.Alnum) && mask.Len(x.S[v:end]) == 0 {
		x.mask(v, end, rule.Assignment)
	}
}

// shortFlag judges the "-" at i that begins a word: "mysql -pSECRET",
// "sshpass -p x", "curl -u name:password".
func (x *Scanner) shortFlag(i int) int {
	if i+3 >= len(x.S) {
		x.Touched = true
		return i + 1
	}
	if x.S[i+1] == '-' || char.Class[x.S[i+1]]&char.Letter == 0 {
		return i + 1
	}
	c, v := x.S[i+1], x.End(i+2, 8, char.Blank)
	if c == 'u' || c == 'U' {
		switch {
		case c == 'u' || command.HasCommand(x.before(i), "curl"):
			x.userFlag(v, ':')
		case command.HasCommand(x.before(i), "smb"):
			x.userFlag(v, '%')
		}
		return i + 1
	}
	if glued := v == i+2; v < len(x.S) && x.S[v] != '-' && command.IsFlag(c, glued) &&
		command.TakesPassword(x.before(i), c, glued) {
		x.value(v, fieldname.Password, ' ', i)
	}
	return i + 1
}

// before returns the line before i, as far as a flag's command is looked for.
func (x *Scanner) before(i int) []byte {
	line := x.S[max(0, i-command.Reach):i]
	return line[bytes.LastIndexByte(line, '\n')+1:]
}

// setters are the words before a name and its value with a blank between:
// ENV of a Dockerfile, setenv of csh, set of others.
var setters = [...]string{"env", "setenv", "setx", "set", "configure set", "-x", "-gx", "-ux"}

// setting judges the "_" at i of a name such as API_KEY: "ENV API_KEY x".
func (x *Scanner) setting(i int) {
	b := i
	for b > 0 && i-b < 48 && char.Class[x.S[b-1]]&char.Ident != 0 {
		b--
	}
	e := x.End(i, 48, char.Ident)
	if e-i < 4 || !x.Is(e, char.Blank) || x.maskStatement(b, e) || !x.Is(b-1, char.Blank) {
		return
	}
	w := b - 1
	for w > 0 && b-w < 6 && char.Class[x.S[w-1]]&char.Blank != 0 {
		w--
	}
	word := x.S[max(0, w-16):w]
	for _, name := range setters {
		if !char.HasFoldSuffix(word, name) || len(word) > len(name) &&
			char.Class[word[len(word)-len(name)-1]]&char.Space == 0 {
			continue
		}
		v := x.End(e, 8, char.Blank)
		if k := fieldname.OfName(x.S[b:e]); k.IsSecret() && v < len(x.S) && x.S[v] != '-' && x.S[v] != '=' &&
			v >= x.low {
			x.value(v, k, ' ', b)
		}
		return
	}
}

// maskStatement masks the string behind the name [b, e) of a setting that has no sign: api_key "x";. It reports
// whether the line begins so.
func (x *Scanner) maskStatement(b, e int) bool {
	v := x.End(e, 8, char.Blank)
	if v >= len(x.S) || !char.IsQuote(x.S[v]) || v < x.low {
		return false
	}
	if low := x.back(b, max(0, b-maxTail), char.Blank, ""); low > 0 && x.S[low-1] != '\n' {
		return false
	}
	from, to, after := x.stringAt(v)
	if after == 0 {
		return false
	}
	x.Touch(after)
	if k := secretOnly(fieldname.OfName(x.S[b:e])); (after == len(x.S) || char.IndexByte(";\r\n", x.S[after]) >= 0) &&
		isAssigned(x.S[from:to], k, false) {
		x.mask(from, to, ruleOf(k, false))
	}
	return true
}

// reachMachine is how far before a password a .netrc names its machine.
const reachMachine = 200

// netrc masks the password of "machine h login n password x", whose "w"
// stands at i; the three may stand on lines of their own.
func (x *Scanner) netrc(i int) int {
	if !x.Has(i-4, "password") || !x.Begins(i-4) || !x.Is(i+4, char.Space) {
		return i + 1
	}
	v := x.End(i+4, 8, char.Space)
	before := x.S[max(0, i-4-reachMachine) : i-4]
	if !bytes.Contains(before, []byte("login ")) { // much faster than LastIndex
		return i + 1
	}
	at := max(bytes.LastIndex(before, []byte("machine ")), bytes.LastIndex(before, []byte("default")))
	if at < 0 || !bytes.Contains(before[at:], []byte("login ")) || v >= len(x.S) || v < x.low {
		return i + 1
	}
	e := v
	for e < len(x.S) && e < v+256 && char.Class[x.S[e]]&char.Space == 0 {
		e++
	}
	if mask.Len(x.S[v:]) == 0 && !isNetrcWord(x.S[v:e], x.S[e:min(len(x.S), e+maxTail)]) {
		x.mask(v, e, rule.Assignment)
	}
	return i + 1
}

// isNetrcWord reports whether word, which tail follows, is behind "password" in code or in a sentence about a
// .netrc, and no password: a sign, a type, an interpolation.
func isNetrcWord(word, tail []byte) bool {
	return fieldname.IsReference(word) || line.IsType(word) || line.IsProseWord(word, tail) ||
		word[0] == '{' && bytes.IndexByte(word, '}') > 0
}

// maskCommand masks a password that the place in a command line announces. The word of the name is not empty.
func (x *Scanner) maskCommand(w command.Word) bool {
	if x.Touch(w.End + 1); w.IsEmpty() || w.Start < x.low || mask.Len(x.S[w.Start:w.End]) > 0 ||
		!fieldname.CanHold(fieldname.Password, x.S[w.Start:w.End]) {
		return false
	}
	x.mask(w.Start, w.End, rule.Assignment)
	return true
}

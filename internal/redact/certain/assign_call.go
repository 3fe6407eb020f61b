package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/command"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/line"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// isAssigned reports whether the string v may be a secret that code assigns: no label, no
// name of a field, no pattern. The weak need it to look like one.
func isAssigned(v []byte, k fieldname.Kind, weak bool) bool {
	if len(v) == 0 || len(v) > maxJudged || mask.Len(v) > 0 || !canHold(v, k, '=') || !k.IsSecret() {
		return false
	}
	if weak && k != fieldname.Key && !isSecretForm(v) {
		return false
	}
	return !fieldname.IsNameOfSecret(v) && !fieldname.IsPattern(v) && !line.IsType(v)
}

// isSecretForm reports whether v looks like a password or credentials behind a scheme.
func isSecretForm(v []byte) bool {
	if blank := bytes.LastIndexByte(v, ' '); blank > 0 && blank < 8 {
		v = v[blank+1:]
	}
	return fieldname.IsTelling(v) && !fieldname.IsTechnique(v)
}

// stringAt returns the content [b, e) of the string whose quote, or prefix, is at i, and
// the offset after it, or 0.
func (x *Scanner) stringAt(i int) (b, e, after int) {
	q := x.literalPrefix(i)
	if q >= len(x.S) {
		x.Touch(q)
		return 0, 0, 0
	}
	if !char.IsQuote(x.S[q]) {
		return 0, 0, 0
	}
	e = x.closing(q+1, x.S[q], 0)
	if e >= len(x.S) || x.S[e] != x.S[q] {
		return 0, 0, 0
	}
	return q + 1, e, e + 1
}

// callee are verbs of functions that set a value by its name.
var callee = [...]string{
	"put", "set", "add", "append", "setenv", "define", "header", "setheader", "setrequestheader", "addheader",
	"setitem", "setproperty",
	"withheader",
}

// getters are words of functions that look something up: their argument is a name.
var getters = [...]string{
	"get", "find", "fetch", "load", "read", "is", "has", "remove", "delete", "request", "resolve", "lookup",
	"contains", "require", "input", "label",
	"field", "by", "for", "expect", "assert", "validate", "verify", "parse", "describe", "it", "test", "error",
	"invalid", "no", "missing", "check", "on",
}

func isOneOf(w []byte, list []string) bool {
	for _, t := range list {
		if char.EqualFold(w, t) {
			return true
		}
	}
	return false
}

// accounts are the ends of names of functions that take a user and a password.
var accounts = [...]string{
	"passwordauthentication", "passwordcredentials", "passwordcredential", "networkcredential", "basicauth",
	"basic_auth", "basicauthentication", "digestauth", "digest_auth", "auth", "login", "passwordtoken", "credential",
	"credentials", "signin", "sign_in", "authenticate", "authenticationtoken",
}

// maskSecond masks the second of the strings that a function takes whose name [start, end) says that it takes a user
// and a password: NetworkCredential("kim", "x"), auth=("kim", "x"). It reports whether it is such a call.
func (x *Scanner) maskSecond(start, end int) bool {
	open := end
	if start == end {
		end = x.back(end, max(0, end-maxTail), char.Blank, "=")
		start = x.back(end, max(0, end-maxTail), char.Ident, "")
	}
	for _, account := range accounts {
		if char.HasFoldSuffix(x.S[start:end], account) {
			return x.maskPassword(open+1, ')')
		}
	}
	return false
}

// maskArgument masks a secret among the arguments of the call whose "(" is at i: set("api_key",
// "x"), setPassword("x"), getenv("SECRET") or "x".
func (x *Scanner) maskArgument(i int) int {
	if i+1 >= len(x.S) {
		x.Touched = true
		return i + 1
	}
	if i+1 < x.low || !char.IsQuote(x.S[i+1]) {
		return i + 1
	}
	start := x.back(i, max(0, i-maxTail), char.URL64, "$")
	if start == i {
		x.maskCompared(i + 1)
	}
	if k, weak := x.ofSetter(start, i); k != fieldname.None {
		b, e, after := x.stringAt(i + 1)
		if after > 0 && isAssigned(x.S[b:e], k, weak) && (x.Has(after, ")") || x.Has(after, ",")) {
			x.mask(b, e, ruleOf(k, false))
		} else {
			x.maskSecond(start, i)
		}
		return i + 1
	}
	if x.maskSecond(start, i) || start < i && x.maskDecoded(start, i) {
		return i + 1
	}
	b := i + 2
	e := b
	for e < len(x.S) && e-b <= maxTail && x.S[e] != ' ' && x.S[e] != '\n' && x.S[e] != x.S[i+1] {
		e++
	}
	x.Touch(e)
	if e == len(x.S) || x.S[e] != x.S[i+1] {
		return i + 1
	}
	after := e + 1
	k := fieldname.OfName(x.S[b:e])
	v := x.End(after, 1, 0)
	if x.Has(after, ",") {
		v = x.End(after+1, maxTail, char.Space)
	}
	if v > after { // set("section", "password", "x")
		if b, e, end := x.stringAt(v); end > 0 && x.Has(end, ",") && fieldname.OfName(x.S[b:e]).IsSecret() {
			k, after = fieldname.OfName(x.S[b:e]), end
			v = x.End(end+1, maxTail, char.Space)
		}
	}
	if !k.IsSecret() {
		x.maskSecond(start, i)
		return i + 1
	}
	if x.Has(after, ",") {
		if b, e, end := x.stringAt(v); end > 0 && v >= x.low {
			last := x.S[x.back(i, start, char.Alnum, ""):i]
			if isAssigned(x.S[b:e], k, k == fieldname.Line || k == fieldname.Cookie || !isOneOf(last, callee[:])) {
				x.mask(b, e, ruleOf(k, false))
			}
		}
		return i + 1
	}
	if x.Has(after, ")") {
		x.maskAlternative(after+1, k)
	}
	return i + 1
}

// ofSetter returns what the name [start, end) of a function says about its argument: of
// setPassword, of a variable that is declared so, of the object of assign. weak reports that the argument has to
// look like a secret.
func (x *Scanner) ofSetter(start, end int) (k fieldname.Kind, weak bool) {
	if start == end {
		return fieldname.None, false
	}
	if k = fieldname.OfName(x.S[start:end]); k == fieldname.None && start > 0 && x.S[start-1] == '.' &&
		char.EqualFold(x.S[start:end], "assign") {
		b, e := x.Name(start - 1)
		return secretOnly(fieldname.OfName(x.S[b:e])), false
	}
	if k == fieldname.Key && x.isSetter(start, end) {
		return k, false
	}
	if k = secretOnly(k); k == fieldname.Secret && isCapital(x.S[start]) && !x.isSetter(start, end) ||
		x.hasWord(start, end, getters[:]) {
		return fieldname.None, false
	}
	return k, !x.isSetter(start, end) && !x.isDeclared(start)
}

// maskPassword masks the second of two strings that begin at v, and reports whether there are two. The first is the
// name of a user. If the bracket end does not close them, the second has to look like a password.
func (x *Scanner) maskPassword(v int, end byte) bool {
	b, e, after := x.stringAt(v)
	if after == 0 || e-b > maxTail || !x.Has(after, ",") || e == b {
		return false
	}
	user := x.S[b:e]
	b, e, after = x.stringAt(x.End(after+1, maxTail, char.Space))
	if after == 0 || b < x.low || e == b {
		return false
	}
	next := x.End(after, 8, char.Space)
	if x.Has(next, ".toCharArray()") {
		next += len(".toCharArray()")
	}
	x.Touch(next)
	weak := next >= len(x.S) || x.S[next] != end || fieldname.OfName(user).IsSecret()
	if text := x.S[b:e]; x.S[b] != '/' && isAssigned(text, fieldname.Password, weak) &&
		!char.EqualFold(user, string(text)) && bytes.IndexByte(user, ' ') < 0 && bytes.IndexByte(text, ' ') < 0 {
		x.mask(b, e, ruleOf(fieldname.Password, false))
	}
	return true
}

// maskDecoded masks the string that the call [start, i) decodes for a function that sets a secret:
// setKey(Base64.decode("x")).
func (x *Scanner) maskDecoded(start, i int) bool {
	if w := x.S[start:i]; !char.HasFoldSuffix(w, "decode") && !char.HasFoldSuffix(w, "decodebase64") &&
		!char.HasFoldSuffix(w, "unhexlify") && !char.HasFoldSuffix(w, "fromhex") &&
		!char.HasFoldSuffix(w, "decodehex") && !char.HasFoldSuffix(w, "b64decode") &&
		!char.HasFoldSuffix(w, "from_hex") {
		return false
	}
	open := x.back(start, max(0, start-maxTail), char.Ident, "()")
	open += bytes.LastIndexByte(x.S[open:start], '(')
	if open < 0 || !x.Has(open, "(") {
		return false
	}
	k := fieldname.OfName(x.S[x.back(open, max(0, open-maxTail), char.Ident, ""):open])
	b, e, after := x.stringAt(i + 1)
	if k.IsSecret() && after > 0 && b >= x.low && isAssigned(x.S[b:e], k, true) {
		x.mask(b, e, ruleOf(k, false))
	}
	return k.IsSecret()
}

// secretOnly returns k if it needs no other evidence.
func secretOnly(k fieldname.Kind) fieldname.Kind {
	if k == fieldname.Password || k == fieldname.Secret {
		return k
	}
	return fieldname.None
}

// isDeclared reports whether the type string is before the name at start: std::string secret("x").
func (x *Scanner) isDeclared(start int) bool {
	e := x.back(start, max(0, start-8), char.Blank, "")
	return e < start && e > len("string") && x.Fold(e-len("string"), "string") && !x.Is(e-len("string")-1, char.Alnum)
}

// comparisons are signs between a string and the variable that should be equal to it.
var comparisons = [...]string{"===", "!==", "==", "!="}

// maskCompared masks the string at i that is compared with a variable: ("x" == password).
func (x *Scanner) maskCompared(i int) {
	b, e, after := x.stringAt(i)
	if after == 0 || e-b > MaxBefore || b < x.low {
		return
	}
	v := x.End(after, 8, char.Blank)
	for _, sign := range comparisons {
		if !x.Has(v, sign) {
			continue
		}
		name := x.End(v+len(sign), 8, char.Blank)
		end := name
		for end < len(x.S) && end < name+maxTail && (char.Class[x.S[end]]&char.Ident != 0 ||
			char.IndexByte(".$@>:", x.S[end]) >= 0) {
			end++
		}
		x.Touch(end)
		if k := secretOnly(fieldname.OfName(x.S[name:end])); !x.Has(end, "(") && isAssigned(x.S[b:e], k, false) {
			x.mask(b, e, ruleOf(k, false))
		}
		return
	}
	x.Touch(v + len(comparisons[0]))
}

// isSetter reports whether the name of a function [start, end) begins with a verb that sets.
func (x *Scanner) isSetter(start, end int) bool {
	return end-start > 4 && (x.Fold(start, "set") || x.Fold(start, "with"))
}

// hasWord reports whether one of the words of the name [start, end) is in list.
func (x *Scanner) hasWord(start, end int, list []string) bool {
	for i := start; i < end; {
		b := i
		for i++; i < end && char.Class[x.S[i]]&(char.Lower|char.Digit) != 0; {
			i++
		}
		if isOneOf(bytes.Trim(x.S[b:i], "._-:$>"), list) {
			return true
		}
	}
	return false
}

// maskAlternative masks the string behind the operator at i that replaces a missing secret
// of kind k: || "x", ?? "x", ?: "x", or "x".
func (x *Scanner) maskAlternative(i int, k fieldname.Kind) {
	v := x.End(i, 8, char.Blank)
	for _, op := range [...]string{"||", "??", "?:", "or "} {
		if !x.Has(v, op) {
			continue
		}
		v = x.End(v+len(op), 8, char.Blank)
		if b, e, end := x.stringAt(v); end > 0 && v >= x.low && isAssigned(x.S[b:e], k, false) {
			x.mask(b, e, ruleOf(k, false))
		}
		return
	}
}

// maskBehindOperator judges the "|" or "?" at i: a value for what is missing, or a table's cell.
func (x *Scanner) maskBehindOperator(i int) int {
	op := x.S[i]
	if x.Has(i+1, string(op)) || op == '?' && x.Has(i+1, ":") {
		start, end := x.Name(i)
		if start < end {
			if k := fieldname.OfName(x.S[start:end]); k.IsSecret() {
				x.maskAlternative(i, k)
			}
		}
		return i + 1
	}
	if op == '|' && (i == 0 || x.S[i-1] != '|') {
		if x.maskCommand(command.FindBeforePipe(x.S, i)) {
			return i + 1
		}
		return x.maskTableCell(i)
	}
	return i + 1
}

// maskMacro masks the string of a C macro whose "#" is at i: #define API_KEY "x".
func (x *Scanner) maskMacro(i int) int {
	if !x.Has(i+1, "define ") {
		return i + 1
	}
	b := x.End(i+8, 8, char.Blank)
	e := x.End(b, maxTail, char.Ident)
	v := x.End(e, maxTail, char.Blank)
	if k := fieldname.OfName(x.S[b:e]); v > e && k.IsSecret() {
		if b, e, end := x.stringAt(v); end > 0 && v >= x.low && isAssigned(x.S[b:e], k, false) {
			x.mask(b, e, ruleOf(k, false))
		}
	}
	return i + 1
}

// longFlag masks the argument of a flag with one dash, whose "-" is at i: -Password x,
// -storepass x, and the string that PowerShell converts.
func (x *Scanner) longFlag(i int) {
	if x.Has(i+1, "SecureString") && x.Has(i-9, "ConvertTo") {
		v := x.End(i+13, 8, char.Blank)
		if x.Has(v, "-String") {
			v = x.End(v+7, 8, char.Blank)
		}
		if b, e, end := x.stringAt(v); end > 0 && v >= x.low && isAssigned(x.S[b:e], fieldname.Password, false) {
			x.mask(b, e, ruleOf(fieldname.Password, false))
		}
		return
	}
	if i > 0 && char.Class[x.S[i-1]]&char.Space == 0 || !x.Is(i+1, char.Letter) || !x.Is(i+2, char.Letter) {
		return
	}
	e := x.End(i+1, 40, char.Ident)
	v := x.End(e, 8, char.Blank)
	if v == e || v < x.low {
		return
	}
	k := fieldname.OfName(x.S[i+1 : e])
	if k != fieldname.Password && k != fieldname.Secret {
		return
	}
	if b, e, end := x.stringAt(v); end > 0 {
		if isAssigned(x.S[b:e], k, false) {
			x.mask(b, e, ruleOf(k, false))
		}
		return
	}
	end, weak := x.wordEnd(v), true
	if x.Has(v, "pass:") { // of openssl
		v, weak = v+len("pass:"), false
	}
	if isAssigned(x.S[v:end], k, weak) {
		x.mask(v, end, ruleOf(k, false))
	}
}

// wordEnd returns the end of the word at v, without the signs that close a sentence.
func (x *Scanner) wordEnd(v int) int {
	e := v
	for e < len(x.S) && e < v+MaxBefore && char.Class[x.S[e]]&char.Space == 0 && !char.IsQuote(x.S[e]) &&
		x.S[e] != '<' {
		e++
	}
	x.Touch(e)
	return v + len(trimTail(x.S[v:e]))
}

package fieldname

import (
	"bytes"
	"math/bits"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// maxJudged is the longest value, in bytes, that is compared with fillers and labels.
const maxJudged = 256

// CanHold reports whether v, a whole value such as a string of JSON, may be what a name
// of kind k announces. A truth value, a reference, an example value, a label and an address
// of something are not; neither is the name of a repository a person's.
func CanHold(k Kind, v []byte) bool {
	v = bytes.TrimSpace(v)
	switch {
	case len(v) == 0 || k == None:
		return false
	case k.IsSecret() && (IsPublicKey(v) || isFile(v) || isObjectID(v) || isAction(v) || isSentence(v) ||
		isComposed(v)):
		return false
	case len(v) > maxJudged:
		if k == Key {
			return IsRandom(v[:maxJudged])
		}
		return k != Person && (k == Line || k == Cookie || bytes.Count(v[:maxJudged], []byte(" ")) < maxJudged/10)
	case k == Number:
		return true
	case IsReference(v) || IsFiller(v) || k.IsSecret() && isForeignWord(v):
		return false
	case k.IsSecret() && hasScheme(v):
		rest := bytes.TrimSpace(v[bytes.IndexByte(v, ' '):])
		return !IsReference(rest) && !IsFiller(rest) && !isOwnWord(rest) && bytes.IndexByte(rest, ' ') < 0
	case k == Person:
		return isPerson(v)
	case k == PII:
		return hasDigit(v) || OfName(v) == None
	case k == Key:
		return IsRandom(v) || isComplex(v)
	case k == Likely:
		return IsTelling(v)
	case k == Line:
		return !isLocation(v)
	}
	return !isLocation(v) && !IsProse(v) && !isOwnWord(v)
}

// publicHeads begin public keys: of SSH, and a SubjectPublicKeyInfo in base64.
var publicHeads = [...]string{"ssh-rsa ", "ssh-dss ", "ssh-ed25519 ", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-",
	"AAAAB3NzaC1", "AAAAC3NzaC1", "AAAAE2VjZHNh", "MFwwDQYJKoZIhvcNAQEBBQAD", "MIGfMA0GCSqGSIb3DQEBAQUAA4",
	"MIIBIjANBgkqhkiG9w0BAQEFAAOC",
	"MIICIjANBgkqhkiG9w0BAQEFAAOC", "MIIBojANBgkqhkiG9w0BAQEFAAOC", "MFkwEwYHKoZIzj0CAQ", "MHYwEAYHKoZIzj0CAQ",
	"MCowBQYDK2VwAyEA", "MCowBQYDK2VuAyEA", "-----BEGIN PUBLIC", "-----BEGIN CERT", "-----BEGIN RSA PUBLIC"}

// IsPublicKey reports whether v begins as a public key or a certificate does.
func IsPublicKey(v []byte) bool {
	for _, h := range publicHeads {
		if len(v) > len(h) && string(v[:len(h)]) == h {
			return true
		}
	}
	return false
}

// fillers are values that tell nothing: truth values, absences, what a type or a rule is
// called, what a program prints instead of a secret, what a template wants replaced.
var fillers = [...]string{
	"true", "false", "yes", "no", "on", "off", "null", "nil", "none", "undefined", "required", "redacted",
	"optional", "nullable", "confirmed",
	"include", "omit", "same-origin", "write", "read", "string", "str", "number", "integer", "int", "boolean",
	"bool", "object", "array", "bytes",
	"changeme", "change-me", "change_me", "changeit", "replaceme", "replace-me", "replace_me", "placeholder",
	"hidden", "masked", "filtered",
	"bearer", "basic", "digest", "n/a", "todo", "tbd", "unset", "empty", "missing", "invalid", "expired",
	"enabled", "disabled", "inherit", "oauth", "oauth1",
	"oauth2", "saml2", "none", "ntlm", "ldap", "mtls",
	"test", "test123", "test1234", "testing", "testpass", "testpassword", "dummy", "foo", "bar", "baz", "foobar",
	"example", "sample", "demo", "fake", "pass", "passw", "passwd", "password", "secret", "asdf", "qwerty",
	"guest", "root", "admin", "postgres", "mysql", "username", "user", "123456", "1234567",
	"12345678", "123456789", "abc123", "admin123", "password123", "changeme123",
	"ask", "prompt", "any", "something", "anything", "whatever", "nothing", "ignored", "deny", "allow", "wrong",
	"reset", "md5", "scram-sha-256", "sha256_password", "mysql_native_password", "caching_sha2_password", "bcrypt",
	"scrypt", "argon2",
	"argon2id", "argon2i", "pbkdf2", "plain", "plaintext", "cleartext", "crypt", "sha1", "sha256", "sha512", "function",
	"utf-8", "utf8", "utf-16", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1", "cp1252", // encodings
	"amd64", "arm64", "i386", "armhf", "riscv64", "ppc64el", "s390x", // libsecret-1-0:amd64
	"files", "compat", "systemd", "files systemd", "sss", "files sss", "anonymous",
}

var fillerGate = fillerGates()

func fillerGates() (g char.WordGate) {
	for _, t := range fillers {
		g.Add(t)
	}
	return g
}

// ruleHeads begin a rule of validation, fillerHeads what is to be replaced.
var ruleHeads = [...]string{"required|", "nullable|", "sometimes|", "confirmed|", "string|", "required,"}

var fillerHeads = [...]string{"your-", "your_", "your ", "<your", "replace-", "replace_", "insert-", "insert_",
	"change-this", "change_this"}

// IsFiller reports whether v is one of fillers, or begins as such a rule or request does.
func IsFiller(v []byte) bool {
	if isIn(v, &fillerGate, fillers[:]) || isExample(v) || isInvented(v) {
		return true
	}
	for _, h := range ruleHeads {
		if len(v) > len(h) && char.EqualFold(v[:len(h)], h) {
			return true
		}
	}
	for _, h := range fillerHeads {
		if len(v) > len(h) && char.EqualFold(v[:len(h)], h) && !hasDigit(v) {
			return true
		}
	}
	return false
}

// isForeignWord reports whether v is words of a script or a language beyond ASCII, as labels
// are: no digit and no sign is in it but those of a sentence.
func isForeignWord(v []byte) bool {
	foreign := false
	for _, c := range v {
		switch {
		case c >= 0x80:
			foreign = true
		case char.Class[c]&char.Letter == 0 && char.IndexByte(" .,?!:;'-()", c) < 0:
			return false
		}
	}
	return foreign
}

// fillerWords are what is put before or after the name of a secret in an example:
// some-password, invalid_token, put-your-key-here.
var fillerWords = [...]string{
	"some", "invalid", "valid", "new", "old", "my", "the", "your", "test", "fake", "dummy", "sample", "example",
	"wrong", "bad", "incorrect", "correct", "not", "a", "put", "insert", "here", "goes", "value", "real", "mock",
	"access", "refresh", "client", "id", "user", "app", "service", "this", "is", "foo", "bar", "for", "testing",
}

var fillerWordGate = fillerWordGates()

func fillerWordGates() (g char.WordGate) {
	for _, t := range fillerWords {
		g.Add(t)
	}
	return g
}

// isExample reports whether v, without digits, has only such words and words for secrets.
func isExample(v []byte) bool {
	filler, words := false, 0
	for i := 0; len(v) <= 40; words++ {
		w, end := nextWord(v, i)
		if w == nil {
			return filler && words > 1
		}
		if i = end; isIn(w, &fillerWordGate, fillerWords[:]) {
			filler = true
		} else if !isSecretWord(w) {
			return false
		}
	}
	return false
}

func hasDigit(v []byte) bool {
	for _, c := range v {
		if char.Class[c]&char.Digit != 0 {
			return true
		}
	}
	return false
}

// IsReference reports whether v only names another value ($DB_PASSWORD, ${x},
// {{ .Values.x }}, %s, <your token>), or has no letter and digit of its own (****).
func IsReference(v []byte) bool {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return true
	}
	last := v[len(v)-1]
	switch c := v[0]; c {
	case '$':
		if isVariable(v[1:]) {
			return true
		}
	case '%':
		if isVerb(v) || last == '%' && len(v) > 2 && isPath(v[1:len(v)-1], "_") || len(v) > 2 && (v[1] == '(' ||
			v[1] == '{') && isInterpolated(v[2:]) {
			return true
		}
	case '{', '<', '(', '[':
		if len(v) > 1 && (c == '{' && v[1] == '{' && isInterpolated(v[2:]) || isBracketed(v)) {
			return true
		}
	case '#', '@', ':':
		if len(v) > 1 && (v[1] == '{' && isInterpolated(v[2:]) || c != '#' && isPath(v[1:], "_") &&
			IsNameOfSecret(v[1:])) {
			return true
		}
	default:
		if bytes.Count(v, v[:1]) == len(v) && (len(v) > 2 || char.IndexByte("#/-?", c) >= 0) {
			return true
		}
	}
	if v[0] == '#' && (bytes.Count(v, v[:1]) == len(v) || isColour(v[1:])) {
		return true
	}
	return isMute(v) || hasHoles(v)
}

// isColour reports whether v is three, six or eight hexadecimal digits, as behind the "#" of a colour.
func isColour(v []byte) bool {
	for _, c := range v {
		if char.Class[c]&char.Hex == 0 {
			return false
		}
	}
	return len(v) == 3 || len(v) == 6 || len(v) == 8
}

// isVerb reports whether v is one verb of printf.
func isVerb(v []byte) bool {
	if n := bytes.IndexByte(v, '\\'); n > 1 {
		v = v[:n]
	}
	return len(v) > 1 && len(v) < 4 && char.IndexByte("svqwdxXTctn", v[len(v)-1]) >= 0 && (len(v) == 2 ||
		char.IndexByte("+#", v[1]) >= 0)
}

// isBracketed reports whether v is one pair of brackets around words: <your token>,
// {token}, [hidden], (optional).
func isBracketed(v []byte) bool {
	n := len(v)
	if n < 3 || v[n-1] != closingBracket(v[0]) {
		return false
	}
	for _, c := range v[1 : n-1] {
		if char.Class[c]&(char.Letter|char.Blank) == 0 && char.IndexByte("_-.,:'=/$%", c) < 0 && (v[0] == '[' ||
			char.Class[c]&char.Digit == 0) {
			return false
		}
	}
	last := v[bytes.LastIndexByte(v[:n-1], ' ')+1 : n-1]
	return !IsRandom(bytes.TrimLeft(last, "{<([")) // {AQAAABAA x} of Jenkins
}

// closingBracket returns the bracket that closes one.
func closingBracket(c byte) byte {
	switch c {
	case '(':
		return ')'
	case '<':
		return '>'
	}
	return c + 2
}

// isMute reports whether v has neither a letter nor a digit.
func isMute(v []byte) bool {
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case char.Class[c]&char.Alnum != 0:
			return false
		case c < 0x80:
		case i+2 < len(v) && c == 0xe2 && v[i+1] >= 0x80 && v[i+1] <= 0x9f: // dots, dashes, blocks
			i += 2
		default:
			return false
		}
	}
	return len(v) > 0
}

// holes are what opens an interpolation, and what closes it.
var holes = [...][2]string{{"${", "}"}, {"{{", "}}"}, {"#{", "}"}, {"<%", "%>"}, {"$(", ")"}, {"\\(", ")"}, {"{", "}"}}

// hasHoles reports whether v is made of interpolations and of what tells nothing without
// them: "Bearer ${token}", "{user}:{password}", "%s:%s". Signs of a password around them are
// of one.
func hasHoles(v []byte) bool {
	if bytes.IndexByte(v, '{') < 0 && bytes.IndexByte(v, '%') < 0 && bytes.IndexByte(v, '(') < 0 &&
		bytes.IndexByte(v, '$') < 0 {
		return false
	}
	found, odd := false, 0
	for i := 0; i < len(v); {
		n := holeLen(v[i:])
		if n > 0 {
			found = true
			i += n
			continue
		}
		if char.Class[v[i]]&char.Digit != 0 {
			return false
		}
		if char.IndexByte("!#$%^*~{}", v[i]) >= 0 {
			odd++
		}
		i++
	}
	return found && odd < 2 && (odd == 0 || isBalanced(v))
}

// holeLen returns the length of the interpolation that v begins with, or 0.
func holeLen(v []byte) int {
	switch v[0] {
	case '%':
		for n := 2; n < 4 && n <= len(v); n++ {
			if isVerb(v[:n]) {
				return n
			}
		}
		return 0
	case '$':
		if e := 1 + identLen(v[1:]); e > 2 && IsNameOfSecret(v[1:e]) || e > 1 && e < len(v) && v[e] == ':' {
			return e
		}
	}
	for _, h := range holes {
		if !bytes.HasPrefix(v, []byte(h[0])) {
			continue
		}
		n := bytes.Index(v, []byte(h[1]))
		if n > 0 && (h[0] != "{" && isInterpolated(v[len(h[0]):n]) || h[0] == "{" && (isPath(v[1:n],
			"_.!:'\"[]()") || n == 1 || hasDigit(v[1:n]) && n == 2)) {
			return n + len(h[1])
		}
		if n < 0 && len(h[0]) > 1 && h[0][0] != '<' && len(v) > len(h[0]) && isInterpolated(v[len(h[0]):]) {
			return len(v) // a string in it has ended the value
		}
	}
	return 0
}

func identLen(v []byte) int {
	n := 0
	for n < len(v) && (char.Class[v[n]]&char.Alnum != 0 || v[n] == '_') {
		n++
	}
	return n
}

// isPath reports whether v is letters and signs of a list, digits after them.
func isPath(v []byte, signs string) bool {
	if len(v) == 0 || char.Class[v[0]]&char.Letter == 0 && v[0] != '_' {
		return false
	}
	for _, c := range v {
		if char.Class[c]&char.Alnum == 0 && char.IndexByte(signs, c) < 0 {
			return false
		}
	}
	return true
}

// isVariable reports whether v follows "$" in the name of a variable: a name in capitals or
// of a secret, a number, something in brackets. A password may begin with the sign, so that small letters are
// not enough.
func isVariable(v []byte) bool {
	if len(v) == 0 {
		return false
	}
	if v[0] == '{' {
		return isBraced(bytes.TrimLeft(v, "{$ "))
	}
	if v[0] == '(' {
		return true
	}
	if char.DigitsFrom(v, 0, 3) == len(v) {
		return len(v) < 3
	}
	n := identLen(v)
	if n == 0 || char.Class[v[0]]&char.Digit != 0 {
		return false
	}
	if isCamel(v[:n]) && n == len(v) {
		return true
	}
	if n < len(v) {
		return char.IndexByte(".[-", v[n]) >= 0 && (v[n] != '-' || n+1 < len(v) && v[n+1] == '>') && !hasDigit(v)
	}
	if IsNameOfSecret(v) {
		return true
	}
	for _, c := range v {
		if char.Class[c]&(char.Upper|char.Digit) == 0 && c != '_' {
			return false
		}
	}
	return len(v) > 1
}

// isBraced reports whether v, what follows "${", is a name and then the end of the brace or an
// operator of a shell. Other text is literal: a password may have such signs.
func isBraced(v []byte) bool {
	n := identLen(bytes.TrimLeft(v, "!#"))
	n += len(v) - len(bytes.TrimLeft(v, "!#"))
	if n == len(v) {
		return true
	}
	return n > 0 && (char.IndexByte("}:-.[?(/%^,", v[n]) >= 0 || v[n] == ' ')
}

// isInterpolated reports whether v, what is between the brackets of an interpolation, is an
// expression: it begins with a name, a string or a bracket, and has letters.
func isInterpolated(v []byte) bool {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return true
	}
	if len(v) > 1 && char.IndexByte("=-.#/&^@$(*>%!:", v[0]) >= 0 {
		v = bytes.TrimLeft(v[1:], "-= $(.")
	}
	if len(v) == 0 {
		return false
	}
	if char.DigitsFrom(v, 0, 3) == len(v) {
		return true
	}
	if char.IsQuote(v[0]) {
		return bytes.IndexByte(v[1:], v[0]) > 0
	}
	n := identLen(v)
	if n == 0 || char.Class[v[0]]&char.Digit != 0 {
		return false
	}
	return n == len(v) || char.IndexByte(".[(:|? -,+%/^&=", v[n]) >= 0 && isBalanced(v[n:])
}

// isBalanced reports whether the brackets in v close each other as far as they are closed.
func isBalanced(v []byte) bool {
	var open [8]byte
	deep := 0
	for _, c := range v {
		switch c {
		case '(', '[', '{':
			if deep < len(open) {
				open[deep] = closingBracket(c)
			}
			deep++
		case ')', ']', '}':
			if deep--; deep < 0 || deep < len(open) && open[deep] != c {
				return false
			}
		}
	}
	return true
}

// isCamel reports whether v is a name of letters in several words: jarUrl.
func isCamel(v []byte) bool {
	humps := 0
	for i, c := range v {
		if char.Class[c]&char.Letter == 0 {
			return false
		}
		if char.Class[c]&char.Upper != 0 {
			if i == 0 || char.Class[v[i-1]]&char.Upper != 0 {
				return false
			}
			humps++
		}
	}
	return humps > 0 && len(v) > 4*humps && !IsIrregular(v)
}

// IsNameOfSecret reports whether v is a name made of letters with a word in it that
// announces a secret: api_key, user.password, X-Auth-Token.
func IsNameOfSecret(v []byte) bool {
	if len(v) > 64 {
		return false
	}
	telling := false
	for i := 0; ; {
		w, end := nextWord(v, i)
		if w == nil {
			return telling
		}
		i = end
		stem := bytes.TrimRight(w, "0123456789")
		if len(w)-len(stem) > 2 || hasDigit(stem) && len(stem) > 3 {
			return false
		}
		telling = telling || len(stem) > 1 && isSecretWord(stem)
	}
}

// isSecretWord reports whether w is or ends in a word for a secret.
func isSecretWord(w []byte) bool {
	if wordGate.May(w[0], len(w)) {
		for _, e := range wordsBy[char.ToLower(w[0])] {
			if e.kind.IsSecret() && char.EqualFold(w, e.text) {
				return true
			}
		}
	}
	return char.EqualFold(w, "key") || char.EqualFold(w, "keys") || char.EqualFold(w, "tokens") || kindOfEnding(w,
		nil).IsSecret()
}

// isOwnWord reports whether v is nothing but a word for a secret, as a label or the
// name of a field is: Password, client_secret.
func isOwnWord(v []byte) bool {
	w, end := nextWord(v, 0)
	if w == nil || len(v) > 32 || hasDigit(v) || !IsNameOfSecret(v) {
		return false
	}
	for end < len(v) {
		next, at := nextWord(v, end)
		if next == nil {
			return true
		}
		if k := kindOfWord(w, next, v[at:], false); !k.IsSecret() || k == Key {
			return false
		}
		w, end = next, at
	}
	return true
}

// proseWords are words of a sentence that no passphrase needs.
var proseWords = [...]string{
	"the", "your", "a", "an", "is", "are", "be", "must", "not", "for", "of", "to", "please", "invalid", "enter",
	"no", "and", "or", "with", "missing",
	"required", "in", "on", "at", "least", "this", "that", "it", "you", "we", "our", "their", "can", "cannot",
	"should", "will", "was", "has", "have",
	"been", "from", "by", "if", "when", "use", "used", "using", "confirm", "repeat", "forgot", "reset", "wrong",
	"incorrect", "failed", "optional",
	"value", "name", "user", "which", "than", "does", "did", "don", "see", "only", "as", "into", "any", "how",
	"what", "new",
}

var proseGate = proseGates()

func proseGates() (g char.WordGate) {
	for _, t := range proseWords {
		g.Add(t)
	}
	return g
}

// IsProse reports whether v is a sentence or a label of several words rather than a
// passphrase: a word for a secret is in it, or two words of a sentence.
func IsProse(v []byte) bool {
	if bytes.IndexByte(v, ' ') < 0 {
		return false
	}
	words, prose := 0, 0
	for i := 0; ; words++ {
		w, end := nextWord(v, i)
		if w == nil {
			break
		}
		i = end
		if len(w) > 1 && isSecretWord(w) {
			prose += 2
		}
		if isIn(w, &proseGate, proseWords[:]) {
			prose++
		}
	}
	return words > 1 && prose > 1
}

// isLocation reports whether v is a path or the address of a page rather than a value.
func isLocation(v []byte) bool {
	if n := bytes.Index(v, []byte("://")); n > 0 && n < 16 {
		return bytes.IndexByte(v, '@') < 0
	}
	switch {
	case v[0] == '/' || bytes.HasPrefix(v, []byte("./")) || bytes.HasPrefix(v, []byte("../")) ||
		bytes.HasPrefix(v, []byte("~/")):
	case len(v) > 3 && v[1] == ':' && v[2] == '\\':
		return true
	default:
		return bytes.Count(v, []byte("/")) > 1 && isPath(v, "/-_.") && !hasDigit(v) && bytes.Equal(v, bytes.ToLower(v))
	}
	if isRoute(v) {
		return true
	}
	have, signs := uint16(0), 0
	for _, c := range v {
		switch {
		case c == '/' || c == '.' || c == '-' || c == '_':
			signs++
		case char.Class[c]&char.Alnum == 0 && char.IndexByte("{}*:$~", c) < 0:
			return false
		}
		have |= char.Class[c]
	}
	return signs > 1 && have&(char.Upper|char.Digit) != char.Upper|char.Digit || signs*6 > len(v)
}

// isRoute reports whether v is a path of parts without signs, of which two are words or all are of small letters.
func isRoute(v []byte) bool {
	words, parts := 0, 0
	lower := true
	for _, part := range bytes.Split(v[1:], []byte("/")) {
		if !isPath(part, "_-.") && (len(part) == 0 || char.Class[part[0]]&char.Digit == 0) {
			return false
		}
		parts++
		letters := true
		for _, c := range part {
			letters = letters && (char.Class[c]&char.Letter != 0 || c == '_' || c == '-' || c == '.')
			lower = lower && char.Class[c]&(char.Upper|char.Digit) == 0
		}
		if letters && len(part) > 3 && !IsIrregular(part) {
			words++
		}
	}
	return v[0] == '/' && (lower || parts > 2 && words > 1)
}

// isPerson reports whether v may be the name of a person.
func isPerson(v []byte) bool {
	if len(v) > 80 {
		return false
	}
	blank, capital := false, false
	for i, c := range v {
		switch {
		case char.Class[c]&char.Letter != 0 || c >= 0x80:
			capital = capital || c < 'a' || c >= 0x80
		case c == ' ' || c == ',':
			blank = true
		case c == '.':
			if i+1 < len(v) && char.Class[v[i+1]]&char.Letter != 0 && i > 1 && char.Class[v[i-2]]&char.Letter != 0 {
				return false // a.b.c of a module
			}
		case c == '\'' || c == '-' || c == '(' || c == ')' || c == '"':
		case c == '+' && i > 0: // of a form
			blank = true
		default:
			return false
		}
	}
	return (capital || blank || bytes.IndexByte(v, '-') < 0) && !IsNameOfSecret(v) && OfName(v) == None && !IsProse(v)
}

// hasScheme reports whether v is credentials after the scheme of a header.
func hasScheme(v []byte) bool {
	for _, s := range [...]string{"bearer ", "basic ", "token "} {
		if len(v) > len(s) && char.EqualFold(v[:len(s)], s) {
			return true
		}
	}
	return false
}

// IsTelling reports whether v looks like a password or a token even where only a weak
// name says so: letters with digits or signs among them, or in both cases.
func IsTelling(v []byte) bool {
	if v = bytes.TrimRight(v, "!?*"); len(v) < 6 {
		return false
	}
	letters, digits, signs := 0, 0, 0
	for _, c := range v {
		switch class := char.Class[c]; {
		case class&char.Letter != 0:
			letters++
		case class&char.Digit != 0:
			digits++
		case char.IndexByte("!@#$%^&*?+=~", c) >= 0:
			signs++
		case class&char.Space != 0:
			return false
		}
	}
	return letters > 0 && (digits > 0 || signs > 0 && letters > 3 || IsIrregular(v))
}

// IsIrregular reports whether capitals and small letters follow each other as in no name:
// single ones, or several capitals before small letters.
func IsIrregular(v []byte) bool {
	odd, run, humps := 0, 0, 1
	for i := 1; i < len(v); i++ {
		was, is := char.Class[v[i-1]], char.Class[v[i]]
		switch {
		case was&char.Upper != 0 && is&char.Lower != 0:
			if run > 1 {
				odd++
			}
			run = 0
		case was&char.Lower != 0 && is&char.Upper != 0 && (i < 3 || char.Class[v[i-2]]&char.Upper != 0):
			odd++
			run, humps = 1, humps+1
		case was&char.Lower != 0 && is&char.Upper != 0:
			run, humps = 1, humps+1
		case is&char.Upper != 0:
			run++
		}
	}
	return odd > 1 || humps > 3 && len(v) < 3*humps+2
}

// IsRandom reports whether v is a long run without a word in it, as keys are, and no
// UUID, hash of a file or path.
func IsRandom(v []byte) bool {
	if len(v) < 16 || len(v) > maxJudged {
		return false
	}
	have, turns, hex := uint16(0), 0, true
	for i, c := range v {
		class := char.Class[c]
		if class&(char.Alnum) == 0 && char.IndexByte("_-+/=~.", c) < 0 {
			return false
		}
		have |= class
		hex = hex && class&char.Hex != 0
		if i > 0 && (class^char.Class[v[i-1]])&char.Digit != 0 && class&char.Class[v[i-1]]&char.Word == char.Word {
			turns++
		}
	}
	switch {
	case have&char.Digit == 0 || have&char.Letter == 0 || isUUID(v):
		return false
	case hex:
		return len(v) >= 32 || turns > 3
	case len(v) >= 22 && len(v)%4 == 0 && v[len(v)-1] == '=' && have&char.Letter == char.Letter:
		return turns > 0
	case have&char.Letter == char.Letter:
		return turns > 2
	}
	return turns > 4 && len(v) >= 20
}

// isComplex reports whether v has letters in both cases, digits, and three kinds of signs that no name or path has.
func isComplex(v []byte) bool {
	have, kinds := uint16(0), uint32(0)
	for _, c := range v {
		have |= char.Class[c]
		if n := char.IndexByte("!#%^*~@&+=?|<>;", c); n >= 0 {
			kinds |= 1 << n
		}
		if char.Class[c]&char.Space != 0 || char.IndexByte("(){}[],'\"`$", c) >= 0 {
			return false
		}
	}
	return len(v) >= 16 && have&char.Letter == char.Letter && have&char.Digit != 0 && bits.OnesCount32(kinds) > 1
}

func isUUID(v []byte) bool {
	return len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-'
}

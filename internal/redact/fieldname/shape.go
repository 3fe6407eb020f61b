package fieldname

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// techniques are what a sentence about secrets has digits in, by its letters before them.
var techniques = [...]string{
	"sha", "sha-", "md", "base", "utf", "utf-", "oauth", "oauth-", "http", "http/", "ipv", "x", "rfc", "aes",
	"aes-", "rs", "hs", "es", "ps", "pbkdf", "argon",
	"iso", "iso-", "tls", "tlsv", "ssl", "v", "win", "python", "java", "php", "node", "s", "ec", "k", "u",
	"blake", "ed", "curve", "p-", "secp", "cve-", "utf8mb",
}

// IsTechnique reports whether v is the name of a method or a version: sha256, OAuth2.
func IsTechnique(v []byte) bool {
	n := 0
	for n < len(v) && char.Class[v[n]]&char.Digit == 0 {
		n++
	}
	if n == len(v) || n > 8 {
		return false
	}
	rest := v[n:]
	d := char.DigitsFrom(rest, 0, len(rest))
	if d > 5 || d < len(rest) && rest[d] != '-' && rest[d] != '.' && len(rest)-d > 2 {
		return false
	}
	return n == 0 || isAnyOf(v[:n], techniques[:])
}

// IsStrong reports whether v has what rules for passwords want: a digit, letters in both
// cases, or a sign.
func IsStrong(v []byte) bool {
	var have uint16
	sign := false
	for _, c := range v {
		have |= char.Class[c]
		sign = sign || char.IndexByte("!@#$%^&*?+~", c) >= 0
	}
	return len(v) >= 8 && have&char.Digit != 0 && (have&char.Letter == char.Letter || sign && have&char.Letter != 0)
}

// IsPattern reports whether v is a regular expression.
func IsPattern(v []byte) bool {
	for _, t := range [...]string{"[a-z", "[A-Z", "[0-9", `\d`, `\w`, `\s`, ".*", ".+", "(?"} {
		if bytes.Contains(v, []byte(t)) {
			return true
		}
	}
	return v[0] == '^' && v[len(v)-1] == '$'
}

// IsCookie reports whether v is what a header for cookies has: a name, "=" and a value.
func IsCookie(v []byte) bool {
	eq := bytes.IndexByte(v, '=')
	if eq < 0 {
		return IsTelling(v) && bytes.IndexByte(v, '(') < 0 && bytes.IndexByte(v, '.') < 0
	}
	if eq == 0 || eq+1 == len(v) {
		return false
	}
	for _, c := range v[:eq] {
		if char.Class[c]&char.Ident == 0 && c != '$' {
			return false
		}
	}
	return char.Class[v[eq+1]]&char.Alnum != 0 || v[eq+1] == '%'
}

// isAnyOf reports whether list has w in any case.
func isAnyOf(w []byte, list []string) bool {
	for _, t := range list {
		if char.EqualFold(w, t) {
			return true
		}
	}
	return false
}

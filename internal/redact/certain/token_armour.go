package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// putty masks the lines of base64 after the "Private-Lines:" of a PuTTY key,
// whose ":" stands at i.
func (x *Scanner) putty(i int) int {
	v := x.End(i+1, 8, char.Blank|char.Digit)
	end := v
	for {
		line := end
		for line < len(x.S) && (x.S[line] == '\r' || x.S[line] == '\n') {
			line++
		}
		if line == end || x.Has(line, "Private-") {
			break
		}
		e := x.End(line, len(x.S), char.Std64)
		for e < len(x.S) && x.S[e] == '=' {
			e++
		}
		if e == line || e-v > span.MaxLen-maxTail && line > v+MaxBefore {
			break
		}
		end = e
	}
	for v < end && char.Class[x.S[v]]&char.Space != 0 {
		v++
	}
	if v < end && v >= x.low {
		x.mask(v, end, rule.PrivateKey)
	}
	return v
}

// cryptHash masks the password hash of which a digit is at i after a
// "$": $1$, $5$, $6$ and $2b$ of crypt(3), $argon2id$ and $y$ are found
// elsewhere. The salt goes with it.
func (x *Scanner) cryptHash(i int) {
	b := i - 1
	if c := x.S[i]; c == '2' && x.Is(i+1, char.Lower) && x.Has(i+2, "$") {
		// $2b$12$ and 53 characters.
		if x.Is(i+3, char.Digit) && x.Is(i+4, char.Digit) && x.Has(i+5, "$") && x.cryptEnd(i+6, 54) == i+59 {
			x.mask(b, i+59, rule.Hash)
		}
		return
	} else if !x.Has(i+1, "$") || c != '1' && c != '5' && c != '6' {
		return
	}
	v := i + 2
	if x.Has(v, "rounds=") {
		v = x.End(v+7, 10, char.Digit) + 1
	}
	salt := x.cryptEnd(v, 17)
	if salt == v || !x.Has(salt, "$") {
		return
	}
	end := x.cryptEnd(salt+1, 87)
	if n := end - salt - 1; n == 22 && x.S[i] == '1' || n == 43 && x.S[i] == '5' || n == 86 && x.S[i] == '6' {
		x.mask(b, end, rule.Hash)
	}
}

// yescrypt masks the hash whose parameters are at i, after "$y$".
func (x *Scanner) yescrypt(i int) {
	salt := x.End(i, 16, char.Alnum)
	if !x.Has(salt, "$") {
		return
	}
	sum := x.cryptEnd(salt+1, 64)
	if end := x.cryptEnd(sum+1, 64); x.Has(sum, "$") && end-sum-1 == 43 {
		x.mask(i-3, end, rule.Hash)
	}
}

// cryptEnd is end for crypt's alphabet: letters, digits, "." and "/".
func (x *Scanner) cryptEnd(i, limit int) int {
	for limit > 0 && i < len(x.S) && (char.Class[x.S[i]]&char.Alnum != 0 || x.S[i] == '.' || x.S[i] == '/') {
		i++
		limit--
	}
	return i
}

// phcNames are hashes in the PHC string form, which have a digit in the name.
var phcNames = [...]string{"$argon2id$", "$argon2i$", "$argon2d$", "$pbkdf2-sha", "pbkdf2_sha256$", "pbkdf2_sha512$", "pbkdf2_sha1$"}

// phcHash masks the hash whose name's digit stands at i: parameters, salt and
// sum after "$".
func (x *Scanner) phcHash(i int) {
	for _, name := range phcNames {
		digit := char.IndexByte(name, '2')
		if !x.Has(i-digit, name) {
			continue
		}
		v := i - digit + len(name)
		e, parts := v, 0
		for ; e < len(x.S) && e < v+512 && parts <= 4; e++ {
			if c := x.S[e]; c == '$' {
				parts++
			} else if char.Class[c]&(char.Std64|char.URL64) == 0 && char.IndexByte("=,.", c) < 0 {
				break
			}
		}
		for e > v && (x.S[e-1] == '.' || x.S[e-1] == ',') {
			e--
		}
		if parts >= 2 && e-v >= 24 {
			x.mask(i-digit, e, rule.Hash)
		}
		return
	}
}

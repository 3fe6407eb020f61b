package guess

import (
	"bytes"
	"encoding/base64"
	"math/bits"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// bigramSymbols is how many symbols the table of pairs knows: letters of both
// cases, one for all digits, and six signs; 0 stands for all else.
const bigramSymbols = 60

var bigramSymbol = symbolsOf()

func symbolsOf() (t [256]byte) {
	for c := range byte(26) {
		t['a'+c], t['A'+c] = 1+c, 27+c
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = 53
	}
	for k, c := range []byte("_-/.+=") {
		t[c] = byte(54 + k)
	}
	return t
}

// strangeSign is the cost, in sixteenths of a bit, of a sign that names and
// prose hold nowhere inside.
const strangeSign = 8 * 16

// evidence weighs, in bits, whether v was drawn at random rather than written:
// the logarithm of the ratio of both likelihoods. Written text is the model of
// bigrams; random text draws evenly from the classes of characters that v has.
func evidence(v []byte) int {
	written, last := 0, byte(0)
	var have uint16
	strange := false
	for _, c := range v {
		s := bigramSymbol[c]
		have |= char.Class[c]
		if s == 0 {
			strange = true
			written += strangeSign
		} else {
			written += int(bigrams[int(last)*bigramSymbols+int(s)])
		}
		last = s
	}
	random := alphabetBits(have, strange, hexOnly(v))
	return (written - random*len(v)) / 16
}

// alphabetBits is the logarithm of the size of the alphabet that the classes
// make, in sixteenths of a bit.
func alphabetBits(have uint16, strange, hex bool) int {
	n := 0
	if have&char.Digit != 0 {
		n += 10
	}
	if have&char.Lower != 0 {
		n += 26
	}
	if have&char.Upper != 0 {
		n += 26
	}
	if hex {
		n = 16
	}
	if have&char.Symbol != 0 {
		n += 2
	}
	if strange {
		n += 24
	}
	// Sixteen times the logarithm, from the bits of n to the 16th power in
	// four squarings.
	v, shift := uint64(n), 0
	for range 4 {
		v *= v
		shift *= 2
		if k := bits.Len64(v) - 24; k > 0 {
			v >>= k
			shift += k
		}
	}
	return bits.Len64(v) - 1 + shift
}

// hexOnly says whether v is hexadecimal, with dashes or without.
func hexOnly(v []byte) bool {
	for _, c := range v {
		if char.Class[c]&char.Hex == 0 && c != '-' {
			return false
		}
	}
	return true
}

// structured says whether v's own form tells what it is: a UUID, a number, a
// version, a date, a name made of words and numbers.
func structured(v []byte, joins uint) bool {
	if joins&joinDash != 0 && hasUUID(v) {
		return true
	}
	letters, digits, counted := 0, 0, 0
	var last byte
	for _, c := range v {
		switch b := char.Class[c]; {
		case b&char.Letter != 0:
			letters++
		case b&char.Digit != 0:
			digits++
		}
		if c == last || c == last+1 {
			counted++
		}
		last = c
	}
	if letters == 0 || digits > 0 && letters <= 3 && len(v) < 32 || counted*2 > len(v) {
		return true
	}
	if joins&joinDot != 0 && dottedName(v) {
		return true
	}
	return isTimestamp(v) || isULID(v) || isSum(v) || wordy(v)
}

// isULID says whether v is 26 characters of Crockford's base32 that begin with
// a time of this era: an identifier that opens nothing.
func isULID(v []byte) bool {
	if len(v) != 26 || v[0] > '7' {
		return false
	}
	for _, c := range v {
		if char.Class[c]&(char.Digit|char.Upper) == 0 || c == 'I' || c == 'L' || c == 'O' || c == 'U' {
			return false
		}
	}
	return true
}

// isSum says whether v names the hash that it is: "sha512-…", "sha256-…".
func isSum(v []byte) bool {
	for k := 3; k < len(v) && k < 8; k++ {
		if v[k] == '-' || v[k] == ':' {
			return sumName(v[:k])
		}
	}
	return false
}

func sumName(w []byte) bool {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "sha1", "sha224", "sha256", "sha384", "sha512", "md5", "blake2", "blake3":
		return true
	}
	return false
}

// encodesText says whether v is the base64 of printable text: what it holds is
// judged where it is decoded, and it is no random string.
func encodesText(v []byte) bool {
	var buf [72]byte
	head := v[:min(len(v), 96)]
	enc := base64.RawStdEncoding
	if bytes.IndexByte(head, '-') >= 0 || bytes.IndexByte(head, '_') >= 0 {
		enc = base64.RawURLEncoding
	}
	n, err := enc.Decode(buf[:], head[:len(head)&^3])
	if err != nil || n < 12 {
		return false
	}
	for _, c := range buf[:n] {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// hasUUID says whether v begins or ends with 8-4-4-4-12 hexadecimal digits.
func hasUUID(v []byte) bool {
	return len(v) >= 36 && (isUUID(v[:36]) || isUUID(v[len(v)-36:]))
}

func isUUID(v []byte) bool {
	for k, c := range v {
		if dash := k == 8 || k == 13 || k == 18 || k == 23; dash != (c == '-') || !dash && char.Class[c]&char.Hex == 0 {
			return false
		}
	}
	return true
}

// dottedName says whether v is a version, a host or a file: parts between dots
// that are numbers, words, or short.
func dottedName(v []byte) bool {
	part, long, n := 0, 0, 0
	for k := 0; k <= len(v); k++ {
		if k < len(v) && v[k] != '.' {
			part++
			continue
		}
		n++
		if part >= 12 && evidence(v[k-part:k]) >= bitsNear {
			long++
		}
		part = 0
	}
	// A file's name may hold a sum of its content.
	return long == 0 || n == 2 && long == 1
}

// isTimestamp says whether v is a date with a time, as in ISO 8601.
func isTimestamp(v []byte) bool {
	return len(v) >= 10 && (v[4] == '-' && char.DigitsFrom(v, 0, 5) == 4 && char.DigitsFrom(v, 5, 3) == 2 ||
		char.DigitsFrom(v, 0, 9) == 8 && v[8] == 'T' && char.DigitsFrom(v, 9, 3) >= 2)
}

// wordy says whether v is a name: its parts, between signs, humps and digits,
// are words, and the digits few.
func wordy(v []byte) bool {
	inWords, n := 0, 0
	for k := 0; k < len(v); {
		j := k
		if char.Class[v[j]]&char.Upper != 0 {
			j++
		}
		for j < len(v) && char.Class[v[j]]&char.Lower != 0 {
			j++
		}
		if j == k {
			j++
		}
		if w := v[k:j]; j-k >= 4 && evidence(w) < 3 {
			inWords += j - k
		}
		if char.Class[v[k]]&char.Alnum != 0 {
			n += j - k
		}
		k = j
	}
	return inWords*10 >= n*7
}

// looksLikePath says whether v is a path, a URL or a media type.
func looksLikePath(v []byte) bool {
	slashes, long := 0, 0
	part := 0
	for k := 0; k <= len(v); k++ {
		if k < len(v) && v[k] != '/' {
			part++
			continue
		}
		if part >= 16 && evidence(v[k-part:k]) >= bitsLone {
			long++
		}
		if k < len(v) {
			slashes++
		}
		part = 0
	}
	if slashes == 0 {
		return false
	}
	return v[0] == '.' || v[0] == '~' || hasScheme(v) || long == 0 && wordyPath(v)
}

func hasScheme(v []byte) bool {
	for k := 1; k+3 <= len(v) && k < 12; k++ {
		if v[k] == ':' {
			return v[k+1] == '/' && v[k+2] == '/'
		}
	}
	return false
}

// wordyPath says whether most of a path's letters stand in words.
func wordyPath(v []byte) bool { return evidence(v) < bitsLone }

// refersTo says whether v names a secret rather than being one: a variable, a
// call, a placeholder.
func refersTo(v []byte) bool {
	switch v[0] {
	case '$', '{', '<', '%', '(', '*', '&', '@':
		return true
	}
	for k, c := range v {
		switch c {
		case '(', '{', '[', '$':
			return c != '$' || k+1 < len(v) && (v[k+1] == '{' || v[k+1] == '(')
		case '*':
			return k+2 < len(v) && v[k+1] == '*' && v[k+2] == '*'
		}
	}
	return false
}

// knownID says whether v has the prefix of an identifier that opens nothing:
// of objects at model vendors and payment services, of cloud resources.
func knownID(v []byte) bool {
	k := 0
	for k < len(v) && k < 12 && char.Class[v[k]]&char.Lower != 0 {
		k++
	}
	if k == len(v) || v[k] != '_' && v[k] != '-' {
		return false
	}
	switch string(v[:k]) {
	case "msg", "req", "toolu", "call", "run", "thread", "asst", "file", "chatcmpl", "cmpl", "resp", "fc", "rs", "step", "batch", "ft",
		"cus", "pi", "ch", "py", "sub", "si", "in", "ii", "evt", "prod", "price", "plan", "acct", "txn", "po", "pm", "card", "ba", "tr", "re",
		"dp", "seti", "src", "tok", "item", "order", "user", "usr", "org", "proj", "team", "ws", "wkspc", "conv", "cursor", "trace", "span",
		"i", "vol", "snap", "ami", "sg", "vpc", "subnet", "rtb", "igw", "eni", "eipalloc", "nat", "lt", "acl", "arn", "srvtoolu", "container",
		"dpl", "prj", "env", "job", "task", "build", "session", "event", "doc", "node", "pod", "img", "obj", "id", "uid", "ref":
		return true
	}
	return false
}

// longestPart returns the length of v's longest part without "-" and "_".
func longestPart(v []byte) int {
	best, n := 0, 0
	for _, c := range v {
		if n++; char.Class[c]&char.Alnum == 0 {
			n = 0
		}
		best = max(best, n)
	}
	return best
}

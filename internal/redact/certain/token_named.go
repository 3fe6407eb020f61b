package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

const (
	headOfKey = 96 // how far before its first digit a key may begin, in bytes
	reachName = 56 // how far before a key the name of its provider or of a secret is
	maxGap    = 12 // signs and blanks between a name and a key

	minAnnounced = 20 // the shortest key that the name of a secret tells without ":" or "="
)

// maskKey masks the key around the digit at i if the name of a provider or of a secret is
// before it on the line. The signs ":" and "=" behind the name of a secret belong to
// assign.
func (x *Scanner) maskKey(i int) {
	if i < x.keyed {
		return
	}
	b, low := i, max(x.keyed, i-headOfKey)
	for b > low && inKey(x.S[b-1]) {
		b--
	}
	e := x.endOfKey(i)
	joined := b > 0 && b == low && inKey(x.S[b-1]) // the end of a longer value
	if x.keyed = e; joined || e-b > 2*token.MaxKey {
		return
	}
	x.Touch(e)
	b = x.BehindEscape(b, i)
	for e > i && (x.S[e-1] == '.' || x.S[e-1] == '-' || x.S[e-1] == '/') {
		e--
	}
	if e-b < token.MinKey || e-b > token.MaxKey || b < x.low || !token.IsKey(x.S[b:e]) {
		return
	}
	if x.Has(e, "=") {
		e = x.endOf(e, 2, '=')
	}
	if e < len(x.S) && char.Class[x.S[e]]&char.Space == 0 && !char.IsQuote(x.S[e]) &&
		char.IndexByte(`,.;:)]}<>&|\`, x.S[e]) < 0 {
		return
	}
	if r := x.namesKey(b, e); r != rule.None {
		x.mask(b, e, r)
	}
}

// endOfKey returns the end of the value that has the byte at i.
func (x *Scanner) endOfKey(i int) int {
	stop := min(len(x.S), i+MaxAhead/2)
	for i < stop && inKey(x.S[i]) {
		i++
	}
	return i
}

// inKey reports whether c may be in a key without a prefix.
func inKey(c byte) bool {
	return char.Class[c]&(char.URL64|char.Std64) != 0 || c == '.'
}

// namesKey returns the rule of the key [b, e) that the words before it name, or none.
func (x *Scanner) namesKey(b, e int) rule.Rule {
	low := max(0, b-reachName)
	end, sign, inList := b, byte(0), false
	for ; end > low && b-end < maxGap; end-- {
		c := x.S[end-1]
		if char.Class[c]&char.Blank == 0 && !char.IsQuote(c) && char.IndexByte(`\=:|>(-[{,`, c) < 0 {
			break
		}
		if char.IndexByte("=:|-", c) >= 0 {
			sign = c
		}
		inList = inList || char.IndexByte("([{,", c) >= 0
	}
	if end == b || end == low || char.Class[x.S[end-1]]&char.Word == 0 {
		return rule.None
	}
	if e-b >= minAnnounced && !inList && sign != '=' && sign != ':' && x.isAnnounced(low, end, b, e) {
		return rule.Assignment
	}
	if x.isOfProvider(low, end, token.IsUsualSize(e-b) && (sign != 0 || char.IsQuote(x.S[b-1]))) {
		return rule.Token
	}
	return rule.None
}

// isAnnounced reports whether the name that ends at end says that the value [b, e), a gap of
// blanks, a dash or a stroke behind it, is a secret: "token - 'x'", "api_key x", "apiKey | x".
func (x *Scanner) isAnnounced(low, end, b, e int) bool {
	start := x.back(end, low, char.Ident, "")
	if x.Has(start-1, "/") {
		return false // a file and its digest
	}
	switch k := fieldname.OfName(x.S[start:end]); {
	case k == fieldname.None && x.Is(start-1, char.Blank):
		if k = x.twoWords(start, end); !k.IsSecret() {
			return false
		}
	case !k.IsSecret():
		return false
	}
	return fieldname.IsRandom(x.S[b:e]) || b-end > 1
}

// isOfProvider reports whether the words before end, back to low or the line's begin, end in
// the name of a provider and words that may be between it and its key. A word for a key is
// among them, or apart says that the value is set apart from the name and of a usual size.
func (x *Scanner) isOfProvider(low, end int, apart bool) bool {
	var after, behind []byte // the words behind the one in hand, in their order
	isKey := false
	for w := end; ; {
		start := x.wordBefore(w, low)
		if start == w || start == low && low > 0 && char.Class[x.S[low-1]]&char.Word != 0 {
			return false
		}
		word := x.S[start:w]
		known := token.ProviderOf(word, after, behind) // all words that no other has taken
		if known != token.Unknown {
			return isKey || apart && known == token.Telling
		}
		may, says := token.Between(word)
		switch {
		case behind != nil:
			return false // a name has at most three words
		case !may || after != nil:
			after, behind = word, after
		}
		isKey = isKey || says
		for n := 0; start > low && n < 4 && char.Class[x.S[start-1]]&char.Word == 0 && x.S[start-1] != '\n'; n++ {
			start--
		}
		w = start
	}
}

// wordBefore returns where the word begins that ends at end: letters up to a capital, or
// digits behind small letters.
func (x *Scanner) wordBefore(end, low int) int {
	i := end
	for i > low && char.Class[x.S[i-1]]&char.Alnum != 0 {
		i--
		if i > low && char.Class[x.S[i]]&char.Upper != 0 && char.Class[x.S[i-1]]&char.Lower != 0 {
			break
		}
	}
	return i
}

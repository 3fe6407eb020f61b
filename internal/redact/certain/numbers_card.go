package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/checksum"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// cardForms are the ways cards are printed. The printed ones need no word, all
// others do.
var cardForms = [...]struct {
	sizes   [5]int
	printed bool
}{
	{[5]int{4, 4, 4, 4, 3}, false}, {[5]int{4, 4, 4, 4, 2}, false}, {[5]int{4, 4, 4, 4, 1}, false},
	{[5]int{4, 4, 4, 4}, true}, {[5]int{4, 6, 5}, true}, {[5]int{4, 6, 4}, true},
	{[5]int{4, 4, 4, 1}, false}, {[5]int{4, 4, 4}, false},
	{[5]int{4, 4, 5}, false}, {[5]int{8, 8}, false}, {[5]int{6, 13}, false},
}

// card returns the end of the card number that begins at g[0], or 0: 12 to 19
// digits of a known issuer and its length that pass the Luhn check (ISO/IEC
// 7812-1). One in thirty numbers of sixteen digits does by chance: they must be
// grouped as on a card, or a word for a card must be near.
func (x *Scanner) card(g []cursor.Group) int {
	at, n := g[0].At, g[0].N
	if n >= 12 {
		end := at + n
		if d := x.S[at:end]; checksum.IsCard(d) && x.isApart(at, end) && x.nearCard(at, end) ||
			checksum.IsUnissuedCard(d) && x.isApart(at, end) && x.isCalledCard(at) {
			return end
		}
		return 0
	}
	if len(g) < 2 {
		return 0
	}
	switch second := g[1].N; {
	case n == 4 && (second == 4 || second == 6), n == 6 && second == 13, n == 8 && second == 8:
	default:
		return 0
	}
	if c := x.S[at]; c == '1' || c == '7' {
		return 0 // no issuer's
	}
	for k := range cardForms {
		f := &cardForms[k]
		end, last := x.readGroups(g, &f.sizes)
		if end == 0 || !x.isApart(at, end) {
			continue
		}
		if f.printed && x.isPrinted(g[:last+1]) || x.nearCard(at, end) {
			return end
		}
	}
	return 0
}

// isFraction reports whether the digits at i follow a point.
func (x *Scanner) isFraction(i int) bool { return x.Is(i-2, char.Digit) && x.S[i-1] == '.' }

// readGroups returns where the groups of those sizes end, and which is the last of them.
func (x *Scanner) readGroups(g []cursor.Group, want *[5]int) (end, last int) {
	var d [24]byte
	n := 0
	for k, size := range want {
		if size == 0 {
			break
		}
		if k >= len(g) || g[k].N != size || k > 0 && !joinsCard(g[k-1].Sep) {
			return 0, 0
		}
		end, last = g[k].At+size, k
		n += copy(d[n:], x.S[g[k].At:end])
	}
	if !checksum.IsCard(d[:n]) {
		return 0, 0
	}
	return end, last
}

func joinsCard(sep byte) bool { return sep == ' ' || sep == cursor.Wide || sep == '-' || sep == '.' }

// isPrinted reports whether one sign joins the groups, and joins no other digits to
// them: a table of numbers is not a card.
func (x *Scanner) isPrinted(g []cursor.Group) bool {
	sep := g[0].Sep
	if sep != ' ' && sep != '-' {
		return false
	}
	for k := range len(g) - 1 {
		if g[k].Sep != sep {
			return false
		}
	}
	at, end := g[0].At, g[len(g)-1].At+g[len(g)-1].N
	x.Touch(end + 1)
	// An expiry date may follow: 12/29.
	behind := end+1 < len(x.S) && x.S[end] == sep && x.Is(end+1, char.Digit) && char.DigitsFrom(x.S, end+1, 5) > 3
	switch {
	case at < 2 || x.S[at-1] != sep || !x.Is(at-2, char.Digit):
		return !behind || x.isCardAt(end+1)
	default:
		return x.low == at-1 // a card before it
	}
}

// isCardAt reports whether a card in four groups of four follows, as in a list of them.
func (x *Scanner) isCardAt(i int) bool {
	var buf [cursor.MaxGroups]cursor.Group
	end, _ := x.readGroups(x.Groups(i, x.DigitRun(i), cursor.MaxDigits, buf[:0]), &[5]int{4, 4, 4, 4})
	return end > 0
}

// isApart reports whether the digits [i, end) are no part of a longer word, of an
// identifier whose parts dashes join, or of a fraction.
func (x *Scanner) isApart(i, end int) bool {
	if !x.Begins(i) || x.Is(end, char.Alnum) || x.isFraction(i) || i > 0 && x.S[i-1] == '_' || x.Has(end, "_") {
		return false
	}
	if i > 1 && x.S[i-1] == '-' {
		b := i - 1
		var have uint16
		for ; b > 0 && i-b < 32 && char.Class[x.S[b-1]]&char.Alnum != 0; b-- {
			have |= char.Class[x.S[b-1]]
		}
		if have&char.Digit != 0 {
			return false
		}
	}
	return !x.Has(end, "-") || !x.Is(end+1, char.Alnum)
}

// cardWords say that a number of a card follows, cardMarks that one precedes.
var cardWords = char.NewWordList(
	"card", "cards", "cardnumber", "cardno", "cardnum", "creditcard", "debitcard", "ccnumber", "ccnum", "ccn",
	"cc", "pan", "credit", "debit",
	"visa", "mastercard", "mc", "amex", "express", "maestro", "discover", "diners", "jcb", "unionpay", "rupay",
	"mir", "troy", "bankcard",
	"karte", "kreditkarte", "kartennummer", "kreditkartennummer", "carte", "tarjeta", "carta", "cartao", "kaart",
	"karta", "kort", "kortnummer",
	"paid", "pay", "payment", "charge", "charged", "billed",
)

var cardMarks = char.NewWordList("exp", "expiry", "expires", "expiration", "cvv", "cvc", "csc", "cid", "valid",
	"visa", "mastercard", "amex")

// plainCardWords say that even a number of no known issuer is a card's.
var plainCardWords = char.NewWordList(
	"card", "cardnumber", "cardno", "cardnum", "creditcard", "debitcard", "ccnumber", "ccnum", "ccn", "bankcard",
	"karte", "kreditkarte", "kartennummer", "kreditkartennummer", "tarjeta", "cartao", "kaart", "kort", "kortnummer",
)

// isCalledCard reports whether a word of plainCardWords is before i in the same clause.
func (x *Scanner) isCalledCard(i int) bool {
	return !x.wordlessBefore(i) && plainCardWords.IsIn(x.S[x.clauseStart(i):i])
}

// reachMark is the distance behind a card's number in which a word for it is sought.
const reachMark = 24

// nearCard reports whether a word near the number [i, end) says that it is a card's.
func (x *Scanner) nearCard(i, end int) bool {
	if !x.wordlessBefore(i) {
		from := max(0, i-reachNear)
		for from > 0 && from < i && char.Class[x.S[from-1]]&char.Letter != 0 {
			from++
		}
		if cardWords.IsIn(x.S[min(from, x.clauseStart(i)):i]) {
			return true
		}
	}
	x.Touch(end + reachMark)
	stop := x.clauseEnd(end)
	after := x.S[end:max(stop, min(len(x.S), end+reachMark))]
	k := 0
	for k < len(after) && char.Class[after[k]]&char.Letter == 0 {
		k++
	}
	if k == len(after) {
		return false
	}
	return cardMarks.IsIn(after[:min(reachMark, len(after))]) || cardWords.IsIn(x.S[end:stop])
}

// The reach of a word in the same clause as a number, and what ends a clause.
const (
	reachClause    = 120
	reachClauseEnd = 48
)

// closes tells the bytes that end a clause.
var closes = closingBytes()

func closingBytes() (t [256]bool) {
	for _, c := range []byte("\n\"{}[]<>") {
		t[c] = true
	}
	return t
}

// clauseStart returns where the clause begins in which i is, or the word behind
// reachClause bytes before i.
func (x *Scanner) clauseStart(i int) int {
	from := max(0, i-reachClause)
	for b := i; b > from; b-- {
		if closes[x.S[b-1]] {
			return b
		}
	}
	for from > 0 && from < i && char.Class[x.S[from-1]]&char.Letter != 0 {
		from++
	}
	return from
}

// clauseEnd is clauseStart for the end of a clause.
func (x *Scanner) clauseEnd(i int) int {
	stop := min(len(x.S), i+reachClauseEnd)
	for e := i; e < stop; e++ {
		if closes[x.S[e]] {
			return e
		}
	}
	x.Touch(i + reachClauseEnd)
	return stop
}

// NamesCard reports whether a member's name says that its value is a card's number.
func NamesCard(name []byte) bool { return cardWords.IsIn(name[max(0, len(name)-64):]) }

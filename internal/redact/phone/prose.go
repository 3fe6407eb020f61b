package phone

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// others name numbers of another kind.
var others = char.NewWordList(
	"isbn", "issn", "ean", "upc", "gtin", "sku", "part", "parts", "item", "items", "model", "serial",
	"version", "build", "release", "order", "orders", "ticket", "tickets", "invoice", "invoices", "ref",
	"reference", "case", "article", "catalog", "catalogue", "product", "products", "id", "ids", "page",
	"pages", "pp", "line", "lines", "row", "rows", "chapter", "section", "vol", "volume", "issue",
	"patent", "account", "accounts", "iban", "bic", "swift", "lot", "nhs", "aadhaar", "passport", "card",
	"vin", "npi", "sin", "ssn", "tax", "medicare", "batch", "barcode", "tracking", "parcel", "shipment",
	"job", "commit", "port", "ports", "error", "errors", "code", "codes", "coordinates", "lat", "lon",
	"latitude", "longitude", "matrix", "value", "values", "sequence", "range", "ratio", "score", "scores",
	"result", "results", "size", "sizes", "price", "prices", "date", "dates", "time", "times", "timestamp",
	"vector", "bytes", "offset", "offsets", "hash", "key", "keys", "doi", "rfc", "iso", "din", "claim",
	"policy", "contract", "license", "licence", "permit", "docket", "flight", "train", "draw", "lottery",
	"numbers", "measurements", "readings", "samples", "weights", "dimensions", "drawing", "asset", "tag",
	"artikel", "artikelnummer", "bestellung", "bestellnummer", "rechnung", "rechnungsnummer",
	"kundennummer", "vertragsnummer", "seriennummer", "teilenummer", "commande", "facture", "dossier",
	"pedido", "factura", "ordine", "fattura", "codice",
)

// reachOthers is the number of words before a number that are read for another kind's name.
const reachOthers = 5

// links are words between the name of a kind and "number", or before it.
var links = char.NewWordList(
	"the", "this", "that", "a", "at", "on", "to", "of", "for", "from", "is", "was", "with", "s", "same",
	"following", "correct", "right", "wrong", "local", "and", "or", "by", "via",
)

// IsOtherKind reports whether the words before i name another kind of number: order 12, the
// registration number is 12.
func IsOtherKind(s []byte, i int) bool {
	var buf [reachOthers][]byte
	words := wordsBefore(s, i, buf[:0])
	for k, w := range words {
		if others.Has(w) {
			return true
		}
		if numbers.Has(w) && k+1 < len(words) {
			w = words[k+1]
			return !owners.Has(w) && !kinds.Has(w) && !links.Has(w)
		}
	}
	return false
}

// side is what is next to a number.
type side uint8

const (
	sideCode side = iota // a sign of code, another number, a table's
	sideEdge             // a line's begin or end
	sideWord
)

// codeSigns are bytes that a line of prose has not next to a number.
var codeSigns = signsOfCode()

func signsOfCode() (t [256]bool) {
	for _, c := range []byte("={}[]|\t\\_;`$") {
		t[c] = true
	}
	return t
}

const (
	reachBefore = 40 // bytes of a line that must not look like code, before a number
	reachAfter  = 32 // and after it
)

// IsInProse reports whether the number [start, end) is between words of a sentence, or alone
// on a line below one, and not in code, a table, a list of numbers or a log.
func IsInProse(s []byte, start, end int) bool {
	left := sideBefore(s, start)
	if left == sideCode {
		return false
	}
	right := sideAfter(s, end, left == sideWord)
	switch {
	case right == sideCode:
		return false
	case left == sideEdge && right == sideEdge:
		return isBelowWords(s, start) && !isAboveNumber(s, end)
	}
	return true
}

// sideBefore returns what is before i.
func sideBefore(s []byte, i int) side {
	j := i
	for n := 0; n < 3 && j > 0 && (s[j-1] == '(' || s[j-1] == '*'); n++ {
		j--
	}
	if j > 2 && s[j-3] == 0xe2 && s[j-2] == 0x80 && s[j-1] >= 0x98 && s[j-1] <= 0x9e { // quotes of typography
		j -= 3
	}
	if isLineStart(s, j) {
		return sideEdge
	}
	if s[j-1] != ' ' && !isWideBlank(s, j) {
		return sideCode
	}
	for n := 0; n < 3 && j > 0 && s[j-1] == ' '; n++ {
		j--
	}
	if isLineStart(s, j) || s[j-1] == '-' && isLineStart(s, j-1) || s[j-1] == '*' && isLineStart(s, j-1) {
		return sideEdge
	}
	colon := s[j-1] == ':'
	for n := 0; n < 2 && j > 0 && char.IndexByte(",:.?!)-\"'", s[j-1]) >= 0; n++ {
		j--
	}
	for n := 0; n < 2 && j > 0 && s[j-1] == ' '; n++ {
		j--
	}
	b := j
	var have uint16
	for b > 0 && j-b < 24 && (char.Letterish(s[b-1]) || s[b-1] == '\'' || s[b-1] == '-') {
		b--
		have |= char.Class[s[b]]
	}
	if have&char.Upper != 0 && have&char.Lower == 0 && j-b > 1 || b == j ||
		b+1 == j && char.IndexByte("aeioyAIO", s[b]) < 0 || b > 0 && char.IndexByte(" \n(\"'*,.",
		s[b-1]) < 0 && !isLineStart(s, b) || isCode(s, b) {
		return sideCode
	}
	if colon && isLineStart(s, skipBlanks(s, b)) {
		return sideCode // a name and its value
	}
	return sideWord
}

// isLineStart reports whether a line or a string begins at i: also after an escaped "\n".
func isLineStart(s []byte, i int) bool {
	return i == 0 || s[i-1] == '\n' || s[i-1] == '\r' || i > 1 && s[i-2] == '\\' && (s[i-1] == 'n' || s[i-1] == 'r')
}

func isWideBlank(s []byte, i int) bool { return i > 1 && s[i-2] == 0xc2 && s[i-1] == 0xa0 }

// skipBlanks returns where the blanks before i begin, at most eight.
func skipBlanks(s []byte, i int) int {
	for n := 0; n < 8 && i > 0 && s[i-1] == ' '; n++ {
		i--
	}
	return i
}

// isCode reports whether the line before i has signs of code.
func isCode(s []byte, i int) bool {
	for j := i - 1; j >= max(0, i-reachBefore) && s[j] != '\n' && s[j] != '"'; j-- {
		if codeSigns[s[j]] && !(s[j] == ';' && s[j+1] == ' ') {
			return !(s[j] == '\\' && s[j+1] == 'n')
		}
	}
	return false
}

// sideAfter returns what follows i. quoted allows a quote to end a string there.
func sideAfter(s []byte, i int, quoted bool) side {
	j := i
	for n := 0; n < 2 && j < len(s) && (s[j] == ')' || s[j] == '*'); n++ {
		j++
	}
	if j+2 < len(s) && s[j] == 0xe2 && s[j+1] == 0x80 && s[j+2] >= 0x98 && s[j+2] <= 0x9e {
		j += 3
	}
	stop := false
	for n := 0; n < 3 && j < len(s) && char.IndexByte(".,;:?!)", s[j]) >= 0; n++ {
		j++
		stop = true
	}
	if isLineEnd(s, j) || quoted && (s[j] == '"' || s[j] == '\'') {
		return sideEdge
	}
	if s[j] != ' ' && !(s[j] == 0xc2 && j+1 < len(s) && s[j+1] == 0xa0) {
		return sideCode
	}
	for n := 0; n < 3 && j < len(s) && (s[j] == ' ' || s[j] == 0xc2 || s[j] == 0xa0); n++ {
		j++
	}
	for n := 0; n < 2 && j < len(s) && (s[j] == '(' || s[j] == '-' || s[j] == ' '); n++ {
		j++
	}
	if isLineEnd(s, j) {
		return sideEdge
	}
	e := j
	for e < len(s) && e-j < 24 && (char.Letterish(s[e]) || s[e] == '\'' || s[e] == '-') {
		e++
	}
	switch {
	case e == j && stop && char.Class[s[j]]&char.Digit != 0:
		return sideEdge // the next sentence or list item begins with a number
	case e == j || e < len(s) && char.IndexByte(" \n\r,.;:?!)\"'/", s[e]) < 0 || isCodeAfter(s, e):
		return sideCode
	}
	return sideWord
}

func isLineEnd(s []byte, i int) bool {
	return i >= len(s) || s[i] == '\n' || s[i] == '\r' ||
		s[i] == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 'r')
}

// isCodeAfter reports whether the line after i has signs of code.
func isCodeAfter(s []byte, i int) bool {
	for j := i; j < min(len(s), i+reachAfter) && s[j] != '\n' && s[j] != '"'; j++ {
		if codeSigns[s[j]] && s[j] != ';' {
			return !(s[j] == '\\' && j+1 < len(s) && s[j+1] == 'n')
		}
	}
	return false
}

// isBelowWords reports whether the line before the one of i has a word, and only what lines
// of a letter or an address have.
func isBelowWords(s []byte, i int) bool {
	for n := 0; i > 0 && s[i-1] != '\n'; n++ {
		if i--; n > 16 {
			return false
		}
	}
	end := i - 1
	b := end
	words := 0
	for b > 0 && s[b-1] != '\n' {
		if b--; end-b > 96 || codeSigns[s[b]] {
			return false
		}
		if char.Letterish(s[b]) && b+1 < end && char.Letterish(s[b+1]) && (b == 0 || !char.Letterish(s[b-1])) {
			words++
		}
	}
	return end > 0 && words > 0
}

// isAboveNumber reports whether the line after the one of i begins with a digit: a column.
func isAboveNumber(s []byte, i int) bool {
	for n := 0; i < len(s) && s[i] != '\n'; n++ {
		if i++; n > 4 {
			return true
		}
	}
	return i+1 < len(s) && char.Class[s[i+1]]&char.Digit != 0
}

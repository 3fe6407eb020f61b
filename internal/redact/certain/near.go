package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/phone"
)

// context is a word that says what a number is.
type context uint32

const (
	wordSSN   context = 1 << iota
	wordPhone         // says it plainly
	wordCall          // says it where the number looks like one
	wordRouting
	wordNHS
	wordAadhaar
	wordTax
	wordVehicle
	wordWallet
	wordBirth
	wordBorn
	wordMedicare
	wordInsurance
	wordPassport
	wordPesel
	wordBSN
	wordCPF
	wordPAN
	wordNIR
)

var contexts = [...]struct {
	says context
	text []string
}{
	{wordSSN, []string{"ssn", "ssns", "social", "taxpayer", "itin", "tin"}},
	{wordPhone, phone.Words[:]},
	{wordCall, phone.CallWords[:]},
	{wordRouting, []string{"aba", "routing", "rtn"}},
	{wordNHS, []string{"nhs"}},
	{wordAadhaar, []string{"aadhaar", "aadhar", "uidai"}},
	{wordTax, []string{"steuer", "steuerid", "idnr", "tin", "steueridentifikationsnummer", "steuernummer", "tfn", "tax"}},
	{wordVehicle, []string{"vin", "chassis", "vehicle", "fahrgestellnummer"}},
	{wordWallet, []string{"wallet", "ethereum", "eth", "address", "ether", "erc"}},
	{wordBirth, []string{"dob", "birth", "birthday", "birthdate", "geburtsdatum", "nacimiento", "naissance"}},
	{wordBorn, []string{"born", "geboren"}},
	{wordMedicare, []string{"medicare", "mbi"}},
	{wordInsurance, []string{"insurance", "nino", "sin", "nas"}},
	{wordPassport, []string{"passport", "reisepass", "pasaporte"}},
	{wordPesel, []string{"pesel"}},
	{wordBSN, []string{"bsn", "burgerservicenummer"}},
	{wordCPF, []string{"cpf"}},
	{wordPAN, []string{"pan"}},
	{wordNIR, []string{"nir", "sociale", "insee"}},
}

// contextWord is one of contexts' words.
type contextWord struct {
	text string
	says context
}

// contextGate and contextsBy hold the words by their first byte.
var contextGate, contextsBy = contextTables()

func contextTables() (g char.WordGate, by [256][]contextWord) {
	for _, c := range contexts {
		for _, t := range c.text {
			g.Add(t)
			by[t[0]] = append(by[t[0]], contextWord{t, c.says})
		}
	}
	return g, by
}

// reachNear is how far before a number a word for it is looked for; a word as
// common as those for calling is closer.
const (
	reachNear = 40
	reachCall = 32
	reachBorn = 8
)

// near says whether a word of the wanted kind stands within reachNear bytes
// before i.
func (x *Scanner) near(i int, want context) bool {
	from := max(0, i-reachNear)
	for j := x.behindLetter(i, from); j > from; {
		end := j
		for j > from && char.Class[x.S[j-1]]&char.Letter != 0 {
			j--
		}
		if w := x.S[j:end]; len(w) >= 3 && contextGate.May(w[0], len(w)) {
			says := contextOf(w) & want
			if says&wordCall != 0 && (i-end > reachCall || char.IsQuote(x.S[end])) {
				says &^= wordCall // far away, or the name of a member
			}
			if says&wordBorn != 0 && i-end > reachBorn {
				says &^= wordBorn
			}
			if says != 0 {
				return true
			}
		}
		for j > from && char.Class[x.S[j-1]]&char.Letter == 0 {
			j--
		}
	}
	return false
}

// wordlessBefore says whether no letter stands within reachNear bytes before
// i, so that near finds nothing.
func (x *Scanner) wordlessBefore(i int) bool {
	from := max(0, i-reachNear)
	return x.behindLetter(i, from) == from
}

// behindLetter returns the end of the last letter in [from, i), or from, and
// remembers that there is none behind it.
func (x *Scanner) behindLetter(i, from int) int {
	j := i
	for j > from && char.Class[x.S[j-1]]&char.Letter == 0 {
		if j--; j < x.wordlessEnd && j > x.wordless {
			j = max(x.wordless, from)
		}
	}
	x.wordless, x.wordlessEnd = j, i
	return j
}

func contextOf(w []byte) (says context) {
	for _, e := range contextsBy[char.ToLower(w[0])] {
		if char.EqualFold(w, e.text) {
			says |= e.says
		}
	}
	return says
}

// twoWords reads "api key: x", where the name is the second of two words.
func (x *Scanner) twoWords(start, end int) fieldname.Kind {
	if !x.Is(start-1, char.Blank) || end-start > 12 || !fieldname.MayEndPair(x.S[start:end]) {
		return fieldname.None
	}
	b := start - 1
	for b > 0 && start-b < 24 && char.Class[x.S[b-1]]&char.Ident != 0 {
		b--
	}
	if k := fieldname.OfPair(x.S[b:start-1], x.S[start:end]); k != fieldname.None {
		return k
	}
	if b < start-1 && char.EqualFold(x.S[start:end], "key") {
		return fieldname.OfName(x.S[b:end]) // of a service: its value is random
	}
	return fieldname.None
}

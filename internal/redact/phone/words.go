package phone

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// Words name a phone number that is near them.
var Words = [...]string{
	"phone", "phones", "telephone", "tel", "mobile", "cell", "cellphone", "fax", "whatsapp", "landline", "telefon",
	"handy", "mobil", "tlf", "msisdn", "phonenumber", "smartphone", "festnetz", "voicemail", "telefax",
}

// CallWords do so if the number has a form of phones.
var CallWords = [...]string{
	"call", "dial", "dialed", "dialing", "ring", "text", "sms", "contact", "reach",
	"reached", "phoned", "texted", "telegram", "viber", "hotline",
	"anrufen", "anruf", "rufen", "erreichen", "erreichbar", "appelez", "appeler", "appelle", "joindre", "joignable",
	"contacter", "llame", "llamar", "contactar", "contacto", "chiama", "chiami", "chiamare", "contattare",
	"ligue", "ligar", "contato", "bellen", "bereikbaar", "zadzwon", "ringa", "ringe", "kontakt", "kontakta",
}

// nameParts name a number that follows, also as a part of a longer word.
var nameParts = char.NewWordList(
	"telefono", "telefone", "telefoon", "telefonnummer", "telefonnr", "rufnummer", "handynummer",
	"mobilnummer", "mobiltelefon", "durchwahl", "portable", "gsm", "natel", "movil", "celular",
	"cellulare", "puhelin", "telefonszam", "hotline", "helpline", "phoneno", "telno", "cellno", "mobileno",
	"voicemail", "pager", "komorka", "numertelefonu", "telefonnumero", "matkapuhelin", "mobiltlf",
	"telefonnumret",
)

// clauseWords name a number in the same clause.
var clauseWords = char.NewWordList(
	"phone", "phones", "telephone", "cellphone", "mobile", "landline", "fax", "whatsapp", "sms",
	"voicemail", "answering", "telefon",
)

// afterWords name a number that precedes them; labels only in brackets or after a dash.
var (
	afterWords = char.NewWordList(
		"phone", "telephone", "cellphone", "mobile", "cell", "landline", "fax", "tel", "whatsapp", "voicemail",
		"telefon", "mobil", "handy", "portable", "movil", "cellulare", "celular", "gsm",
	)
	afterLabels = char.NewWordList(
		"home", "work", "office", "direct", "desk", "main", "private", "business", "buero", "privat", "bureau",
		"oficina", "ufficio",
	)
)

// marks are such words with letters beyond ASCII.
var marks = [...]string{
	"tél", "Tél", "тел", "Тел", "電話", "电话", "전화", "τηλ", "Τηλ", "móvil", "Móvil", "携帯", "手机", "手機", "휴대폰",
	"연락처", "טלפון", "نقال", "هاتف", "फ़ोन", "फोन", "โทร", "điện thoại", "Điện thoại", "zadzwoń", "Zadzwoń", "słuchawk",
}

// owners and their adjectives make a number a person's: my new number.
var (
	owners = char.NewWordList(
		"my", "your", "his", "her", "our", "their", "meine", "ihre", "mein", "mon", "votre", "mi", "su", "mio",
		"suo", "meu", "seu", "mijn", "uw",
	)
	kinds = char.NewWordList(
		"new", "old", "work", "home", "office", "private", "personal", "direct", "current", "contact", "other",
		"daytime", "evening", "emergency", "neue", "nouveau", "nuevo", "nuovo", "novo", "nieuwe",
	)
	numbers = char.NewWordList("number", "numbers", "nummer", "numero", "no", "nr")
)

// Distances at which words are looked for.
const (
	reachWord      = 40  // before a number
	reachClause    = 120 // before a number, in the same clause
	reachAfterWord = 20  // after a number
	reachIs        = 48  // after "... is"
)

// closes tells the bytes that end a clause.
var closes = closingBytes()

func closingBytes() (t [256]bool) {
	for _, c := range []byte("\n\"{}[]<>,;=:|") {
		t[c] = true
	}
	return t
}

// HasWordBefore reports whether a part of a name or a word in the same clause before i
// announces a phone's number. It does not look for Words.
func HasWordBefore(s []byte, i int) bool {
	return nameParts.IsIn(s[max(0, i-reachWord):i]) || clauseWords.IsIn(s[clauseStart(s, i):i])
}

// HasMarkBefore reports whether a word beyond ASCII before i announces a phone's number.
func HasMarkBefore(s []byte, i int) bool {
	before := s[max(0, i-reachWord):i]
	for k, c := range before {
		if c < 0xc2 {
			continue
		}
		for _, word := range marks {
			// The first letter may be of ASCII.
			for from := k; from >= max(0, k-6) && (from == k || before[from] < 0x80); from-- {
				if bytes.HasPrefix(before[from:], []byte(word)) {
					return true
				}
			}
		}
	}
	return false
}

// clauseStart returns where the clause begins in which i is, or the first word after
// reachClause bytes before i.
func clauseStart(s []byte, i int) int {
	from := max(0, i-reachClause)
	for b := i; b > from; b-- {
		if closes[s[b-1]] {
			return b
		}
	}
	for from > 0 && from < i && char.Class[s[from-1]]&char.Letter != 0 {
		from++
	}
	return from
}

// IsOwned reports whether the words before i are those of a person's number: my new number
// is now.
func IsOwned(s []byte, i int) bool {
	var buf [6][]byte
	words := wordsBefore(s, i, buf[:0])
	for k, w := range words {
		if !numbers.Has(w) {
			continue
		}
		for _, owner := range words[k+1:] {
			if owners.Has(owner) {
				return true
			}
			if !kinds.Has(owner) {
				return false
			}
		}
	}
	return false
}

// wordsBefore appends words before i in reachWord bytes of its line to list while it has
// room, the last first.
func wordsBefore(s []byte, i int, list [][]byte) [][]byte {
	from := max(0, i-reachWord)
	for len(list) < cap(list) && i > from {
		end := i
		for i > from && char.Letterish(s[i-1]) {
			i--
		}
		if i < end && (i > from || i == 0) {
			list = append(list, s[i:end])
		}
		for i > from && !char.Letterish(s[i-1]) {
			if s[i-1] == '\n' {
				return list
			}
			i--
		}
	}
	return list
}

// HasWordAfter reports whether a word after the groups, which end at i, names them: (mobile),
// - fax, is my number. Thousands are counted, not called.
func HasWordAfter(s []byte, g []cursor.Group, i int) bool {
	j, label := i, false
	for ; j < i+3 && j < len(s) && char.Class[s[j]]&char.Letter == 0; j++ {
		switch s[j] {
		case '(', '-':
			label = true
		case ' ', ',':
		default:
			return false
		}
	}
	e := j
	for e < len(s) && e < i+reachAfterWord && char.Class[s[e]]&char.Letter != 0 {
		e++
	}
	if j == i || e == j || e < len(s) && char.Class[s[e]]&char.Alnum != 0 {
		return false
	}
	switch word := s[j:e]; {
	case char.EqualFold(word, "is"):
		after := s[e:min(len(s), i+reachIs)]
		for k, c := range after {
			if closes[c] {
				after = after[:k]
				break
			}
		}
		return clauseWords.IsIn(after) || numbers.IsIn(after) && owners.IsIn(after)
	case len(g) < 2 || IsThousands(g) && !label:
		return false
	default:
		return afterWords.Has(word) || label && afterLabels.Has(word)
	}
}

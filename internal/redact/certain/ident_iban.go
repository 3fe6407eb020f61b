package certain

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// iban returns the end of the international bank account number at i, or 0
// (ISO 13616): a known country's length and 1 modulo 97. A part of a UUID is
// not one: dashes follow every four places.
func (x *Scanner) iban(i int) int {
	want := ibanLen(char.ToLower(x.S[i]), char.ToLower(x.S[i+1]))
	if want == 0 {
		return 0
	}
	var b [34]byte
	n, j, dashed := 0, i, false
	for n < want && j < len(x.S) {
		switch {
		case x.Is(j, char.Alnum):
			b[n] = char.ToLower(x.S[j])
			n++
		case x.S[j] != ' ' && x.S[j] != '-' || n%4 != 0:
			return 0
		case x.S[j] == '-' && !dashed && n > 4:
			return 0 // the first dash of a UUID
		default:
			dashed = dashed || x.S[j] == '-'
		}
		j++
	}
	x.Touch(j)
	if dashed && i > 0 && x.S[i-1] == '-' {
		return 0
	}
	if n < want || x.Is(j, char.Alnum) || dashed && x.Has(j, "-") || mod97(b[:want]) != 1 {
		return 0
	}
	return j
}

func mod97(b []byte) int {
	r := 0
	for k := range b {
		c := b[(k+4)%len(b)]
		if c >= 'a' {
			r = (r*100 + int(c-'a') + 10) % 97
		} else {
			r = (r*10 + int(c-'0')) % 97
		}
	}
	return r
}

// ibanLen is the registry's length of a country's numbers, 0 for none.
func ibanLen(a, b byte) int {
	switch string([]byte{a, b}) {
	case "no":
		return 15
	case "be":
		return 16
	case "dk", "fo", "fi", "gl", "nl", "sd", "fk":
		return 18
	case "mk", "si":
		return 19
	case "at", "ba", "ee", "kz", "xk", "lt", "lu", "mn":
		return 20
	case "cr", "hr", "lv", "li", "ch":
		return 21
	case "bh", "bg", "ge", "de", "ie", "me", "rs", "gb", "va":
		return 22
	case "tl", "gi", "iq", "il", "ae", "om", "so":
		return 23
	case "ad", "cz", "md", "pk", "ro", "sa", "sk", "es", "se", "tn", "vg":
		return 24
	case "pt", "st", "ly":
		return 25
	case "is", "tr":
		return 26
	case "bi", "dj", "fr", "gr", "it", "mr", "mc", "sm":
		return 27
	case "al", "az", "by", "cy", "do", "eg", "sv", "gt", "hu", "lb", "pl", "hn", "ni":
		return 28
	case "br", "ps", "qa", "ua":
		return 29
	case "jo", "kw", "mu", "ye":
		return 30
	case "mt", "sc":
		return 31
	case "lc":
		return 32
	case "ru":
		return 33
	}
	return 0
}

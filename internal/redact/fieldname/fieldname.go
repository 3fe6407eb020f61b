// Package fieldname tells from the name of a member, a variable or a header field
// whether its value is secret or personal.
package fieldname

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/placeholder"
)

// Kind is what a name says of its value.
type Kind uint8

const (
	None     Kind = iota
	Password      // numbers are secrets too
	Secret
	Line   // a header: the value is the rest of the line
	Cookie // a header that is also a word of prose
	Weak   // "pass": a secret in JSON and before "="
	PII    // a name, a birthday, an address
	Number // a phone or social security number: in text its digits tell
)

// IsSecret reports whether the value is a secret rather than personal.
func (k Kind) IsSecret() bool { return k >= Password && k <= Weak }

// place says where in a name a word has its meaning: "token" is a secret at
// the end, not in token_count.
type place uint8

const (
	anywhere place = iota
	atEnd
	alone
)

// word is a part of a name.
type word struct {
	text  string
	place place
	kind  Kind
}

// words are what names are made of, in lower case. Of two entries for one
// word the first that fits counts.
var words = [...]word{
	{"password", anywhere, Password}, {"passwd", anywhere, Password}, {"passphrase", anywhere, Password},
	{"passcode", anywhere, Password}, {"passwort", anywhere, Password}, {"kennwort", anywhere, Password},
	{"contraseña", anywhere, Password}, {"contrasena", anywhere, Password}, {"motdepasse", anywhere, Password},
	{"wachtwoord", anywhere, Password}, {"senha", anywhere, Password}, {"пароль", anywhere, Password}, {"密码", anywhere, Password},
	{"pwd", anywhere, Password}, {"cvv", anywhere, Password}, {"cvc", anywhere, Password}, {"cvv2", anywhere, Password},
	{"secret", anywhere, Secret}, {"secrets", anywhere, Secret}, {"apikey", anywhere, Secret}, {"apikeys", anywhere, Secret},
	{"credential", anywhere, Secret}, {"credentials", anywhere, Secret}, {"privatekey", anywhere, Secret},
	{"accesskey", anywhere, Secret}, {"secretkey", anywhere, Secret}, {"accountkey", anywhere, Secret},
	{"authtoken", anywhere, Secret}, {"accesstoken", anywhere, Secret}, {"clientsecret", anywhere, Secret},
	{"sharedaccesskey", anywhere, Secret}, {"jwt", anywhere, Secret}, {"otp", anywhere, Secret}, {"totp", anywhere, Secret},
	{"mnemonic", atEnd, Line}, {"seedphrase", atEnd, Line},
	{"authorization", atEnd, Line}, {"cookie", atEnd, Cookie}, {"cookies", atEnd, Cookie},
	{"token", atEnd, Secret}, {"bearer", atEnd, Secret}, {"connectionstring", atEnd, Secret},
	{"auth", alone, Secret}, {"pass", alone, Weak}, {"pass", atEnd, Password},
	{"ssn", anywhere, Number}, {"phone", atEnd, Number}, {"telephone", atEnd, Number}, {"mobile", atEnd, Number},
	{"fax", atEnd, Number}, {"iban", atEnd, Number}, {"msisdn", atEnd, Number}, {"itin", atEnd, Number},
	{"phonenumber", anywhere, Number}, {"mobilenumber", anywhere, Number}, {"socialsecuritynumber", anywhere, Number},
	{"dob", anywhere, PII}, {"surname", anywhere, PII}, {"firstname", anywhere, PII}, {"lastname", anywhere, PII},
	{"fullname", anywhere, PII}, {"birthdate", anywhere, PII}, {"birthday", anywhere, PII}, {"dateofbirth", anywhere, PII},
	{"passport", anywhere, PII}, {"geburtsdatum", anywhere, PII},
}

// about are last words of names whose value tells of a secret and is none:
// password_min_length, secretName, token_url.
var about = [...]string{
	"algorithm", "length", "name", "names", "policy", "count", "days", "rotation", "required", "enabled", "disabled", "expiry", "expires", "ttl",
	"timeout", "version", "type", "format", "regex", "pattern", "strength", "attempts", "path", "dir", "url", "uri", "endpoint", "provider",
	"limit", "budget", "usage", "size", "min", "max",
}

// pairs are two words that follow each other.
var pairs = [...]struct {
	second string
	first  []string
	kind   Kind
}{
	{"key", keyWords[:], Secret},
	{"keys", keyWords[:], Secret},
	{"code", []string{"security", "recovery", "verification", "backup", "authorization"}, Secret},
	{"string", []string{"connection"}, Secret},
	{"phrase", []string{"seed", "recovery", "mnemonic", "backup"}, Line},
	{"words", []string{"seed", "recovery"}, Line},
	{"name", []string{"first", "last", "full", "given", "family", "middle", "maiden"}, PII},
	{"date", []string{"birth"}, PII},
	{"birth", []string{"birth", "of"}, PII},
	{"address", []string{"home", "street", "postal"}, PII},
	{"license", []string{"driver", "drivers"}, PII},
	{"licence", []string{"driver", "drivers"}, PII},
	{"id", []string{"national", "tax"}, PII},
	{"number", []string{"phone", "mobile", "telephone", "fax", "social"}, Number},
	{"security", []string{"social"}, Number},
}

var keyWords = [...]string{
	"api", "access", "secret", "private", "signing", "encryption", "master", "account", "shared", "ssh", "license", "auth", "session",
	"subscription", "hmac", "consumer", "deploy", "client",
}

// wordsBy holds words by their first byte.
var wordGate, pairGate, aboutGate, wordsBy = nameTables()

func nameTables() (w, p, a char.WordGate, by [256][]word) {
	for _, t := range about {
		a.Add(t)
	}
	for _, e := range words {
		w.Add(e.text)
		by[e.text[0]] = append(by[e.text[0]], e)
	}
	for _, e := range pairs {
		p.Add(e.second)
	}
	return w, p, a, by
}

// Of judges a name such as X-Api-Key, dbPassword or client_secret.
func Of(name []byte) Kind { return OfName(placeholder.Without(name)) }

// OfName is Of for a name without a mask in it. It looks at the last
// 64 bytes, word by word; a word ends at a sign or where a capital follows a
// small letter.
func OfName(name []byte) Kind {
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	best, count := None, 0
	var prev []byte
	for i := 0; i < len(name); {
		if char.Class[name[i]]&char.Word == 0 {
			i++
			continue
		}
		start := i
		before := char.Class[name[i]]
		for i++; i < len(name); i++ {
			bits := char.Class[name[i]]
			if bits&char.Word == 0 || bits&char.Upper != 0 && before&char.Lower != 0 {
				break
			}
			before = bits
		}
		w := name[start:i]
		if k := kindOfWord(prev, w, count == 0, i == len(name)); k != None {
			best = k
		} else if best != None && i == len(name) && isAbout(w) {
			return None
		}
		prev = w
		count++
	}
	return best
}

func isAbout(w []byte) bool {
	if !aboutGate.May(w[0], len(w)) {
		return false
	}
	for _, t := range about {
		if char.EqualFold(w, t) {
			return true
		}
	}
	return false
}

// kindOfWord judges one word behind another, in any case. first and last say
// where it stands in the name.
func kindOfWord(prev, w []byte, first, last bool) Kind {
	if len(w) < 2 {
		return None
	}
	if prev != nil && MayEndPair(w) {
		if k := OfPair(prev, w); k != None {
			return k
		}
	}
	if wordGate.May(w[0], len(w)) {
		list := wordsBy[char.ToLower(w[0])]
		for k := range list {
			e := &list[k]
			if char.EqualFold(w, e.text) && (e.place == anywhere || last && (e.place == atEnd || first)) {
				return e.kind
			}
		}
	}
	return kindOfEnding(w, last)
}

// kindOfEnding reads words that run together: dbpassword, mytoken.
func kindOfEnding(w []byte, last bool) Kind {
	if len(w) < 6 {
		return None
	}
	switch w[len(w)-1] | 0x20 {
	case 'd':
		if char.HasFoldSuffix(w, "passwd") || char.HasFoldSuffix(w, "password") {
			return Password
		}
	case 't':
		if char.HasFoldSuffix(w, "secret") {
			return Secret
		}
	case 'n':
		if last && char.HasFoldSuffix(w, "token") {
			return Secret
		}
	case 'y':
		if char.HasFoldSuffix(w, "apikey") || char.HasFoldSuffix(w, "accesskey") ||
			char.HasFoldSuffix(w, "secretkey") || char.HasFoldSuffix(w, "privatekey") {
			return Secret
		}
	case 's':
		if char.HasFoldSuffix(w, "passwords") {
			return Password
		}
	}
	return None
}

// MayEndPair reports whether w may be the second of two words that OfPair knows.
func MayEndPair(w []byte) bool { return pairGate.May(w[0], len(w)) }

// OfPair judges two words that follow each other.
func OfPair(a, b []byte) Kind {
	for k := range pairs {
		e := &pairs[k]
		if !char.EqualFold(b, e.second) {
			continue
		}
		for _, first := range e.first {
			if char.EqualFold(a, first) {
				return e.kind
			}
		}
	}
	return None
}

// OfFlag says what a string of a list tells of the next one.
func OfFlag(s []byte) Kind {
	if len(s) < 4 || len(s) > 64 || s[0] != '-' || bytes.IndexByte(s, '=') >= 0 || bytes.IndexByte(s, ' ') >= 0 {
		return None
	}
	if k := Of(bytes.TrimLeft(s, "-")); k.IsSecret() {
		return k
	}
	return None
}

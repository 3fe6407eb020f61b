package redact

import "bytes"

// kind is what a name says of its value.
type kind uint8

const (
	kindNone     kind = iota
	kindPassword      // numbers are secrets too
	kindSecret
	kindLine   // a header: the value is the rest of the line
	kindCookie // a header that is also a word of prose
	kindWeak   // "pass": a secret in JSON and before "="
	kindPII    // a name, a birthday, an address
	kindNumber // a phone or social security number: in text its digits tell
)

func (k kind) secret() bool { return k >= kindPassword && k <= kindWeak }

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
	kind  kind
}

// words are what names are made of, in lower case. Of two entries for one
// word the first that fits counts.
var words = [...]word{
	{"password", anywhere, kindPassword}, {"passwd", anywhere, kindPassword}, {"passphrase", anywhere, kindPassword},
	{"passcode", anywhere, kindPassword}, {"passwort", anywhere, kindPassword}, {"kennwort", anywhere, kindPassword},
	{"contraseña", anywhere, kindPassword}, {"contrasena", anywhere, kindPassword}, {"motdepasse", anywhere, kindPassword},
	{"wachtwoord", anywhere, kindPassword}, {"senha", anywhere, kindPassword}, {"пароль", anywhere, kindPassword}, {"密码", anywhere, kindPassword},
	{"pwd", anywhere, kindPassword}, {"cvv", anywhere, kindPassword}, {"cvc", anywhere, kindPassword}, {"cvv2", anywhere, kindPassword},
	{"secret", anywhere, kindSecret}, {"secrets", anywhere, kindSecret}, {"apikey", anywhere, kindSecret}, {"apikeys", anywhere, kindSecret},
	{"credential", anywhere, kindSecret}, {"credentials", anywhere, kindSecret}, {"privatekey", anywhere, kindSecret},
	{"accesskey", anywhere, kindSecret}, {"secretkey", anywhere, kindSecret}, {"accountkey", anywhere, kindSecret},
	{"authtoken", anywhere, kindSecret}, {"accesstoken", anywhere, kindSecret}, {"clientsecret", anywhere, kindSecret},
	{"sharedaccesskey", anywhere, kindSecret}, {"jwt", anywhere, kindSecret}, {"otp", anywhere, kindSecret}, {"totp", anywhere, kindSecret},
	{"mnemonic", atEnd, kindLine}, {"seedphrase", atEnd, kindLine},
	{"authorization", atEnd, kindLine}, {"cookie", atEnd, kindCookie}, {"cookies", atEnd, kindCookie},
	{"token", atEnd, kindSecret}, {"bearer", atEnd, kindSecret}, {"connectionstring", atEnd, kindSecret},
	{"auth", alone, kindSecret}, {"pass", alone, kindWeak}, {"pass", atEnd, kindPassword},
	{"ssn", anywhere, kindNumber}, {"phone", atEnd, kindNumber}, {"telephone", atEnd, kindNumber}, {"mobile", atEnd, kindNumber},
	{"fax", atEnd, kindNumber}, {"iban", atEnd, kindNumber}, {"msisdn", atEnd, kindNumber}, {"itin", atEnd, kindNumber},
	{"phonenumber", anywhere, kindNumber}, {"mobilenumber", anywhere, kindNumber}, {"socialsecuritynumber", anywhere, kindNumber},
	{"dob", anywhere, kindPII}, {"surname", anywhere, kindPII}, {"firstname", anywhere, kindPII}, {"lastname", anywhere, kindPII},
	{"fullname", anywhere, kindPII}, {"birthdate", anywhere, kindPII}, {"birthday", anywhere, kindPII}, {"dateofbirth", anywhere, kindPII},
	{"passport", anywhere, kindPII}, {"geburtsdatum", anywhere, kindPII},
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
	kind   kind
}{
	{"key", keyWords[:], kindSecret},
	{"keys", keyWords[:], kindSecret},
	{"code", []string{"security", "recovery", "verification", "backup", "authorization"}, kindSecret},
	{"string", []string{"connection"}, kindSecret},
	{"phrase", []string{"seed", "recovery", "mnemonic", "backup"}, kindLine},
	{"words", []string{"seed", "recovery"}, kindLine},
	{"name", []string{"first", "last", "full", "given", "family", "middle", "maiden"}, kindPII},
	{"date", []string{"birth"}, kindPII},
	{"birth", []string{"birth", "of"}, kindPII},
	{"address", []string{"home", "street", "postal"}, kindPII},
	{"license", []string{"driver", "drivers"}, kindPII},
	{"licence", []string{"driver", "drivers"}, kindPII},
	{"id", []string{"national", "tax"}, kindPII},
	{"number", []string{"phone", "mobile", "telephone", "fax", "social"}, kindNumber},
	{"security", []string{"social"}, kindNumber},
}

var keyWords = [...]string{
	"api", "access", "secret", "private", "signing", "encryption", "master", "account", "shared", "ssh", "license", "auth", "session",
	"subscription", "hmac", "consumer", "deploy", "client",
}

// wordsBy holds words by their first byte.
var wordGate, pairGate, aboutGate, wordsBy = nameTables()

func nameTables() (w, p, a gate, by [256][]word) {
	for _, t := range about {
		a.add(t)
	}
	for _, e := range words {
		w.add(e.text)
		by[e.text[0]] = append(by[e.text[0]], e)
	}
	for _, e := range pairs {
		p.add(e.second)
	}
	return w, p, a, by
}

// kindOf judges a name such as X-Api-Key, dbPassword or client_secret.
func kindOf(name []byte) kind { return kindOfName(withoutMasks(name)) }

// kindOfName is kindOf for a name without a mask in it. It looks at the last
// 64 bytes, word by word; a word ends at a sign or where a capital follows a
// small letter.
func kindOfName(name []byte) kind {
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	best, count := kindNone, 0
	var prev []byte
	for i := 0; i < len(name); {
		if class[name[i]]&isWord == 0 {
			i++
			continue
		}
		start := i
		before := class[name[i]]
		for i++; i < len(name); i++ {
			bits := class[name[i]]
			if bits&isWord == 0 || bits&isUpper != 0 && before&isLower != 0 {
				break
			}
			before = bits
		}
		w := name[start:i]
		if k := kindOfWord(prev, w, count == 0, i == len(name)); k != kindNone {
			best = k
		} else if best != kindNone && i == len(name) && isAbout(w) {
			return kindNone
		}
		prev = w
		count++
	}
	return best
}

func isAbout(w []byte) bool {
	if !aboutGate.may(w[0], len(w)) {
		return false
	}
	for _, t := range about {
		if isFold(w, t) {
			return true
		}
	}
	return false
}

// kindOfWord judges one word behind another, in any case. first and last say
// where it stands in the name.
func kindOfWord(prev, w []byte, first, last bool) kind {
	if len(w) < 2 {
		return kindNone
	}
	if prev != nil && mayEndPair(w) {
		if k := kindOfPair(prev, w); k != kindNone {
			return k
		}
	}
	if wordGate.may(w[0], len(w)) {
		list := wordsBy[lower(w[0])]
		for k := range list {
			e := &list[k]
			if isFold(w, e.text) && (e.place == anywhere || last && (e.place == atEnd || first)) {
				return e.kind
			}
		}
	}
	return kindOfEnding(w, last)
}

// kindOfEnding reads words that run together: dbpassword, mytoken.
func kindOfEnding(w []byte, last bool) kind {
	if len(w) < 6 {
		return kindNone
	}
	switch w[len(w)-1] | 0x20 {
	case 'd':
		if endsFold(w, "passwd") || endsFold(w, "password") {
			return kindPassword
		}
	case 't':
		if endsFold(w, "secret") {
			return kindSecret
		}
	case 'n':
		if last && endsFold(w, "token") {
			return kindSecret
		}
	case 'y':
		if endsFold(w, "apikey") || endsFold(w, "accesskey") || endsFold(w, "secretkey") || endsFold(w, "privatekey") {
			return kindSecret
		}
	case 's':
		if endsFold(w, "passwords") {
			return kindPassword
		}
	}
	return kindNone
}

// mayEndPair reports whether w may be the second of two words that kindOfPair knows.
func mayEndPair(w []byte) bool { return pairGate.may(w[0], len(w)) }

// kindOfPair judges two words that follow each other.
func kindOfPair(a, b []byte) kind {
	for k := range pairs {
		e := &pairs[k]
		if !isFold(b, e.second) {
			continue
		}
		for _, first := range e.first {
			if isFold(a, first) {
				return e.kind
			}
		}
	}
	return kindNone
}

// flagKind says what a string of a list tells of the next one.
func flagKind(s []byte) kind {
	if len(s) < 4 || len(s) > 64 || s[0] != '-' || bytes.IndexByte(s, '=') >= 0 || bytes.IndexByte(s, ' ') >= 0 {
		return kindNone
	}
	if k := kindOf(bytes.TrimLeft(s, "-")); k.secret() {
		return k
	}
	return kindNone
}

package redact

import "bytes"

// kind is what a name says of its value.
type kind uint8

const (
	kindNone     kind = iota
	kindPassword      // numbers are secrets too
	kindSecret
	kindLine   // a header: the value is the rest of the line
	kindWeak   // "pass": a secret in JSON and before "="
	kindPII    // a name, a birthday, an address
	kindNumber // a phone or social security number: in text its digits tell
)

func (k kind) secret() bool { return k >= kindPassword && k <= kindWeak }

// kindOf judges a name such as X-Api-Key, dbPassword or client_secret. It
// looks at the last 64 bytes of it, word by word; a word ends at a sign or
// where a capital follows a small letter.
func kindOf(name []byte) kind {
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	var buf [64]byte
	var prev, word []byte
	best := kindNone
	words := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && class[name[i]]&isWord != 0 && !hump(name, i) {
			word = append(wordIn(buf[:], word, i), lower(name[i]))
			continue
		}
		if len(word) > 0 {
			words++
			if k := kindOfWord(word, words == 1, i >= len(name)); k != kindNone {
				best = k
			} else if k := kindOfPair(prev, word); k != kindNone {
				best = k
			}
			prev, word = word, nil
		}
		if i < len(name) && class[name[i]]&isWord != 0 {
			word = append(wordIn(buf[:], nil, i), lower(name[i]))
		}
	}
	return best
}

// wordIn starts a new word at i of buf where there is none.
func wordIn(buf, word []byte, i int) []byte {
	if word == nil {
		return buf[i:i:len(buf)]
	}
	return word
}

func hump(name []byte, i int) bool {
	return i > 0 && class[name[i]]&isUpper != 0 && class[name[i-1]]&isLower != 0
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// kindOfWord judges one lower-case word. first and last say where it stands
// in the name: "token" is a secret at the end, not in token_count.
func kindOfWord(w []byte, first, last bool) kind {
	switch string(w) {
	case "password", "passwd", "passphrase", "passcode", "passwort", "pwd", "cvv", "cvc", "cvv2":
		return kindPassword
	case "secret", "secrets", "apikey", "apikeys", "credential", "credentials", "privatekey", "accesskey",
		"secretkey", "accountkey", "authtoken", "accesstoken", "clientsecret", "sharedaccesskey", "jwt", "otp", "totp":
		return kindSecret
	case "authorization", "cookie", "cookies":
		if last {
			return kindLine
		}
		return kindNone
	case "token", "bearer", "connectionstring":
		if last {
			return kindSecret
		}
		return kindNone
	case "auth":
		if first && last {
			return kindSecret
		}
	case "pass":
		if last {
			if first {
				return kindWeak
			}
			return kindPassword
		}
	case "ssn", "phone", "telephone", "mobile", "fax", "iban", "msisdn", "itin":
		if last || string(w) == "ssn" {
			return kindNumber
		}
	case "dob", "surname", "firstname", "lastname", "fullname", "birthdate", "birthday", "dateofbirth", "passport":
		return kindPII
	case "phonenumber", "mobilenumber", "socialsecuritynumber":
		return kindNumber
	}
	return kindOfEnding(w, last)
}

// kindOfEnding reads words that run together: dbpassword, mytoken.
func kindOfEnding(w []byte, last bool) kind {
	if len(w) < 6 {
		return kindNone
	}
	switch w[len(w)-1] {
	case 'd':
		if bytes.HasSuffix(w, []byte("passwd")) || bytes.HasSuffix(w, []byte("password")) {
			return kindPassword
		}
	case 't':
		if bytes.HasSuffix(w, []byte("secret")) {
			return kindSecret
		}
	case 'n':
		if last && bytes.HasSuffix(w, []byte("token")) {
			return kindSecret
		}
	case 'y':
		if bytes.HasSuffix(w, []byte("apikey")) || bytes.HasSuffix(w, []byte("accesskey")) ||
			bytes.HasSuffix(w, []byte("secretkey")) || bytes.HasSuffix(w, []byte("privatekey")) {
			return kindSecret
		}
	case 's':
		if bytes.HasSuffix(w, []byte("passwords")) {
			return kindPassword
		}
	}
	return kindNone
}

// kindOfPair judges two words that follow each other, in any case.
func kindOfPair(a, b []byte) kind {
	if len(a) == 0 || len(a) > 16 || len(b) > 16 {
		return kindNone
	}
	var buf [33]byte
	n := 0
	for _, c := range a {
		buf[n] = lower(c)
		n++
	}
	buf[n] = ' '
	n++
	for _, c := range b {
		buf[n] = lower(c)
		n++
	}
	switch string(buf[:n]) {
	case "api key", "api keys", "access key", "secret key", "private key", "signing key", "encryption key", "master key",
		"account key", "shared key", "ssh key", "license key", "auth key", "session key", "connection string",
		"security code", "recovery code", "verification code", "backup code", "session cookie":
		return kindSecret
	case "first name", "last name", "full name", "given name", "family name", "middle name", "maiden name", "birth date",
		"of birth", "home address", "street address", "postal address", "passport number", "driver license", "drivers license",
		"national id", "tax id":
		return kindPII
	case "social security", "phone number", "mobile number", "telephone number", "fax number", "cell phone", "social number":
		return kindNumber
	}
	return kindNone
}

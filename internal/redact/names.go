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
	name = withoutMasks(name)
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	var buf [64]byte
	best := kindNone
	start, words := -1, 0
	var prev []byte
	var before uint16
	for i, c := range name {
		bits := class[c]
		if start >= 0 && (bits&isWord == 0 || bits&isUpper != 0 && before&isLower != 0) {
			words++
			if k := kindOfWord(prev, buf[start:i], words == 1, false); k != kindNone {
				best = k
			}
			prev, start = buf[start:i], -1
		}
		if bits&isWord != 0 && start < 0 {
			start = i
		}
		buf[i] = c | byte(bits&isUpper)<<4 // isUpper is 2, the case bit 0x20
		before = bits
	}
	if start >= 0 {
		if k := kindOfWord(prev, buf[start:len(name)], words == 0, true); k != kindNone {
			best = k
		}
	}
	return best
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// kindOfWord judges one lower-case word behind another. first and last say
// where it stands in the name: "token" is a secret at the end, not in
// token_count.
func kindOfWord(prev, w []byte, first, last bool) kind {
	if len(w) < 2 {
		return kindNone
	}
	if prev != nil {
		if k := kindOfPair(prev, w); k != kindNone {
			return k
		}
	}
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

// kindOfPair judges two lower-case words that follow each other.
func kindOfPair(a, b []byte) kind {
	switch string(b) {
	case "key", "keys":
		switch string(a) {
		case "api", "access", "secret", "private", "signing", "encryption", "master", "account", "shared", "ssh", "license",
			"auth", "session":
			return kindSecret
		}
	case "code":
		switch string(a) {
		case "security", "recovery", "verification", "backup", "authorization":
			return kindSecret
		}
	case "string":
		if string(a) == "connection" {
			return kindSecret
		}
	case "name":
		switch string(a) {
		case "first", "last", "full", "given", "family", "middle", "maiden":
			return kindPII
		}
	case "date", "birth":
		if string(a) == "birth" || string(a) == "of" && string(b) == "birth" {
			return kindPII
		}
	case "address":
		switch string(a) {
		case "home", "street", "postal":
			return kindPII
		}
	case "license", "licence":
		if string(a) == "driver" || string(a) == "drivers" {
			return kindPII
		}
	case "id":
		if string(a) == "national" || string(a) == "tax" {
			return kindPII
		}
	case "number":
		switch string(a) {
		case "phone", "mobile", "telephone", "fax", "social":
			return kindNumber
		}
	case "security":
		if string(a) == "social" {
			return kindNumber
		}
	}
	return kindNone
}

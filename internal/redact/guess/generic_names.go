package guess

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// hint is what a word says of the value that it stands before.
type hint uint8

const (
	hintNone   hint = iota
	hintSecret      // a credential
	hintNot         // a sum, an identifier, a version: never one
	hintPair        // "client": a credential where "id" follows
	hintBoth        // "session": a credential alone, and where "id" follows
)

// hintOfName judges a name such as x-hub-signature or clientId, word by word: a
// word that says "not" wins where it stands last, and "public" always.
func hintOfName(name []byte) hint {
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	best, last, before := hintNone, hintNone, hintNone
	for i := 0; i < len(name); {
		if char.Class[name[i]]&char.Word == 0 {
			i++
			continue
		}
		j := humpEnd(name, i)
		before, last = last, hintOf(name[i:j])
		switch {
		case last == hintNot && before >= hintPair && j-i == 2:
			last, best = hintSecret, hintSecret
		case last == hintSecret || last == hintBoth:
			best = hintSecret
		case last == hintNot && isPublic(name[i:j]):
			return hintNot
		}
		i = j
	}
	if last == hintNot {
		return hintNot
	}
	return best
}

// humpEnd returns where the word at i ends: at a sign, or before a capital
// that begins the next (dbKey, APIKey).
func humpEnd(name []byte, i int) int {
	j := i + 1
	for j < len(name) && char.Class[name[j]]&char.Word != 0 {
		if char.Class[name[j]]&char.Upper != 0 {
			if char.Class[name[j-1]]&char.Upper == 0 || j+1 < len(name) && char.Class[name[j+1]]&char.Lower != 0 {
				break
			}
		}
		j++
	}
	return j
}

func isPublic(w []byte) bool {
	var buf [24]byte
	l := smallCased(&buf, w)
	return string(l) == "public" || string(l) == "pub" || string(l) == "publishable"
}

// hintOf judges one word.
func hintOf(w []byte) hint {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "key", "keys", "auth", "sig", "signature", "hmac", "mac", "cred", "creds", "credential", "credentials", "secret", "secrets",
		"token", "tokens", "tok", "pass", "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "pw", "pin",
		"sid", "cookie", "csrf", "xsrf", "salt", "pepper", "seed", "mnemonic", "otp", "license", "licence", "dsn",
		"bearer", "jwt", "pat", "sas", "apikey", "appkey", "authkey", "secretkey", "signing", "authentication", "authorization",
		"encryption", "webhook", "passwort", "kennwort", "schlüssel", "geheimnis", "clé", "jeton", "motdepasse", "clave", "contraseña",
		"sessionid", "phpsessid", "jsessionid", "clientid", "clientsecret", "accesskey", "privatekey", "authtoken", "sessiontoken", "appsecret":
		return hintSecret
	case "session", "sess":
		return hintBoth
	case "client", "app", "application", "consumer", "tenant", "integration":
		return hintPair
	case "id", "ids", "uuid", "guid", "hash", "hashes", "sha", "sha1", "sha256", "sha512", "md5", "digest", "checksum", "checksums", "sum", "crc",
		"etag", "integrity", "commit", "commits", "rev", "revision", "ref", "version", "build", "path", "file", "filename", "dir", "href", "src",
		"name", "type", "alg", "algorithm", "class", "style", "color", "colour", "image", "img", "icon", "fingerprint", "thumbprint",
		"serial", "trace", "traceparent", "span", "public", "pub", "publishable", "kid", "slug", "size", "length", "len", "count", "method", "mode",
		"provider", "host", "port", "format", "tree", "parent", "blob", "object", "branch", "tag", "txid", "tx", "block", "address", "request",
		"cid", "nonce", "boundary", "base64", "data", "uri", "url", "sri", "layer", "container", "pod", "node", "correlation", "message", "event":
		return hintNot
	}
	return hintNone
}

// secretNear looks for the nearest telling word within 48 bytes before i, on
// the same line. direct says that nothing but "is", "=", a quote or the like
// stands between.
func (x *reader) secretNear(i int) (h hint, direct bool) {
	direct = true
	floor := max(x.lo, i-48)
	for e := i; e > floor; {
		for e > floor && char.Class[x.S[e-1]]&char.Word == 0 {
			if x.S[e-1] == '\n' {
				return hintNone, false
			}
			e--
		}
		b := e
		for b > x.lo && e-b < 32 && char.Class[x.S[b-1]]&(char.Word|char.URL64) != 0 {
			b--
		}
		if b == e {
			break
		}
		w := x.S[b:e]
		h := hintOfName(w)
		if pb, pe := x.wordBefore(b, 2); h == hintSecret && isPublic(x.S[pb:pe]) {
			h = hintNot
		}
		if h == hintNot && len(w) == 2 {
			if pb, pe := x.wordBefore(b, 2); hintOf(x.S[pb:pe]) >= hintPair {
				h = hintSecret
			}
		}
		if h == hintSecret || h == hintNot {
			return h, direct && i-e <= 16
		}
		direct = direct && linking(w)
		e = b
	}
	return hintNone, false
}

// linking says whether w only joins a word and its value.
func linking(w []byte) bool {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "is", "was", "as", "to", "be", "are", "a", "the", "value", "of", "now", "following", "ist", "lautet", "est", "es", "x", "v1", "v2", "hmac", "basic":
		return true
	}
	return false
}

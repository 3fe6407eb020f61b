package redact

import "bytes"

// armour masks the private key whose "-----BEGIN" stands at i; one that does
// not end is masked to the end of the text.
func (x *scanner) armour(i int) int {
	label := i + len(armourBegin)
	if i < x.pemLow {
		return label
	}
	n := bytes.Index(x.s[label:min(len(x.s), label+maxLabel)], []byte("-----"))
	if n < 0 {
		x.touch(label + maxLabel)
		return label
	}
	if isPrivate(x.s[label : label+n]) {
		x.pemLow = x.armoured(i, label+n+5, armours{pem: 1})
	}
	return label
}

// armoured masks the key from i to the end of its armour and of all that lie
// in it, looked for from body on, and returns where the last of these begins.
func (x *scanner) armoured(i, body int, open armours) int {
	stop, end, left := x.endOfArmours(body, open)
	if left != (armours{}) {
		x.unended, x.resume, end = left, end, len(x.s)
		stop = end
	}
	x.mask(i, end, rulePrivateKey)
	x.unended = armours{}
	return stop
}

// armourSSH2 masks the private key whose "---- BEGIN SSH2" stands at i (the
// form of RFC 4716, as commercial SSH writes private keys).
func (x *scanner) armourSSH2(i int) int {
	label := i + len("---- BEGIN ")
	n := bytes.IndexByte(x.s[label:min(len(x.s), label+maxLabel)], '\n')
	if n < 0 {
		x.touch(label + maxLabel)
	} else if i >= x.pemLow && isPrivate(x.s[label:label+n]) {
		x.pemLow = x.armoured(i, label, armours{ssh2: 1})
	}
	return label
}

// putty masks the lines of base64 behind the "Private-Lines:" of a PuTTY key,
// whose ":" stands at i.
func (x *scanner) putty(i int) int {
	v := x.end(i+1, 8, isBlank|isDigit)
	end := v
	for {
		line := end
		for line < len(x.s) && (x.s[line] == '\r' || x.s[line] == '\n') {
			line++
		}
		if line == end || x.has(line, "Private-") {
			break
		}
		e := x.end(line, len(x.s), isStd64)
		for e < len(x.s) && x.s[e] == '=' {
			e++
		}
		if e == line || e-v > maxSpan-maxTail && line > v+maxBehind {
			break
		}
		end = e
	}
	for v < end && class[x.s[v]]&isSpace != 0 {
		v++
	}
	if v < end && v >= x.low {
		x.mask(v, end, rulePrivateKey)
	}
	return v
}

// cryptHash masks the password hash of which a digit stands at i behind a
// "$": $1$, $5$, $6$ and $2b$ of crypt(3), $argon2id$ and $y$ are told
// elsewhere. The salt goes with it.
func (x *scanner) cryptHash(i int) {
	b := i - 1
	if c := x.s[i]; c == '2' && x.is(i+1, isLower) && x.has(i+2, "$") {
		// $2b$12$ and 53 characters.
		if x.is(i+3, isDigit) && x.is(i+4, isDigit) && x.has(i+5, "$") && x.cryptEnd(i+6, 54) == i+59 {
			x.mask(b, i+59, ruleHash)
		}
		return
	} else if !x.has(i+1, "$") || c != '1' && c != '5' && c != '6' {
		return
	}
	v := i + 2
	if x.has(v, "rounds=") {
		v = x.end(v+7, 10, isDigit) + 1
	}
	salt := x.cryptEnd(v, 17)
	if salt == v || !x.has(salt, "$") {
		return
	}
	end := x.cryptEnd(salt+1, 87)
	if n := end - salt - 1; n == 22 && x.s[i] == '1' || n == 43 && x.s[i] == '5' || n == 86 && x.s[i] == '6' {
		x.mask(b, end, ruleHash)
	}
}

// yescrypt masks the hash whose parameters stand at i, behind "$y$".
func (x *scanner) yescrypt(i int) {
	salt := x.end(i, 16, isAlnum)
	if !x.has(salt, "$") {
		return
	}
	sum := x.cryptEnd(salt+1, 64)
	if end := x.cryptEnd(sum+1, 64); x.has(sum, "$") && end-sum-1 == 43 {
		x.mask(i-3, end, ruleHash)
	}
}

// cryptEnd is end for crypt's alphabet: letters, digits, "." and "/".
func (x *scanner) cryptEnd(i, limit int) int {
	for limit > 0 && i < len(x.s) && (class[x.s[i]]&isAlnum != 0 || x.s[i] == '.' || x.s[i] == '/') {
		i++
		limit--
	}
	return i
}

// phcNames are hashes in the PHC string form, which have a digit in the name.
var phcNames = [...]string{"$argon2id$", "$argon2i$", "$argon2d$", "$pbkdf2-sha", "pbkdf2_sha256$", "pbkdf2_sha512$", "pbkdf2_sha1$"}

// phcHash masks the hash whose name's digit stands at i: parameters, salt and
// sum behind "$".
func (x *scanner) phcHash(i int) {
	for _, name := range phcNames {
		digit := indexByte(name, '2')
		if !x.has(i-digit, name) {
			continue
		}
		v := i - digit + len(name)
		e, parts := v, 0
		for ; e < len(x.s) && e < v+512 && parts <= 4; e++ {
			if c := x.s[e]; c == '$' {
				parts++
			} else if class[c]&(isStd64|isURL64) == 0 && indexByte("=,.", c) < 0 {
				break
			}
		}
		for e > v && (x.s[e-1] == '.' || x.s[e-1] == ',') {
			e--
		}
		if parts >= 2 && e-v >= 24 {
			x.mask(i-digit, e, ruleHash)
		}
		return
	}
}

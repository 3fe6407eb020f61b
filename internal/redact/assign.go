package redact

import "bytes"

// assign judges the ":" or "=" of w bytes at i: a name before it that says
// its value is secret, or a URL with credentials.
func (x *scanner) assign(i, w int, sep byte) int {
	if i+w+2 < x.low {
		return i + w
	}
	if x.clock(i) {
		return i + w
	}
	start, end := x.name(i)
	if end-start == 2 && isFold(x.s[start:end], "is") {
		start, end = x.name(start)
	}
	if start < end {
		k := kindOfName(x.s[start:end])
		if k == kindNone {
			k = x.twoWords(start, end)
		}
		if k == kindNone && isFold(x.s[start:end], "value") {
			k = x.paired(start)
		}
		if k != kindNone && k != kindNumber && !(k == kindWeak && sep != '=') {
			return x.assigned(i, w, k, sep, start)
		}
	}
	if sep == '=' {
		if start < end {
			x.parameter(i, w, start, end)
		}
		x.azureKey(i)
		return i + w
	}
	switch {
	case x.has(i+w, "//"):
		return x.userinfo(i+w+2, i)
	case end-start == 13 && x.has(start, "Private-Lines"):
		return x.putty(i)
	case x.thinAddress(i):
		return i + w
	}
	return x.colonToken(i, w)
}

// clock says whether the byte at i stands between an hour and a minute.
func (x *scanner) clock(i int) bool {
	if i < 3 || i+2 >= len(x.s) || class[x.s[i-1]]&class[x.s[i+1]]&class[x.s[i-2]]&class[x.s[i+2]]&isDigit == 0 {
		return false
	}
	c := x.s[i-3]
	return c == ' ' || c == 'T' || c == ':' || c == '"'
}

// assigned masks the value behind the sign at i.
func (x *scanner) assigned(i, w int, k kind, sep byte, name int) int {
	v := i + w
	for n := 0; n < 2 && v < len(x.s) && (x.s[v] == '=' || x.s[v] == '>' || x.s[v] == ':' && sep == ':'); n++ {
		v++
	}
	if v = x.end(v, maxBlanks, isBlank); v >= x.low && !(sep == ':' && x.block(v, name, k)) {
		x.value(v, k, sep, name)
	}
	return i + w
}

// value masks the value of kind k at v.
func (x *scanner) value(v int, k kind, sep byte, name int) {
	q, slashes := v, 0
	for q < len(x.s) && x.s[q] == '\\' && slashes < 8 {
		q, slashes = q+1, slashes+1
	}
	end := 0
	if q < len(x.s) && isQuote(x.s[q]) {
		v = q + 1
		x.touch(v + 1)
		if v+1 < len(x.s) && x.s[v] == x.s[q] && x.s[v+1] == x.s[q] {
			v += 2 // three quotes open a longer text
		}
		end = x.closing(v, x.s[q], slashes)
	} else if q < len(x.s) && x.s[q] == '[' && maskLen(x.s[q:]) == 0 {
		v = q + 1
		for end = v + maskLen(x.s[v:]); end < len(x.s) && x.s[end] != ']' && x.s[end] != '\n'; {
			end++
		}
		x.touch(end)
	} else {
		end = x.bare(v, k, sep, name)
	}
	connection := k == kindPassword && sep == '=' && x.inConnection(name)
	if connection && v == q {
		if semi := bytes.IndexByte(x.s[v:end], ';'); semi > 0 {
			end = v + semi
		}
	}
	if v >= end {
		return
	}
	if m := maskLen(x.s[v:end]); m > 0 && len(trimTail(x.s[v+m:end])) == 0 {
		return
	}
	short := end-v <= maxJudged
	switch {
	case short && v == q && sep != ' ' && isSign(bytes.TrimSpace(x.s[v:end])):
	case short && x.s[v] == '%' && isSign(x.s[v:end]):
	case short && (innocuous(x.s[v:end], k) || isReference(x.s[v:end])):
	case short && k == kindCookie && maskLen(x.s[v:end]) == 0 && isNoise(x.s[v:end]):
	case short && v == q && sep != ' ' && (isCode(x.s[v:end]) || isType(x.s[v:end])):
	case k == kindPII:
		x.mask(v, end, rulePIIField)
	case connection:
		x.mask(v, end, ruleConnection)
	default:
		x.mask(v, end, ruleAssignment)
	}
}

// closing finds the quote that closes a value opened behind slashes
// backslashes; the end of the line closes it too.
func (x *scanner) closing(v int, quote byte, slashes int) int {
	run := 0
	for i := v; i < len(x.s); i++ {
		switch c := x.s[i]; {
		case c == '\n':
			return i
		case c == '\\':
			run++
			continue
		case c == quote && (slashes == 0 && run%2 == 0 || slashes > 0 && run <= slashes):
			return i - min(run, slashes)
		}
		run = 0
	}
	x.touch(len(x.s))
	return len(x.s)
}

// bare finds the end of a value without quotes.
func (x *scanner) bare(v int, k kind, sep byte, name int) int {
	i := x.credentials(v)
	i += maskLen(x.s[i:])
	line := k == kindLine || k == kindCookie || k == kindPII || sep == ':' && x.tagged(v)
	var quote byte
	if name > 0 && isQuote(x.s[name-1]) {
		quote = x.s[name-1]
	}
	for ; i < len(x.s); i++ {
		c := x.s[i]
		switch {
		case c == '\n' || c == '\r':
		case c == '&' && sep == '=':
		case c == '<' || isQuote(c) && (!line || c == quote):
		case k == kindPII && (c == ',' || c == ';'):
		case !line && class[c]&isSpace != 0:
		default:
			continue
		}
		break
	}
	x.touch(i)
	return v + len(trimTail(x.s[v:i]))
}

// credentials steps over the scheme before a header's credentials.
func (x *scanner) credentials(v int) int {
	for _, word := range [...]string{"bearer", "basic", "token", "digest"} {
		if x.fold(v, word) && x.is(v+len(word), isBlank) {
			return x.end(v+len(word), 8, isBlank)
		}
	}
	return v
}

// trimTail cuts what closes a sentence or a bracket around a value. A mask's
// own bracket stays.
func trimTail(v []byte) []byte {
	for low := len(v) - maxTail; len(v) > max(low, 0); {
		if c := v[len(v)-1]; (c == ']' || c == '>') && maskLen(v) == len(v) {
			return v
		}
		switch v[len(v)-1] {
		case ',', ';', ')', ']', '}', '>', '.', ' ', '\t', '\\':
			v = v[:len(v)-1]
		default:
			return v
		}
	}
	return v
}

// element masks the text of <password>x</password>; ">" stands at i.
func (x *scanner) element(i int) int {
	k, weak := x.elementKind(i)
	if k == kindNone || k == kindNumber {
		return i + 1
	}
	start, stop := i+1, byte('<')
	if x.has(start, cdata) {
		start, stop = start+len(cdata), ']'
	}
	end := start + maskLen(x.s[start:])
	for end < len(x.s) && x.s[end] != stop && x.s[end] != '\n' {
		end++
	}
	x.touch(end)
	v := x.s[start:end]
	if len(v) == 0 || maskLen(v) == len(v) || innocuous(v, k) || weak && end-start < maxJudged && isLabel(v) {
		return i + 1
	}
	r := ruleAssignment
	if k == kindPII {
		r = rulePIIField
	}
	x.mask(start, end, r)
	return i + 1
}

const cdata = "<![CDATA["

// userinfo masks the credentials of a URL whose authority starts at i, its
// scheme's ":" at colon. It looks at 256 bytes; a password with a raw "/" is
// seen where what stands before it cannot be a port.
func (x *scanner) userinfo(i, sign int) int {
	if x.hook(i) {
		return i
	}
	at, colon, stop := -1, -1, min(len(x.s), i+256)
scan:
	for j := i; j < stop; j++ {
		switch c := x.s[j]; {
		case c == '@':
			at = j
		case c == ':' && colon < 0:
			colon = j
		case c == '/' || c == '?' || c == '#':
			if at >= 0 || colon < 0 || j == colon+1 || digitsFrom(x.s, colon+1, 6) == j-colon-1 || x.has(j, "//") {
				break scan
			}
		case class[c]&isSpace != 0 || isQuote(c) || c == '<' || c == '>' || c == '\\':
			break scan
		}
	}
	switch {
	case at <= i || colon >= 0 && colon < at && isReference(x.s[colon+1:at]):
	case colon >= 0 && colon < at && x.isDatabase(sign):
		x.mask(i, at, ruleConnection)
	case colon >= 0 && colon < at || isOpaque(x.s[i:at]):
		x.mask(i, at, ruleURL)
	}
	return i
}

// isOpaque says whether the user of a URL is a token: 20 or more letters and
// digits.
func isOpaque(v []byte) bool {
	var have uint16
	for _, c := range v {
		if class[c]&isURL64 == 0 {
			return false
		}
		have |= class[c]
	}
	return len(v) >= 20 && have&isDigit != 0 && have&isLetter != 0
}

// innocuous says that a value tells nothing: a truth value, an absence, the
// word a Secret prints; and, unless it may be a password, a short number.
func innocuous(v []byte, k kind) bool {
	if len(v) > maxTail {
		return false
	}
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return true
	}
	if k != kindPassword && len(v) <= 6 && digitsFrom(v, 0, 7) == len(v) {
		return true
	}
	var buf [10]byte
	if len(v) > len(buf) {
		return false
	}
	for i, c := range v {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	switch string(buf[:len(v)]) {
	case "true", "false", "yes", "no", "null", "nil", "none", "undefined", "required", "redacted":
		return true
	}
	return false
}

package sqlite

import "encoding/hex"

// crossingValue is how a crossing's id is stored: a UUID in its usual form as
// its 16 bytes, which keeps the index small, anything else as text. The two
// cannot be confused, since the column keeps the type.
func crossingValue(id string) any {
	if b, ok := uuidBytes(id); ok {
		return b[:]
	}
	return id
}

func crossingText(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case []byte:
		if len(x) == 16 {
			return uuidText([16]byte(x))
		}
	}
	return ""
}

// uuidBytes reads the 36 characters of a UUID in lower case, and nothing else.
func uuidBytes(s string) (b [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return b, false
	}
	n := 0
	for i := 0; i < 36; i += 2 {
		if s[i] == '-' {
			i++
		}
		hi, lo := nibble(s[i]), nibble(s[i+1])
		if hi|lo > 15 {
			return b, false
		}
		b[n] = hi<<4 | lo
		n++
	}
	return b, true
}

func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

func uuidText(b [16]byte) string {
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

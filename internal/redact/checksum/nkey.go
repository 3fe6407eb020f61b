package checksum

import "bytes"

// IsNKeySeed reports whether s has the form of a seed of NATS, whatever its check: "S", the letter of a role, and 56
// more of base32, digits among them.
func IsNKeySeed(s []byte) bool {
	if len(s) != 58 || s[0] != 'S' || bytes.IndexByte([]byte("UAONCX"), s[1]) < 0 {
		return false
	}
	digits := 0
	for _, c := range s {
		switch {
		case c >= '2' && c <= '7':
			digits++
		case c < 'A' || c > 'Z':
			return false
		}
	}
	return digits > 2
}

// IsNKey reports whether s is a seed or a private key of NATS: base32 whose first byte
// or two say so, and whose last two are the CRC-16 of the others.
func IsNKey(s []byte) bool {
	var raw [40]byte
	n, acc, bits := 0, uint32(0), 0
	for _, c := range s {
		switch {
		case c >= 'A' && c <= 'Z':
			acc = acc<<5 | uint32(c-'A')
		case c >= '2' && c <= '7':
			acc = acc<<5 | uint32(c-'2'+26)
		default:
			return false
		}
		if bits += 5; bits >= 8 {
			bits -= 8
			if n == len(raw) {
				return false
			}
			raw[n] = byte(acc >> bits)
			n++
		}
	}
	if n < 4 || raw[0]&0xf8 != 18<<3 && raw[0] != 15<<3 {
		return false
	}
	crc := uint16(0)
	for _, b := range raw[:n-2] {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return raw[n-2] == byte(crc) && raw[n-1] == byte(crc>>8)
}

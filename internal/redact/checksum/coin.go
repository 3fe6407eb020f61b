package checksum

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"golang.org/x/crypto/sha3"
)

// base58Digit is the value of a byte in Bitcoin's alphabet, 255 for none.
var base58Digit = base58Digits()

func base58Digits() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range []byte("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz") {
		t[c] = byte(i)
	}
	return t
}

// IsBase58Check decodes a number of n bytes and says whether its last four are
// the check of the others: twice SHA-256. n is at most 40.
func IsBase58Check(s []byte, n int) (version byte, ok bool) {
	var limbs [10]uint32
	for _, c := range s {
		carry := uint64(base58Digit[c])
		if carry == 255 {
			return 0, false
		}
		for k := range limbs {
			carry += uint64(limbs[k]) * 58
			limbs[k] = uint32(carry)
			carry >>= 32
		}
		if carry != 0 {
			return 0, false
		}
	}
	var all [40]byte
	for k, v := range limbs {
		binary.BigEndian.PutUint32(all[36-4*k:], v)
	}
	for _, c := range all[:40-n] {
		if c != 0 {
			return 0, false
		}
	}
	b := all[40-n:]
	sum := sha256.Sum256(b[:n-4])
	sum = sha256.Sum256(sum[:])
	return b[0], string(sum[:4]) == string(b[n-4:])
}

// IsBech32 says whether the check of an address holds whose separator stands at
// one (BIP 173, BIP 350).
func IsBech32(s []byte, one int) bool {
	const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	sum := uint32(1)
	step := func(v byte) {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(v)
		for i, g := range [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 != 0 {
				sum ^= g
			}
		}
	}
	for _, c := range s[:one] {
		step(char.ToLower(c) >> 5)
	}
	step(0)
	for _, c := range s[:one] {
		step(char.ToLower(c) & 31)
	}
	var cases uint16
	for _, c := range s[one+1:] {
		v := char.IndexByte(alphabet, char.ToLower(c))
		if v < 0 {
			return false
		}
		cases |= char.Class[c]
		step(byte(v))
	}
	return cases&char.Letter != char.Letter && (sum == 1 || sum == 0x2bc830a3)
}

// IsChecksummed says whether the capitals among 40 hexadecimal digits are
// those of EIP-55: where the Keccak-256 of the small letters has an 8 or more.
func IsChecksummed(d []byte) bool {
	var small [40]byte
	for i, c := range d {
		small[i] = char.ToLower(c)
	}
	h := sha3.NewLegacyKeccak256()
	_, _ = h.Write(small[:]) // a hash takes everything
	var buf [32]byte
	sum := h.Sum(buf[:0])
	for i, c := range d {
		half := sum[i/2] >> 4
		if i%2 == 1 {
			half = sum[i/2] & 15
		}
		if char.Class[c]&char.Letter != 0 && (char.Class[c]&char.Upper != 0) != (half >= 8) {
			return false
		}
	}
	return true
}

package redact

import (
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"testing"
)

// What computes check digits for the labelled set: none of it is the engine's.

// luhnDigit completes digits to a number that passes ISO/IEC 7812-1's check.
func luhnDigit(s string) string {
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return strconv.Itoa((10 - sum%10) % 10)
}

// other is a digit or letter that is not the right one.
func other(m *maker, right, alphabet string) string {
	for {
		if c := m.of(alphabet, 1); c != right {
			return c
		}
	}
}

// weighted is the sum of the digits times the weights.
func weighted(s string, weights ...int) int {
	sum := 0
	for i, w := range weights {
		sum += int(s[i]-'0') * w
	}
	return sum
}

// ibanCheck is the two check digits of ISO 13616 for a country and an account.
func ibanCheck(country, account string) string {
	var b strings.Builder
	for _, c := range strings.ToUpper(account + country + "00") {
		if c >= 'A' {
			b.WriteString(strconv.Itoa(int(c-'A') + 10))
		} else {
			b.WriteRune(c)
		}
	}
	n, _ := new(big.Int).SetString(b.String(), 10)
	r := 98 - int(n.Mod(n, big.NewInt(97)).Int64())
	return strconv.Itoa(r/10) + strconv.Itoa(r%10)
}

// crc62 is the checksum of GitHub's and npm's tokens: CRC-32 in six base-62
// digits.
func crc62(s string) string {
	n, out := crc32.ChecksumIEEE([]byte(s)), ""
	for range 6 {
		out = string(alnum62[n%62]) + out
		n /= 62
	}
	return out
}

// verhoeff is the check digit of Aadhaar numbers: multiplication in the
// dihedral group of order 10 and its usual permutation.
func verhoeff(s string) string {
	mul := func(a, b int) int {
		switch {
		case a < 5 && b < 5:
			return (a + b) % 5
		case a < 5:
			return 5 + (a+b-5)%5
		case b < 5:
			return 5 + (a-5-b+5)%5
		}
		return (a - b + 5) % 5
	}
	perm := func(times, d int) int {
		for range times {
			d = [...]int{1, 5, 7, 6, 2, 8, 3, 0, 9, 4}[d]
		}
		return d
	}
	c := 0
	for i := range len(s) {
		c = mul(c, perm((i+1)%8, int(s[len(s)-1-i]-'0')))
	}
	for d := range 10 {
		if mul(c, d) == 0 {
			return strconv.Itoa(d)
		}
	}
	return ""
}

const base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// base58Check is Bitcoin's encoding of a version byte and a payload.
func base58Check(version byte, payload []byte) string {
	b := append([]byte{version}, payload...)
	first := sha256.Sum256(b)
	second := sha256.Sum256(first[:])
	b = append(b, second[:4]...)
	n, mod, out := new(big.Int).SetBytes(b), new(big.Int), ""
	for n.Sign() > 0 {
		n.DivMod(n, big.NewInt(58), mod)
		out = string(base58Alphabet[mod.Int64()]) + out
	}
	for i := 0; i < len(b) && b[i] == 0; i++ {
		out = "1" + out
	}
	return out
}

const bech32Alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// bech32 is BIP 173's encoding of values of five bits; bech32m, of BIP 350,
// has another constant.
func bech32(prefix string, data []byte, constant uint32) string {
	values := []byte{}
	for _, c := range []byte(prefix) {
		values = append(values, c>>5)
	}
	values = append(values, 0)
	for _, c := range []byte(prefix) {
		values = append(values, c&31)
	}
	values = append(append(values, data...), 0, 0, 0, 0, 0, 0)
	chk := uint32(1)
	for _, v := range values {
		top := chk >> 25
		chk = (chk&0x1ffffff)<<5 ^ uint32(v)
		for i, g := range [...]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				chk ^= g
			}
		}
	}
	chk ^= constant
	out := prefix + "1"
	for _, d := range data {
		out += string(bech32Alphabet[d])
	}
	for i := range 6 {
		out += string(bech32Alphabet[chk>>(5*(5-i))&31])
	}
	return out
}

// five is bytes in groups of five bits, padded.
func five(b []byte) []byte {
	var out []byte
	acc, bits := 0, 0
	for _, c := range b {
		acc, bits = acc<<8|int(c), bits+8
		for bits >= 5 {
			bits -= 5
			out = append(out, byte(acc>>bits&31))
		}
	}
	if bits > 0 {
		out = append(out, byte(acc<<(5-bits)&31))
	}
	return out
}

// mod1110 is ISO 7064's MOD 11,10, as German tax numbers have it.
func mod1110(s string) string {
	p := 10
	for i := range len(s) {
		p = (p + int(s[i]-'0')) % 10
		if p == 0 {
			p = 10
		}
		p = p * 2 % 11
	}
	return strconv.Itoa((11 - p) % 10)
}

// keccak256 is Keccak with a rate of 1088 bits and the padding that Ethereum
// has, of at most 135 bytes.
func keccak256(msg []byte) [32]byte {
	var block [136]byte
	copy(block[:], msg)
	block[len(msg)] ^= 1
	block[135] ^= 0x80
	var a [25]uint64
	for i := range 17 {
		for k := range 8 {
			a[i] |= uint64(block[8*i+k]) << (8 * k)
		}
	}
	keccakF(&a)
	var out [32]byte
	for i := range out {
		out[i] = byte(a[i/8] >> (8 * (i % 8)))
	}
	return out
}

// keccakF is the permutation of FIPS 202 section 3.3; its constants come from
// the register of section 3.2.5.
func keccakF(a *[25]uint64) {
	register := byte(1)
	for range 24 {
		var c [5]uint64
		for i := range a {
			c[i%5] ^= a[i]
		}
		for i := range a {
			a[i] ^= c[(i+4)%5] ^ bits.RotateLeft64(c[(i+1)%5], 1)
		}
		x, y, lane := 1, 0, a[1]
		for t := 1; t <= 24; t++ {
			x, y = y, (2*x+3*y)%5
			a[5*y+x], lane = bits.RotateLeft64(lane, t*(t+1)/2), a[5*y+x]
		}
		for y := 0; y < 25; y += 5 {
			row := [5]uint64(a[y : y+5])
			for x := range 5 {
				a[y+x] = row[x] ^ ^row[(x+1)%5]&row[(x+2)%5]
			}
		}
		for j := range 7 {
			if register&1 == 1 {
				a[0] ^= 1 << (1<<j - 1)
			}
			carry := register >> 7
			register <<= 1
			if carry == 1 {
				register ^= 0x71
			}
		}
	}
}

// TestCheckDigits holds what computes check digits against published examples.
func TestCheckDigits(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"Luhn, ISO/IEC 7812-1's example", luhnDigit("7992739871"), "3"},
		{"IBAN, the registry's example of GB", ibanCheck("GB", "NWBK60161331926819"), "29"},
		{"IBAN, the registry's example of DE", ibanCheck("DE", "370400440532013000"), "89"},
		{"Verhoeff", verhoeff("236"), "3"},
		{"German tax number", mod1110("8609574271"), "9"},
		{"BIP 173's example", bech32("bc", append([]byte{0}, five([]byte("\x75\x1e\x76\xe8\x19\x91\x96\xd4\x54\x94\x1c\x45\xd1\xb3\xa3\x23\xf1\x43\x3b\xd6"))...), 1), "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"},
		{"base58check, the first block's address", base58Check(0, []byte("\x62\xe9\x07\xb1\x5c\xbf\x27\xd5\x42\x53\x99\xeb\xf6\xf0\xfb\x50\xeb\xb8\x8f\x18")), "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"},
		{"EIP-55's example", eip55("5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"), "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
		{"EIP-55's example", eip55("fb6916095ca1df60bb79ce92ce3ea74c37c5d359"), "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

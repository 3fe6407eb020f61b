// Package checksum checks the digits of numbers that have a check of their own: cards,
// bank routing, national, tax, health and vehicle numbers, addresses of coins.
package checksum

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// Check digits of identifiers. Each function takes what its caller has
// shaped: ASCII digits, or digits and capital letters.

// IsLuhn is ISO/IEC 7812-1, annex B.
func IsLuhn(d []byte) bool {
	sum, double := 0, false
	for i := len(d) - 1; i >= 0; i-- {
		v := int(d[i] - '0')
		if double {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum, double = sum+v, !double
	}
	return sum%10 == 0
}

// IsRouting is the 3-7-1 check of a routing number of nine digits (ABA Routing
// Number Policy), with the ranges of its first two.
func IsRouting(d []byte) bool {
	switch two := int(d[0]-'0')*10 + int(d[1]-'0'); {
	case two <= 12, two >= 21 && two <= 32, two >= 61 && two <= 72, two == 80:
	default:
		return false
	}
	sum, weights := 0, [3]int{3, 7, 1}
	for i, c := range d {
		sum += weights[i%3] * int(c-'0')
	}
	return sum%10 == 0 && sum > 0
}

// IsHealth is the check of an NHS number of ten digits (NHS Data Dictionary).
func IsHealth(d []byte) bool {
	sum := 0
	for i, c := range d[:9] {
		sum += (10 - i) * int(c-'0')
	}
	check := 11 - sum%11
	if check == 11 {
		check = 0
	}
	return check == int(d[9]-'0') && sum > 0
}

// Tables of the dihedral group D5 for Verhoeff's check (1969).
var (
	verhoeffJoin = [10][10]byte{
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 4, 0, 6, 7, 8, 9, 5}, {2, 3, 4, 0, 1, 7, 8, 9, 5, 6}, {3, 4, 0, 1, 2, 8, 9, 5, 6, 7},
		{4, 0, 1, 2, 3, 9, 5, 6, 7, 8}, {5, 9, 8, 7, 6, 0, 4, 3, 2, 1}, {6, 5, 9, 8, 7, 1, 0, 4, 3, 2}, {7, 6, 5, 9, 8, 2, 1, 0, 4, 3},
		{8, 7, 6, 5, 9, 3, 2, 1, 0, 4}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
	}
	verhoeffTurn = [8][10]byte{
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 5, 7, 6, 2, 8, 3, 0, 9, 4}, {5, 8, 0, 3, 7, 9, 6, 1, 4, 2}, {8, 9, 1, 6, 0, 4, 3, 5, 2, 7},
		{9, 4, 5, 3, 1, 2, 6, 8, 7, 0}, {4, 2, 8, 6, 5, 7, 3, 9, 0, 1}, {2, 7, 9, 3, 8, 0, 6, 4, 1, 5}, {7, 0, 4, 6, 9, 1, 3, 2, 5, 8},
	}
)

// IsAadhaar is the check of an Aadhaar number of twelve digits (UIDAI), which
// begins with 2 to 9.
func IsAadhaar(d []byte) bool {
	c := byte(0)
	for i := range d {
		c = verhoeffJoin[c][verhoeffTurn[i&7][d[len(d)-1-i]-'0']]
	}
	return c == 0 && d[0] >= '2'
}

// IsTaxID is the check of a German tax number of eleven digits: ISO/IEC 7064
// mod 11,10, and of the first ten digits one is there twice or three times.
func IsTaxID(d []byte) bool {
	var count [10]int
	product := 10
	for _, c := range d[:10] {
		count[c-'0']++
		sum := (int(c-'0') + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	repeated := 0
	for _, n := range count {
		if n > 3 {
			return false
		}
		if n > 1 {
			repeated++
		}
	}
	return d[0] != '0' && repeated == 1 && (11-product)%10 == int(d[10]-'0')
}

// IsSpanish is the letter after a Spanish number (Real Decreto 1553/2005):
// the number modulo 23. X, Y and Z of a foreigner's count as 0, 1 and 2.
func IsSpanish(d []byte) bool {
	v := 0
	for i, c := range d[:8] {
		switch {
		case char.Class[c]&char.Digit != 0:
			v = v*10 + int(c-'0')
		case i == 0 && c >= 'X' && c <= 'Z':
			v = int(c - 'X')
		default:
			return false
		}
	}
	return d[8] == "TRWAGMYFPDXBNJZSQVHLCKE"[v%23]
}

// fiscalOdd are the values of 0 to 9, and of A to Z, at odd places of an
// Italian tax code (Decreto ministeriale 23/12/1976).
var fiscalOdd = [26]byte{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}

// IsFiscalCode judges 16 letters and digits: name, birth, town, check letter.
// Digits may be written as LMNPQRSTUV. Its letters are of one case.
func IsFiscalCode(d []byte) bool {
	const shape = "aaaaaa99a99a999a"
	sum := 0
	for i, c := range d {
		if c&0x40 != 0 && (c^d[0])&0x20 != 0 {
			return false
		}
		c &^= (c & 0x40) >> 1 // letters become capitals
		letter := c >= 'A' && c <= 'Z'
		if !letter && char.Class[c]&char.Digit == 0 || shape[i] == 'a' && !letter || shape[i] == '9' && letter &&
			!(c >= 'L' && c <= 'V' && c != 'O') {
			return false
		}
		v := c - '0'
		if letter {
			v = c - 'A'
		}
		switch {
		case i == 15:
			return int(v) == sum%26
		case i%2 == 0:
			sum += int(fiscalOdd[v])
		default:
			sum += int(v)
		}
	}
	return false
}

// IsVehicle judges the 17 capitals and digits of a vehicle identification
// number with a check digit at the ninth place (49 CFR 565.15).
func IsVehicle(d []byte) bool {
	const values = "12345678\x0012345\x007\x00923456789" // A to R without I, O, Q; then S to Z
	weights := [17]int{8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2}
	sum := 0
	for i, c := range d {
		v := int(c - '0')
		if c >= 'A' && c <= 'Z' {
			if v = int(values[c-'A']); v == 0 {
				return false
			}
			v -= '0'
		} else if char.Class[c]&char.Digit == 0 {
			return false
		}
		sum += weights[i] * v
	}
	return d[8] == "0123456789X"[sum%11]
}

package checksum

// IsCard reports whether 12 to 19 digits are of a known issuer and pass the Luhn check.
func IsCard(d []byte) bool { return issued(d) && IsLuhn(d) }

// IsUnissuedCard reports whether d has 16 digits of the industries that issue cards (ISO/IEC 7812,
// 3 to 6) and passes the Luhn check, if the issuer is unknown.
func IsUnissuedCard(d []byte) bool {
	return len(d) == 16 && d[0] >= '3' && d[0] <= '6' && !issued(d) && IsLuhn(d)
}

func issued(d []byte) bool {
	n := len(d)
	if n < 12 || n > 19 {
		return false
	}
	six := 0
	for _, c := range d[:6] {
		six = six*10 + int(c-'0')
	}
	four, two := six/100, six/10000
	in := func(v, lo, hi int) bool { return v >= lo && v <= hi }
	switch {
	case two/10 == 4: // Visa
		return n == 13 || n == 16 || n == 19
	case two == 34 || two == 37: // American Express
		return n == 15
	case in(two, 51, 55) || in(four, 2221, 2720): // Mastercard
		return n == 16
	case in(four, 2200, 2204): // Mir
		return n >= 16
	case in(four, 3000, 3059) || four == 3095 || two == 36 || two == 38 || two == 39: // Diners Club
		return n == 14 || n >= 16
	case in(four, 3528, 3589) || in(four, 3088, 3094) || in(four, 3096, 3102) || in(four, 3112, 3120) ||
		in(four, 3158, 3159) || in(four, 3337, 3349): // JCB
		return n >= 16
	case four == 1800 || four == 2131: // JCB, of before
		return n == 15
	case four == 6011 || two == 65 || in(four, 6440, 6499): // Discover
		return n >= 16
	case two == 62 || two == 60 || two == 81: // UnionPay, RuPay
		return n >= 16
	case two == 50 || in(two, 56, 58) || two == 63 || two == 67 || four == 604: // Maestro
		return true
	case four == 9792: // Troy
		return n == 16
	}
	return false
}

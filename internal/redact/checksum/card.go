package checksum

// IsCard judges 12 to 19 digits.
func IsCard(d []byte) bool { return issued(d) && IsLuhn(d) }

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
	case in(four, 3528, 3589): // JCB
		return n >= 16
	case four == 1800 || four == 2131: // JCB, of before
		return n == 15
	case four == 6011 || two == 65 || in(four, 6440, 6499): // Discover
		return n >= 16
	case two == 62 || two == 60 || two == 81: // UnionPay, RuPay
		return n >= 16
	case two == 50 || in(two, 56, 58) || two == 63 || two == 67: // Maestro
		return true
	case four == 9792: // Troy
		return n == 16
	}
	return false
}

package checksum

// IsSSN reports whether d can have been given out as a social security number, or from 9 on
// as a taxpayer's.
func IsSSN(d [9]byte) bool {
	area := string(d[:3])
	if d[0] == '9' && !isTaxpayer(d[3], d[4]) {
		return false
	}
	return area != "000" && area != "666" && string(d[3:5]) != "00" && string(d[5:]) != "0000"
}

// isTaxpayer reports whether a and b can be the fourth and fifth digit of a taxpayer's number (ITIN,
// ATIN): 50 to 65, 70 to 88, 90 to 99.
func isTaxpayer(a, b byte) bool {
	v := int(a-'0')*10 + int(b-'0')
	return v >= 50 && v <= 65 || v >= 70 && v <= 88 || v >= 90
}

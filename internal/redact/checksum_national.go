package redact

// weightedSum is the sum of digits, each times its weight.
func weightedSum(d []byte, weights string) int {
	sum := 0
	for i := range weights {
		sum += int(d[i]-'0') * int(weights[i]-'0')
	}
	return sum
}

// isBSN is the Dutch test of eleven.
func isBSN(d []byte) bool {
	sum := weightedSum(d, "98765432") - int(d[8]-'0')
	return sum%11 == 0 && sum > 0
}

// isTaxFile is the check of an Australian tax file number.
func isTaxFile(d []byte) bool {
	sum := weightedSum(d, "14375869") + 10*int(d[8]-'0')
	return sum%11 == 0 && sum > 0
}

// isPesel is the check of a Polish number, whose first six digits are a day.
func isPesel(d []byte) bool {
	return d[4] <= '3' && (weightedSum(d, "1379137913")+int(d[10]-'0'))%10 == 0
}

// isCPF is the check of a Brazilian number: two digits modulo 11.
func isCPF(d []byte) bool {
	for n := 9; n <= 10; n++ {
		sum := 0
		for i := range n {
			sum += int(d[i]-'0') * (n + 1 - i)
		}
		if sum*10%11%10 != int(d[n]-'0') {
			return false
		}
	}
	return true
}

// isNIR is the key of a French number: 97 less the remainder of the first 13.
func isNIR(d []byte) bool {
	v := 0
	for _, c := range d[:13] {
		v = v*10 + int(c-'0')
	}
	return (d[0] == '1' || d[0] == '2') && 97-v%97 == int(d[13]-'0')*10+int(d[14]-'0')
}

// isShaped says whether text has capitals at A, digits at 9, and either at X.
func isShaped(text []byte, shape string) bool {
	for i, c := range text {
		want := isUpper | isDigit
		switch shape[i] {
		case 'A':
			want = isUpper
		case '9':
			want = isDigit
		}
		if class[c]&want == 0 {
			return false
		}
	}
	return true
}

func isCapital(text []byte) bool {
	for _, c := range text {
		if class[c]&(isUpper|isDigit) == 0 {
			return false
		}
	}
	return true
}

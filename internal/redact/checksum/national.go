package checksum

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// weightedSum is the sum of digits, each times its weight.
func weightedSum(d []byte, weights string) int {
	sum := 0
	for i := range weights {
		sum += int(d[i]-'0') * int(weights[i]-'0')
	}
	return sum
}

// IsBSN is the Dutch test of eleven.
func IsBSN(d []byte) bool {
	sum := weightedSum(d, "98765432") - int(d[8]-'0')
	return sum%11 == 0 && sum > 0
}

// IsTaxFile is the check of an Australian tax file number.
func IsTaxFile(d []byte) bool {
	sum := weightedSum(d, "14375869") + 10*int(d[8]-'0')
	return sum%11 == 0 && sum > 0
}

// IsPesel is the check of a Polish number, whose first six digits are a day.
func IsPesel(d []byte) bool {
	return d[4] <= '3' && (weightedSum(d, "1379137913")+int(d[10]-'0'))%10 == 0
}

// IsCPF is the check of a Brazilian number: two digits modulo 11.
func IsCPF(d []byte) bool {
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

// IsNIR is the key of a French number: 97 less the remainder of the first 13.
func IsNIR(d []byte) bool {
	v := 0
	for _, c := range d[:13] {
		v = v*10 + int(c-'0')
	}
	return (d[0] == '1' || d[0] == '2') && 97-v%97 == int(d[13]-'0')*10+int(d[14]-'0')
}

// IsShaped says whether text has capitals at A, digits at 9, and either at X.
func IsShaped(text []byte, shape string) bool {
	for i, c := range text {
		want := char.Upper | char.Digit
		switch shape[i] {
		case 'A':
			want = char.Upper
		case '9':
			want = char.Digit
		}
		if char.Class[c]&want == 0 {
			return false
		}
	}
	return true
}

// IsCapital reports whether text has capitals and digits only.
func IsCapital(text []byte) bool {
	for _, c := range text {
		if char.Class[c]&(char.Upper|char.Digit) == 0 {
			return false
		}
	}
	return true
}

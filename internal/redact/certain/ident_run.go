package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/checksum"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// maxHead is how many letters may stand before the first digit of a run that
// is judged as a whole.
const maxHead = 48

// maxMixed is the longest such run that is an identifier.
const maxMixed = 96

// mixedRun judges the run of letters and digits whose first n digits stand at
// i: a token that begins a word, or an identifier. It returns where to go on,
// or 0 where the digits are to be judged by themselves.
func (x *Scanner) mixedRun(i, n int) int {
	x.maskKey(i)
	s := x.S
	b := i
	for b > 0 && i-b < maxHead && char.Class[s[b-1]]&char.Letter != 0 {
		b--
	}
	if b = x.BehindEscape(b, i); !x.Begins(b) {
		return 0 // not the run's first digits, or too many letters
	}
	if list := token.Runs[s[b]]; list != nil && x.runToken(b, list) {
		return i + n
	}
	switch {
	case s[i] == '2' && b < i && (s[i-1] == 'n' || s[i-1] == 'f'):
		x.phcHash(i)
	case b == i-1 && s[b] == 'j' && x.Has(b-3, "$y$"):
		x.yescrypt(b)
	}
	if i-b == 2 && n >= 2 {
		if end := x.iban(b); end > 0 && !token.IsInside(x.S, b, token.MinNoise) {
			x.mask(b, end, rule.IBAN)
			return i + n
		}
	}
	end := x.End(i, maxMixed-(i-b), char.Alnum)
	if end-b == 4 && x.maskMedicare(b) || b == i && s[b] == '0' && x.maskSalesforce(b) {
		return i + n
	}
	if r := x.identifier(b, end, i); r != rule.None && !x.Is(end, char.Alnum) {
		x.mask(b, end, r)
		return i + n
	}
	return 0
}

// maskMedicare masks the beneficiary's number in three parts that begins at b:
// 1EG4-TE5-MK73. A word must precede it, as it has no check digit.
func (x *Scanner) maskMedicare(b int) bool {
	if !x.Has(b+4, "-") || !x.Has(b+8, "-") || len(x.S) < b+13 || x.Is(b+13, char.Alnum) {
		return false
	}
	d := append(append(append(make([]byte, 0, 11), x.S[b:b+4]...), x.S[b+5:b+8]...), x.S[b+9:b+13]...)
	if !checksum.IsShaped(d, "9AX9AX9AA99") || !x.near(b, wordMedicare) {
		return false
	}
	x.mask(b, b+13, rule.Health)
	return true
}

// maskSalesforce masks the session "00D...!..." that begins at b: an organisation's number,
// and 80 characters or more.
func (x *Scanner) maskSalesforce(b int) bool {
	if !x.Has(b, "00D") || x.End(b, 18, char.Alnum) != b+15 || !x.Has(b+15, "!") {
		return false
	}
	end := b + 16
	for end < len(x.S) && end < b+256 && (char.Class[x.S[end]]&char.Alnum != 0 || x.S[end] == '_' || x.S[end] == '.') {
		end++
	}
	if x.Touch(end); end-b-16 < 80 {
		return false
	}
	x.mask(b, end, rule.Token)
	return true
}

// identifier says what the run [b, end) with its first digit at i is.
func (x *Scanner) identifier(b, end, i int) rule.Rule {
	run := x.S[b:end]
	switch n := len(run); {
	case n < 9:
	case n == 9:
		switch {
		case checksum.IsSpanish(run):
			return rule.Tax
		case checksum.IsShaped(run, "AA999999A") && run[8] <= 'D' &&
			x.near(b, wordInsurance), checksum.IsCapital(run) && x.near(b, wordPassport):
			return rule.National
		}
	case n == 10:
		if checksum.IsShaped(run, "AAAAA9999A") && x.near(b, wordPAN) {
			return rule.Tax
		}
	case n == 11:
		if checksum.IsShaped(run, "9AX9AX9AA99") && x.near(b, wordMedicare) {
			return rule.Health
		}
	case n == 16:
		if i-b >= 6 && checksum.IsFiscalCode(run) {
			return rule.Tax
		}
	case n == 17:
		if checksum.IsVehicle(run) && x.near(b, wordVehicle) {
			return rule.Vehicle
		}
	case n == 40 && string(run[32:]) == "FFFFNRAL": // of New Relic's accounts
		return rule.Token
	case n == 58 && run[0] == 'S', n == 56 && run[0] == 'P':
		if checksum.IsNKey(run) || checksum.IsNKeySeed(run) {
			return rule.PrivateKey
		}
	case n == 42 && run[0] == '0' && run[1]|0x20 == 'x':
		if x.isEther(b, run[2:]) {
			return rule.Wallet
		}
	default:
		return coin(run, i-b)
	}
	return rule.None
}

// coin says whether a run is a wallet's address or private key: of Bitcoin
// and what descends from it, or of Tron. one is where its first digit stands.
func coin(run []byte, one int) rule.Rule {
	switch n := len(run); {
	case run[one] == '1' && (one == 2 || one == 3) && n >= 14:
		if (char.EqualFold(run[:one], "bc") || char.EqualFold(run[:one], "tb") || char.EqualFold(run[:one], "ltc")) &&
			checksum.IsBech32(run, one) {
			return rule.Wallet
		}
	case n >= 26 && n <= 35 && char.IndexByte("123LMDATmn", run[0]) >= 0:
		if v, ok := checksum.IsBase58Check(run, 25); ok &&
			char.IndexByte("\x00\x05\x16\x1e\x30\x32\x41\x6f\xc4", v) >= 0 {
			return rule.Wallet
		}
	case n == 51 && (run[0] == '5' || run[0] == '9'):
		if v, ok := checksum.IsBase58Check(run, 37); ok && (v == 0x80 || v == 0xef) {
			return rule.PrivateKey
		}
	case n == 52 && char.IndexByte("KLc", run[0]) >= 0:
		if v, ok := checksum.IsBase58Check(run, 38); ok && (v == 0x80 || v == 0xef) {
			return rule.PrivateKey
		}
	}
	return rule.None
}

// isEther judges 40 hexadecimal digits behind the "0x" at b. In letters of
// one case there is no check, so that a word for it must stand before.
func (x *Scanner) isEther(b int, d []byte) bool {
	var have uint16
	for _, c := range d {
		if char.Class[c]&char.Hex == 0 {
			return false
		}
		have |= char.Class[c]
	}
	if have&char.Letter == char.Letter {
		return checksum.IsChecksummed(d)
	}
	return x.near(b, wordWallet)
}

// identity judges groups of digits whose check alone is weak: a word for the
// number must stand before them.
func (x *Scanner) identity(g []cursor.Group) (end int, r rule.Rule) {
	at := g[0].At
	if !x.Begins(at) {
		return 0, rule.None
	}
	if end := x.birth(g); end > 0 {
		return end, rule.Birth
	}
	if end := x.insurance(g); end > 0 {
		return end, rule.National
	}
	var buf [15]byte
	n, end := x.gathered(g, &buf)
	if n == 0 {
		return 0, rule.None
	}
	return end, x.weak(buf[:n], at)
}

// weak says what 9 to 15 digits are that stand behind a word at i. The check
// comes first: it fails for most.
func (x *Scanner) weak(d []byte, i int) rule.Rule {
	switch len(d) {
	case 9:
		switch {
		case checksum.IsRouting(d) && x.near(i, wordRouting):
			return rule.Bank
		case checksum.IsTaxFile(d) && x.near(i, wordTax):
			return rule.Tax
		case checksum.IsLuhn(d) && x.near(i, wordInsurance), checksum.IsBSN(d) &&
			x.near(i, wordBSN), x.near(i, wordPassport):
			return rule.National
		}
	case 10:
		if checksum.IsHealth(d) && x.near(i, wordNHS) {
			return rule.Health
		}
	case 11:
		switch {
		case checksum.IsTaxID(d) && x.near(i, wordTax), checksum.IsCPF(d) && x.near(i, wordCPF):
			return rule.Tax
		case checksum.IsPesel(d) && x.near(i, wordPesel):
			return rule.National
		}
	case 12:
		if checksum.IsAadhaar(d) && x.near(i, wordAadhaar) {
			return rule.National
		}
	case 15:
		if checksum.IsNIR(d) && x.near(i, wordNIR) {
			return rule.National
		}
	}
	return rule.None
}

// Leads says whether s, which ends in white space, ends in a word that a mask
// may begin with whose trigger comes behind it: a month, two capitals.
func Leads(s []byte) bool {
	e := len(s) - 1
	if e > 0 && s[e-1] == '.' {
		e--
	}
	b := e
	for b > 0 && e-b < 10 && char.Class[s[b-1]]&char.Letter != 0 {
		b--
	}
	return e-b == 2 && char.Class[s[b]]&char.Class[s[b+1]]&char.Upper != 0 || isMonth(s[b:e])
}

// insurance returns the end of a British number in pairs, AB 12 34 56 C, or 0.
func (x *Scanner) insurance(g []cursor.Group) int {
	if len(g) != 3 || g[0].N != 2 || g[1].N != 2 || g[2].N != 2 || g[0].Sep != ' ' || g[1].Sep != ' ' {
		return 0
	}
	at, end := g[0].At, g[2].At+2
	if !x.Is(at-1, char.Blank) || !x.Is(at-2, char.Upper) || !x.Is(at-3, char.Upper) || !x.Is(end, char.Blank) ||
		!x.Is(end+1, char.Upper) || x.S[end+1] > 'D' {
		return 0
	}
	if !x.near(at-3, wordInsurance) {
		return 0
	}
	x.mask(at-3, end+2, rule.National)
	return end + 2
}

// weakGroups are the ways such numbers are written besides in one piece.
var weakGroups = [...][4]int{{4, 4, 1}, {3, 3, 4}, {3, 3, 3, 2}, {3, 3, 3}, {2, 3, 3, 3}, {4, 4, 4}}

// gathered writes the 9 to 15 digits that groups make to d, and returns how
// many they are and where they end.
func (x *Scanner) gathered(g []cursor.Group, d *[15]byte) (n, end int) {
	if n := g[0].N; n >= 9 && (n <= 12 || n == 15) {
		end := g[0].At + n
		return copy(d[:], x.S[g[0].At:end]), end
	}
	if len(g) < 3 || g[1].N < 3 || g[0].N > 4 || g[0].N < 2 {
		return 0, 0
	}
	for k := range weakGroups {
		if weakGroups[k][0] != g[0].N || weakGroups[k][1] != g[1].N {
			continue
		}
		if n, end := x.grouping(g, &weakGroups[k], d); n > 0 {
			return n, end
		}
	}
	return 0, 0
}

func (x *Scanner) grouping(g []cursor.Group, want *[4]int, d *[15]byte) (n, end int) {
	for k, size := range want {
		if size == 0 {
			break
		}
		if k >= len(g) || g[k].N != size || k > 0 && g[k-1].Sep != ' ' && g[k-1].Sep != '-' && g[k-1].Sep != '.' {
			return 0, 0
		}
		end = g[k].At + size
		n += copy(d[n:], x.S[g[k].At:end])
	}
	return n, end
}

package redact

// maxHead is how many letters may stand before the first digit of a run that
// is judged as a whole.
const maxHead = 48

// maxMixed is the longest such run that is an identifier.
const maxMixed = 96

// mixedRun judges the run of letters and digits whose first n digits stand at
// i: a token that begins a word, or an identifier. It returns where to go on,
// or 0 where the digits are to be judged by themselves.
func (x *scanner) mixedRun(i, n int) int {
	s := x.s
	b := i
	for b > 0 && i-b < maxHead && class[s[b-1]]&isLetter != 0 {
		b--
	}
	if b = x.behindEscape(b, i); !x.begins(b) {
		return 0 // not the run's first digits, or too many letters
	}
	if list := runsBy[s[b]]; list != nil && x.runToken(b, list) {
		return i + n
	}
	switch {
	case s[i] == '2' && b < i && (s[i-1] == 'n' || s[i-1] == 'f'):
		x.phcHash(i)
	case b == i-1 && s[b] == 'j' && x.has(b-3, "$y$"):
		x.yescrypt(b)
	}
	if i-b == 2 && n >= 2 {
		if end := x.iban(b); end > 0 {
			x.mask(b, end, ruleIBAN)
			return i + n
		}
	}
	end := x.end(i, maxMixed-(i-b), isAlnum)
	if r := x.identifier(b, end, i); r != ruleNone && !x.is(end, isAlnum) {
		x.mask(b, end, r)
		return i + n
	}
	return 0
}

// identifier says what the run [b, end) with its first digit at i is.
func (x *scanner) identifier(b, end, i int) rule {
	run := x.s[b:end]
	switch n := len(run); {
	case n < 9:
	case n == 9:
		switch {
		case spanish(run):
			return ruleTax
		case isShaped(run, "AA999999A") && run[8] <= 'D' && x.near(b, wordInsurance), isCapital(run) && x.near(b, wordPassport):
			return ruleNational
		}
	case n == 10:
		if isShaped(run, "AAAAA9999A") && x.near(b, wordPAN) {
			return ruleTax
		}
	case n == 11:
		if isShaped(run, "9AX9AX9AA99") && x.near(b, wordMedicare) {
			return ruleHealth
		}
	case n == 16:
		if i-b >= 6 && isFiscalCode(run) {
			return ruleTax
		}
	case n == 17:
		if isVehicle(run) && x.near(b, wordVehicle) {
			return ruleVehicle
		}
	case n == 42 && run[0] == '0' && run[1]|0x20 == 'x':
		if x.isEther(b, run[2:]) {
			return ruleWallet
		}
	default:
		return coin(run, i-b)
	}
	return ruleNone
}

// coin says whether a run is a wallet's address or private key: of Bitcoin
// and what descends from it, or of Tron. one is where its first digit stands.
func coin(run []byte, one int) rule {
	switch n := len(run); {
	case run[one] == '1' && (one == 2 || one == 3) && n >= 14:
		if (isFold(run[:one], "bc") || isFold(run[:one], "tb") || isFold(run[:one], "ltc")) && isBech32(run, one) {
			return ruleWallet
		}
	case n >= 26 && n <= 35 && indexByte("123LMDATmn", run[0]) >= 0:
		if v, ok := fromBase58(run, 25); ok && indexByte("\x00\x05\x16\x1e\x30\x32\x41\x6f\xc4", v) >= 0 {
			return ruleWallet
		}
	case n == 51 && (run[0] == '5' || run[0] == '9'):
		if v, ok := fromBase58(run, 37); ok && (v == 0x80 || v == 0xef) {
			return rulePrivateKey
		}
	case n == 52 && indexByte("KLc", run[0]) >= 0:
		if v, ok := fromBase58(run, 38); ok && (v == 0x80 || v == 0xef) {
			return rulePrivateKey
		}
	}
	return ruleNone
}

// isEther judges 40 hexadecimal digits behind the "0x" at b. In letters of
// one case there is no check, so that a word for it must stand before.
func (x *scanner) isEther(b int, d []byte) bool {
	var have uint16
	for _, c := range d {
		if class[c]&isHex == 0 {
			return false
		}
		have |= class[c]
	}
	if have&isLetter == isLetter {
		return isChecksummed(d)
	}
	return x.near(b, wordWallet)
}

// identity judges groups of digits whose check alone is weak: a word for the
// number must stand before them.
func (x *scanner) identity(g []group) (end int, r rule) {
	at := g[0].at
	if !x.begins(at) {
		return 0, ruleNone
	}
	if end := x.birth(g); end > 0 {
		return end, ruleBirth
	}
	if end := x.insurance(g); end > 0 {
		return end, ruleNational
	}
	var buf [15]byte
	n, end := x.gathered(g, &buf)
	if n == 0 {
		return 0, ruleNone
	}
	return end, x.weak(buf[:n], at)
}

// weak says what 9 to 15 digits are that stand behind a word at i. The check
// comes first: it fails for most.
func (x *scanner) weak(d []byte, i int) rule {
	switch len(d) {
	case 9:
		switch {
		case isRouting(d) && x.near(i, wordRouting):
			return ruleBank
		case isTaxFile(d) && x.near(i, wordTax):
			return ruleTax
		case luhn(d) && x.near(i, wordInsurance), isBSN(d) && x.near(i, wordBSN), x.near(i, wordPassport):
			return ruleNational
		}
	case 10:
		if isHealth(d) && x.near(i, wordNHS) {
			return ruleHealth
		}
	case 11:
		switch {
		case isTaxID(d) && x.near(i, wordTax), isCPF(d) && x.near(i, wordCPF):
			return ruleTax
		case isPesel(d) && x.near(i, wordPesel):
			return ruleNational
		}
	case 12:
		if isAadhaar(d) && x.near(i, wordAadhaar) {
			return ruleNational
		}
	case 15:
		if isNIR(d) && x.near(i, wordNIR) {
			return ruleNational
		}
	}
	return ruleNone
}

// leads says whether s, which ends in white space, ends in a word that a mask
// may begin with whose trigger comes behind it: a month, two capitals.
func leads(s []byte) bool {
	e := len(s) - 1
	if e > 0 && s[e-1] == '.' {
		e--
	}
	b := e
	for b > 0 && e-b < 10 && class[s[b-1]]&isLetter != 0 {
		b--
	}
	return e-b == 2 && class[s[b]]&class[s[b+1]]&isUpper != 0 || isMonth(s[b:e])
}

// insurance returns the end of a British number in pairs, AB 12 34 56 C, or 0.
func (x *scanner) insurance(g []group) int {
	if len(g) != 3 || g[0].n != 2 || g[1].n != 2 || g[2].n != 2 || g[0].sep != ' ' || g[1].sep != ' ' {
		return 0
	}
	at, end := g[0].at, g[2].at+2
	if !x.is(at-1, isBlank) || !x.is(at-2, isUpper) || !x.is(at-3, isUpper) || !x.is(end, isBlank) || !x.is(end+1, isUpper) || x.s[end+1] > 'D' {
		return 0
	}
	if !x.near(at-3, wordInsurance) {
		return 0
	}
	x.mask(at-3, end+2, ruleNational)
	return end + 2
}

// weakGroups are the ways such numbers are written besides in one piece.
var weakGroups = [...][4]int{{4, 4, 1}, {3, 3, 4}, {3, 3, 3, 2}, {3, 3, 3}, {2, 3, 3, 3}, {4, 4, 4}}

// gathered writes the 9 to 15 digits that groups make to d, and returns how
// many they are and where they end.
func (x *scanner) gathered(g []group, d *[15]byte) (n, end int) {
	if n := g[0].n; n >= 9 && (n <= 12 || n == 15) {
		end := g[0].at + n
		return copy(d[:], x.s[g[0].at:end]), end
	}
	if len(g) < 3 || g[1].n < 3 || g[0].n > 4 || g[0].n < 2 {
		return 0, 0
	}
	for k := range weakGroups {
		if weakGroups[k][0] != g[0].n || weakGroups[k][1] != g[1].n {
			continue
		}
		if n, end := x.grouping(g, &weakGroups[k], d); n > 0 {
			return n, end
		}
	}
	return 0, 0
}

func (x *scanner) grouping(g []group, want *[4]int, d *[15]byte) (n, end int) {
	for k, size := range want {
		if size == 0 {
			break
		}
		if k >= len(g) || g[k].n != size || k > 0 && g[k-1].sep != ' ' && g[k-1].sep != '-' && g[k-1].sep != '.' {
			return 0, 0
		}
		end = g[k].at + size
		n += copy(d[n:], x.s[g[k].at:end])
	}
	return n, end
}

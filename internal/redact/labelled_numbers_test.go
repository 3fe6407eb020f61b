package redact

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Numbers by which a state knows a person, as each state defines them.
func (m *maker) nationalID() {
	for range 12 {
		for _, f := range []struct {
			sub, word string
			make      func() (right, wrong string)
			alone     bool // its form is enough, without a word
		}{
			{"es dni", "DNI", m.dni, true}, {"es nie", "NIE", m.nie, true}, {"it codice fiscale", "codice fiscale", m.codiceFiscale, true},
			{"in aadhaar", "aadhaar", m.aadhaar, false}, {"uk nino", "national insurance number", m.nino, false}, {"pl pesel", "PESEL", m.pesel, false},
			{"fr nir", "numéro de sécurité sociale", m.nir, false}, {"ca sin", "social insurance number", m.sin, false}, {"nl bsn", "BSN", m.bsn, false},
			{"passport", "passport number", m.passport, false},
		} {
			right, wrong := f.make()
			c := m.told(f.word)
			if f.alone && m.r.IntN(2) == 0 {
				c = m.plain()
			}
			m.carry(f.sub, c, right)
			if wrong != "" {
				m.spare(f.sub+", wrong check", m.plain(), wrong)
			}
			if !f.alone {
				m.spare(f.sub+", not told", m.told(one(m, "order", "ticket", "serial", "item")), right)
			}
		}
	}
	for _, s := range []string{"passport control is on the left", "passport.js handles logins", "passport = require('passport')", "passport number is required", "the nie of a rose", "bsn: int", "pesel VARCHAR(11)", "aadhaar is a 12 digit number", "national insurance was founded in 1911"} {
		m.leave("mention", s)
	}
}

const dniLetters = "TRWAGMYFPDXBNJZSQVHLCKE"

func (m *maker) dni() (string, string) {
	s := m.digits(8)
	n, _ := strconv.Atoi(s)
	right := string(dniLetters[n%23])
	return s + right, s + other(m, right, dniLetters)
}

func (m *maker) nie() (string, string) {
	k, s := m.r.IntN(3), m.digits(7)
	n, _ := strconv.Atoi(strconv.Itoa(k) + s)
	right := string(dniLetters[n%23])
	return "XYZ"[k:k+1] + s + right, "XYZ"[k:k+1] + s + other(m, right, dniLetters)
}

// codiceFiscale is the Decree of 23 December 1976: odd places have values of
// their own.
func (m *maker) codiceFiscale() (string, string) {
	consonants := "BCDFGLMNPRSTVZ"
	s := m.of(consonants, 6) + m.digits(2) + m.of("ABCDEHLMPRST", 1) + fmt.Sprintf("%02d", 1+m.r.IntN(28)) + m.of("ABCDEFGHL", 1) + m.digits(3)
	odd := [...]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	sum := 0
	for i := range len(s) {
		v := int(s[i] - 'A')
		if s[i] <= '9' {
			v = int(s[i] - '0')
		}
		if i%2 == 0 {
			v = odd[v]
		}
		sum += v
	}
	right := string(upper26[sum%26])
	return s + right, s + other(m, right, upper26)
}

func (m *maker) aadhaar() (string, string) {
	s := one(m, "2", "3", "5", "7", "9") + m.digits(10)
	right, sep := verhoeff(s), one(m, "", " ", "-")
	return m.grouped(s+right, sep, 4, 4, 4), m.grouped(s+other(m, right, digits10), sep, 4, 4, 4)
}

// nino is HMRC's form: two letters with gaps, six digits, A to D.
func (m *maker) nino() (string, string) {
	s := m.of("ABCEGHJKLMPRSTWXYZ", 1) + m.of("ABCEHJLMPRSTWXYZ", 1)
	d := m.digits(6)
	return one(m, s+d+m.of("ABCD", 1), s+" "+d[:2]+" "+d[2:4]+" "+d[4:]+" "+m.of("ABCD", 1)), "QQ" + d + "Z"
}

func (m *maker) pesel() (string, string) {
	s := fmt.Sprintf("%02d%02d%02d", 40+m.r.IntN(60), 1+m.r.IntN(12), 1+m.r.IntN(28)) + m.digits(4)
	right := strconv.Itoa((10 - weighted(s, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3)%10) % 10)
	return s + right, s + other(m, right, digits10)
}

// nir is INSEE's number: thirteen digits and 97 less their remainder.
func (m *maker) nir() (string, string) {
	s := one(m, "1", "2") + fmt.Sprintf("%02d%02d%02d", 40+m.r.IntN(60), 1+m.r.IntN(12), 1+m.r.IntN(94)) + m.digits(6)
	n, _ := strconv.ParseInt(s, 10, 64)
	key := 97 - int(n%97)
	return fmt.Sprintf("%s%02d", s, key), fmt.Sprintf("%s%02d", s, key%97+1)
}

func (m *maker) sin() (string, string) {
	s := one(m, "1", "2", "4", "5", "6", "7") + m.digits(7)
	right, sep := luhnDigit(s), one(m, "", " ", "-")
	return m.grouped(s+right, sep, 3, 3, 3), m.grouped(s+other(m, right, digits10), sep, 3, 3, 3)
}

// bsn is the Dutch number with its test of eleven.
func (m *maker) bsn() (string, string) {
	for {
		s := one(m, "1", "2") + m.digits(7)
		if r := weighted(s, 9, 8, 7, 6, 5, 4, 3, 2) % 11; r < 10 {
			return s + strconv.Itoa(r), s + other(m, strconv.Itoa(r), digits10)
		}
	}
}

func (m *maker) passport() (string, string) {
	return one(m, m.digits(9), m.of(upper26, 1)+m.digits(8), m.of(upper26, 2)+m.digits(7), m.of("CFGHJKLMNPRTVWXYZ", 1)+m.of("CFGHJKLMNPRTVWXYZ0123456789", 7)+m.digits(1)), ""
}

// Numbers by which a tax office knows a person.
func (m *maker) taxID() {
	for range 22 {
		for _, f := range []struct {
			sub, word string
			make      func() (right, wrong string)
			alone     bool
		}{
			{"de idnr", "Steuer-ID", m.idnr, false}, {"br cpf", "CPF", m.cpf, false}, {"au tfn", "tax file number", m.tfn, false}, {"in pan", "PAN number", m.pan, false},
		} {
			right, wrong := f.make()
			m.carry(f.sub, m.told(f.word), right)
			m.spare(f.sub+", not told", m.told(one(m, "order", "ticket", "serial", "item")), right)
			if wrong != "" {
				m.spare(f.sub+", wrong check", m.plain(), wrong)
			}
		}
	}
	for _, s := range []string{"a tax of 12345678901 euro", "tax id is required", "the CPF has 11 digits", "a pan of 28 cm"} {
		m.leave("mention", s)
	}
}

// idnr is section 139b of the German fiscal code: of ten digits one comes
// twice, and the check digit is ISO 7064's.
func (m *maker) idnr() (string, string) {
	d := strings.Split(digits10, "")
	m.r.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	d[9] = d[m.r.IntN(9)]
	for d[0] == "0" || d[8] == d[9] {
		m.r.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	}
	s := strings.Join(d, "")
	right, sep := mod1110(s), one(m, "", " ")
	return m.grouped(s+right, sep, 2, 3, 3, 3), m.grouped(s+other(m, right, digits10), sep, 2, 3, 3, 3)
}

func (m *maker) cpf() (string, string) {
	s := m.digits(9)
	check := func(s string) string {
		sum := 0
		for i := range len(s) {
			sum += int(s[i]-'0') * (len(s) + 1 - i)
		}
		if r := sum * 10 % 11; r < 10 {
			return strconv.Itoa(r)
		}
		return "0"
	}
	right := s + check(s)
	right += check(right)
	wrong := right[:10] + other(m, right[10:], digits10)
	if m.r.IntN(2) == 0 {
		return right[:3] + "." + right[3:6] + "." + right[6:9] + "-" + right[9:], wrong
	}
	return right, wrong
}

func (m *maker) tfn() (string, string) {
	for {
		s := one(m, "1", "4", "8") + m.digits(8)
		if weighted(s, 1, 4, 3, 7, 5, 8, 6, 9, 10)%11 == 0 {
			return m.grouped(s, one(m, "", " "), 3, 3, 3), s[:8] + other(m, s[8:], digits10)
		}
	}
}

func (m *maker) pan() (string, string) {
	return m.of(upper26, 3) + "P" + m.of(upper26, 1) + m.digits(4) + m.of(upper26, 1), ""
}

// Wallets: Bitcoin's addresses (base58check, BIP 173, BIP 350), Ethereum's
// (EIP-55), private keys (WIF, BIP 32), recovery phrases under a name (the vectors of
// BIP 39; one that nothing announces is not claimed to be found).
func (m *maker) wallet() {
	raw := func(n int) []byte { return []byte(m.of(string(allBytes()), n)) }
	for range 14 {
		right := map[string]string{
			"p2pkh": base58Check(0, raw(20)), "p2sh": base58Check(5, raw(20)), "wif": base58Check(0x80, append(raw(32), 1)),
			"segwit": bech32("bc", append([]byte{0}, five(raw(20))...), 1), "segwit, long": bech32("bc", append([]byte{0}, five(raw(32))...), 1),
			"taproot": bech32("bc", append([]byte{1}, five(raw(32))...), 0x2bc830a3), "xprv": base58Check(0x04, slices.Concat([]byte{0x88, 0xad, 0xe4, 3}, raw(40), []byte{0}, raw(32))),
			"ethereum": eip55(m.hex(40)),
		}
		for _, sub := range sortedKeys(right) {
			m.carry(sub, m.plain(), right[sub])
			switch v := right[sub]; sub {
			case "ethereum":
				m.spare("wrong case", m.plain(), flipCase(v))
			case "wif", "xprv": // with a slip in it, it is still most of a secret
			default:
				i := 6 + m.r.IntN(12)
				m.spare("wrong check", m.plain(), v[:i]+other(m, v[i:i+1], "qpzry9x8gf2tvdw")+v[i+1:])
			}
		}
		m.spare("transaction", m.plain(), "0x"+m.hex(64))
		m.spare("colour", m.plain(), "0x"+m.hex(8))
		m.spare("object id", m.plain(), m.hex(24))
		m.spare("base58", m.plain(), m.of(base58Alphabet, 22+m.r.IntN(20)))
	}
	for _, p := range recoveryPhrases {
		m.carry("bip39", one(m, "seed phrase: §\n", "mnemonic = \"§\"\n", `{"recovery_phrase":"§"}`, "MNEMONIC='§'\n"), p)
		m.spare("prose", m.plain(), "the abandon rate about the year that above all was able to absorb it")
	}
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// recoveryPhrases are test vectors of BIP 39.
var recoveryPhrases = []string{
	strings.Repeat("abandon ", 11) + "about",
	"legal winner thank year wave sausage worth useful legal winner thank yellow",
	"letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
	strings.Repeat("zoo ", 11) + "wrong",
	strings.Repeat("abandon ", 23) + "art",
	"hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel tennis maple dilemma loan word shrug inflict delay length",
	"scheme spot photo card baby mountain device kick cradle pact join borrow",
	"cat swing flag economy stadium alone churn speed unique patch report train",
}

// flipCase changes the case of the first letter of an address that has one.
func flipCase(v string) string {
	b := []byte(v)
	for i := 2; i < len(b); i++ {
		if b[i] >= 'A' {
			b[i] ^= 0x20
			break
		}
	}
	return string(b)
}

// eip55 is the address of 40 hexadecimal digits with its checksum in the case
// of its letters.
func eip55(hex string) string {
	h := keccak256([]byte(hex))
	b := []byte(hex)
	for i, c := range b {
		if nibble := h[i/2] >> (4 * (1 - i%2)) & 15; c >= 'a' && nibble >= 8 {
			b[i] = c - 0x20
		}
	}
	return "0x" + string(b)
}

package redact

import (
	"fmt"
	"strconv"
	"strings"
)

// Addresses of RFC 5321 and 5322, as they are written and as URLs write them.
func (m *maker) email() {
	for range 110 {
		local := one(m, m.of(lower26, 5), "bob.smith", "j.doe", "anna-maria", "x_y", "first.last", "o'hara"[2:], "sales", "ünal", "kim99") + one(m, "", "", "+tag", m.digits(2), ".jr")
		host := one(m, "example.com", "mail.example.co.uk", "example.org", "mx1.corp-example.net", "exämple.de", "example.io", "sub.domain.example.museum", "example.technology", "xn--exmple-cua.com")
		c := m.plain()
		if m.r.IntN(3) == 0 {
			c = one(m, "mailto:§", "From: Somebody <§>\r\nTo: x\r\n", "Cc: §, nobody\r\n", "git log --author=§\n", "contact § or call", "user=§;role=admin", `{"email":"§","n":1}`, "Co-authored-by: Me <§>\n", "§,active,3\n", "password reset sent to §.")
		}
		m.carry("address", c, local+"@"+host)
		if m.r.IntN(6) == 0 {
			m.carry("in a URL", one(m, "https://example.com/u?mail=§&x=1", "to=§&subject=x"), m.of(lower26, 6)+"%40example.com")
		}
	}
	m.near(26, lit("@scope/pkg@1.2.3"), lit("root@localhost"), lit("git@github.com:acme/tool.git"), lit("@app.route(\"/x\")"), lit("@media (max-width: 40em)"), lit("icon@2x.png"), lit("getty@tty1.service"),
		lit("actions/checkout@v4.2.0"), lit("tool@sha256:"), lit("a @ b"), lit("@Override"), lit("user@host"), lit("x@y"), lit("go install example.com/x@latest"), lit("react@19.2.0"), lit("@handle and @other"), lit("12 @ 4.50 each"))
}

// issuers are ranges of ISO/IEC 7812 and the lengths of their numbers.
var issuers = []struct {
	sub, prefix string
	length      int
	groups      []int
}{
	{"visa", "4", 16, []int{4, 4, 4, 4}}, {"mastercard", "51", 16, []int{4, 4, 4, 4}}, {"mastercard", "55", 16, []int{4, 4, 4, 4}}, {"mastercard 2", "2221", 16, []int{4, 4, 4, 4}},
	{"amex", "34", 15, []int{4, 6, 5}}, {"amex", "37", 15, []int{4, 6, 5}}, {"diners", "36", 14, []int{4, 6, 4}}, {"diners", "300", 14, []int{4, 6, 4}}, {"discover", "6011", 16, []int{4, 4, 4, 4}},
	{"discover", "65", 16, []int{4, 4, 4, 4}}, {"jcb", "3530", 16, []int{4, 4, 4, 4}}, {"unionpay", "62", 16, []int{4, 4, 4, 4}}, {"unionpay", "62", 19, []int{4, 4, 4, 4, 3}}, {"maestro", "6759", 16, []int{4, 4, 4, 4}},
}

func (m *maker) grouped(s, sep string, groups ...int) string {
	if sep == "" {
		return s
	}
	var parts []string
	for _, n := range groups {
		parts, s = append(parts, s[:n]), s[n:]
	}
	return strings.Join(parts, sep)
}

// Payment cards: issuer, length and check digit of ISO/IEC 7812-1.
func (m *maker) card() {
	for range 9 {
		for _, i := range issuers {
			n := i.prefix + m.digits(i.length-1-len(i.prefix))
			sep := one(m, "", "", " ", "-")
			c := m.plain()
			if m.r.IntN(3) == 0 || sep == "" || i.length > 16 { // a form that needs a word
				c = one(m, "card: §", "card number § exp 12/29", `{"pan":"§","cvc":null}`, "paid with § today", "visa §", "PAN=§\n", `{"card_number":"§"}`)
			}
			m.carry(i.sub, c, m.grouped(n+luhnDigit(n), sep, i.groups...))
			m.spare("wrong check digit", m.plain(), m.grouped(n+other(m, luhnDigit(n), digits10), one(m, "", "", " ", "-"), i.groups...))
		}
		// Right check digits of what is no card's: an IMEI, a number of an issuer
		// that is none, an order's.
		for range 5 {
			imei := "35" + m.digits(12)
			m.spare("imei", m.plain(), imei+luhnDigit(imei))
			n := one(m, "1", "7", "9") + m.digits(14)
			m.spare("no issuer", m.plain(), n+luhnDigit(n))
			id := one(m, "4", "51", "36", "6011") + m.digits(14)
			m.spare("id", m.plain(), id+luhnDigit(id))
		}
		m.spare("hash", m.plain(), m.hex(24)+"4111111111111111"+m.hex(24))
		m.spare("fraction", m.plain(), "0.4111111111111111")
		m.spare("order", "order § has shipped", one(m, "1", "7", "9")+m.digits(15))
	}
}

// Social security numbers, by the rules of the Social Security Administration
// for areas, groups and serials; taxpayer numbers begin with 9.
func (m *maker) ssn() {
	number := func() (string, string, string) {
		area := 1 + m.r.IntN(899)
		if area == 666 {
			area = 667
		}
		return fmt.Sprintf("%03d", area), fmt.Sprintf("%02d", 1+m.r.IntN(99)), fmt.Sprintf("%04d", 1+m.r.IntN(9999))
	}
	for range 60 {
		a, g, s := number()
		m.carry("with dashes", m.plain(), a+"-"+g+"-"+s)
		a, g, s = number()
		m.carry("told", m.told(one(m, "ssn", "SSN", "social security number", "social security no")), one(m, a+"-"+g+"-"+s, a+g+s, a+" "+g+" "+s))
		m.carry("itin", m.told(one(m, "itin", "ITIN", "taxpayer id")), "9"+m.digits(2)+"-"+one(m, "70", "77", "83", "92")+"-"+fmt.Sprintf("%04d", 1+m.r.IntN(9999)))
		m.spare("never given", m.plain(), one(m, "000-"+g+"-"+s, "666-"+g+"-"+s, a+"-00-"+s, a+"-"+g+"-0000"))
		m.spare("other groups", m.plain(), one(m, a+"-"+g+"-"+s+m.digits(1), m.digits(2)+"-"+m.digits(3)+"-"+m.digits(4), a+"-"+g, "A"+a+"-"+g+"-"+m.digits(2)))
		m.spare("nine digits", m.plain(), a+g+s)
	}
	for _, s := range []string{"the SSN field is empty", "ssn is required", "ssn: str", "social security was founded in 1935", "ssn VARCHAR(11)", "validate_ssn(value)"} {
		m.leave("mention", s)
	}
}

// ibans are forms of the registry of ISO 13616: n digits, a capitals, c either.
var ibans = []struct{ country, form string }{
	{"GB", "aaaann" + "nnnnnnnnnnnn"}, {"DE", "nnnnnnnnnnnnnnnnnn"}, {"FR", "nnnnnnnnnncccccccccccnn"}, {"NL", "aaaannnnnnnnnn"}, {"ES", "nnnnnnnnnnnnnnnnnnnn"},
	{"IT", "annnnnnnnnncccccccccccc"}, {"CH", "nnnnncccccccccccc"}, {"PL", "nnnnnnnnnnnnnnnnnnnnnnnn"}, {"BE", "nnnnnnnnnnnn"}, {"AT", "nnnnnnnnnnnnnnnn"},
	{"NO", "nnnnnnnnnnn"}, {"SE", "nnnnnnnnnnnnnnnnnnnn"}, {"PT", "nnnnnnnnnnnnnnnnnnnnn"}, {"IE", "aaaannnnnnnnnnnnnn"}, {"DK", "nnnnnnnnnnnnnn"}, {"BR", "nnnnnnnnnnnnnnnnnnnnnnnac"},
}

// account is an account number of a form that holds no card's number by chance,
// and the check digits before it.
func (m *maker) account(country, form string) (account, check string) {
	for {
		account = strings.Map(func(c rune) rune {
			return rune(m.of(map[rune]string{'n': digits10, 'a': upper26, 'c': upper26 + digits10}[c], 1)[0])
		}, form)
		if check = ibanCheck(country, account); !mayBeCard(check + account) {
			return account, check
		}
	}
}

// mayBeCard says whether 13 to 19 digits in a row pass the Luhn check behind a
// first digit that issuers have.
func mayBeCard(s string) bool {
	for i := range len(s) {
		for n := 13; n <= 19 && i+n <= len(s); n++ {
			d := s[i : i+n]
			if strings.Trim(d, digits10) == "" && strings.Contains("234568", d[:1]) && luhnDigit(d[:n-1]) == d[n-1:] {
				return true
			}
		}
	}
	return false
}

func (m *maker) iban() {
	for range 6 {
		for _, f := range ibans {
			account, check := m.account(f.country, f.form)
			written := func(s string) string {
				if m.r.IntN(2) == 0 {
					return s
				}
				var b strings.Builder
				for i := range len(s) {
					if i > 0 && i%4 == 0 {
						b.WriteByte(' ')
					}
					b.WriteByte(s[i])
				}
				return b.String()
			}
			c := m.plain()
			if m.r.IntN(3) == 0 {
				c = m.told("iban")
			}
			m.carry(f.country, c, written(f.country+check+account))
			n, _ := strconv.Atoi(check) // two digits, from ibanCheck
			m.spare("wrong check", m.plain(), written(fmt.Sprintf("%s%02d%s", f.country, (n+1+m.r.IntN(90))%97+2, account)))
			m.spare("no country", m.plain(), written("QX"+check+account))
		}
	}
	m.leave("mention", "an IBAN has up to 34 characters")
}

// Telephone numbers: E.164 with the sign; the North American plan's forms;
// others where a word says so.
func (m *maker) phone() {
	abroad := func() string {
		return one(m, "+44 20 7946 0"+m.digits(3), "+44 7911 "+m.digits(6), "+49 30 "+m.digits(7), "+49151"+m.digits(8), "+33 6 "+m.digits(2)+" "+m.digits(2)+" "+m.digits(2)+" "+m.digits(2),
			"+1 415 555 01"+m.digits(2), "+1-212-555-01"+m.digits(2), "+1 (303) 555-01"+m.digits(2), "+91 98"+m.digits(3)+" "+m.digits(5), "+81-3-"+m.digits(4)+"-"+m.digits(4), "+5511"+m.digits(9), "+61 2 "+m.digits(4)+" "+m.digits(4),
			"+34 6"+m.digits(2)+" "+m.digits(3)+" "+m.digits(3), "+41 44 "+m.digits(3)+" "+m.digits(2)+" "+m.digits(2), "+351 21 "+m.digits(3)+" "+m.digits(4), "+86 138 "+m.digits(4)+" "+m.digits(4))
	}
	for range 70 {
		m.carry("E.164", m.plain(), abroad())
		area := one(m, "2", "3", "4", "5", "6", "7", "8", "9") + m.digits(2)
		m.carry("NANP", m.plain(), one(m, "("+area+") 555-01"+m.digits(2), area+"-555-01"+m.digits(2), "1-"+area+"-555-01"+m.digits(2), area+".555.01"+m.digits(2)))
		m.carry("told", m.told(one(m, "phone", "mobile", "phone number", "telephone")), one(m, "0"+m.digits(3)+" "+m.digits(6), area+"55501"+m.digits(2), "01 23 45 "+m.digits(2)+" "+m.digits(2), "0"+m.digits(9), abroad()))
		m.spare("date", m.plain(), one(m, "2026-11-21", "21.11.2026", "11/21/2026", "2026-11-21 03:42:44", "20261121034244"))
		m.spare("numbers", m.plain(), one(m, m.digits(3)+" "+m.digits(3), "+"+m.digits(3), m.digits(4)+"-"+m.digits(4), "10.20.30.40", "1.2.3.4-5", "100 200 300 400", "2010-2020", "1-2-3-4", "+12.5%", "E+10", "x+12345678"))
		m.spare("reference", m.plain(), one(m, "978-3-16-148410-0", "INV-2026-"+m.digits(6), "#"+m.digits(8), m.digits(10), m.digits(12), "48.8584, 2.2945", "+48.8584,+002.2945", "1Z999AA1"+m.digits(10), "SKU 12-34567-89"))
	}
	for _, s := range []string{"diff --git a/x b/x\n@@ -1200345,12 +1200345,12 @@ x\n", "the phone rang twice", "phone: str", "phone = None", "phones: 12", "a mobile app of 2026", "call f(12, 34, 56)", "tel 10.0.0.1:8080", "dial timeout after 30000 ms", "+1 for this", "phone call on 2026-11-21"} {
		m.leave("mention", s)
	}
}

// Dates of birth, which only a word tells from other dates.
func (m *maker) birth() {
	for range 80 {
		y, mo, d := 1930+m.r.IntN(80), 1+m.r.IntN(12), 1+m.r.IntN(28)
		month := [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}[mo-1]
		date := one(m, fmt.Sprintf("%d-%02d-%02d", y, mo, d), fmt.Sprintf("%02d/%02d/%d", d, mo, y), fmt.Sprintf("%02d.%02d.%d", d, mo, y), fmt.Sprintf("%d %s %d", d, month, y), fmt.Sprintf("%s %d, %d", month, d, y))
		m.carry("born", one(m, "date of birth: §", "Date of birth: §\n", "DOB: §", "dob=§\n", "D.O.B. §", "born on §", "was born § in Leeds", `{"date_of_birth":"§"}`, `{"dob":"§","n":1}`, `{"birthDate":"§"}`, "birthday: §\n", "birth_date: '§'\n", "<birthdate>§</birthdate>", "patient DOB § (verified)"), date)
		for range 2 {
			m.spare("other date", one(m, "released on §", "due date: §", "Date: §\n", "updated §", `{"created_at":"§"}`, "since §", "build_date=§\n", "meeting on § at noon", "valid until §", "deployed: §", "built § in Leeds"), date)
		}
	}
	for _, s := range []string{"dob: str", "date of birth is required", "born in a barn", "a born leader of 12 people", "the birth of version 2.0.0", "birthday cake for 12"} {
		m.leave("mention", s)
	}
}

// Bank routing numbers of the American Bankers Association: weights 3, 7, 1.
func (m *maker) bank() {
	number := func() string {
		s := one(m, "01", "02", "06", "11", "12", "21", "26", "31", "32", "61") + m.digits(6)
		return s + strconv.Itoa((10-weighted(s, 3, 7, 1, 3, 7, 1, 3, 7)%10)%10)
	}
	for range 80 {
		word := one(m, "routing number", "routing no", "ABA", "aba number", "bank routing number", "routing transit number")
		n := number()
		m.carry("aba", m.told(word), n)
		m.spare("wrong check digit", m.told(one(m, "routing number", "ABA")), n[:8]+other(m, n[8:], digits10))
		m.spare("not told", m.plain(), n)
		m.spare("told otherwise", m.told(one(m, "order", "ticket", "build", "row")), number())
	}
	for _, s := range []string{"routing table of 123456789 entries", "routing is done by the router", "aba_pattern = x", "the routing number is on the check"} {
		m.leave("mention", s)
	}
}

// Health: numbers of the National Health Service (modulus 11) and Medicare's
// beneficiary identifiers (eleven places, each of its class).
func (m *maker) health() {
	for range 60 {
		var s string
		check := 10
		for check == 10 {
			s = one(m, "4", "6", "7") + m.digits(8)
			check = (11 - weighted(s, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11) % 11
		}
		n := s + strconv.Itoa(check)
		word := one(m, "NHS number", "NHS no", "nhs", "nhs number")
		m.carry("nhs", m.told(word), m.grouped(n, one(m, "", " ", "-"), 3, 3, 4))
		m.spare("wrong check digit", m.told("nhs number"), s+other(m, n[9:], digits10))
		m.spare("not told", m.plain(), n)
		m.spare("told otherwise", m.told(one(m, "order", "invoice", "job")), n)
		letters := "ACDEFGHJKMNPQRTUVWXY"
		mixed := func() string { return m.of(letters+digits10, 1) }
		m.carry("medicare", m.told(one(m, "Medicare number", "medicare id", "MBI")), one(m, "1", "4", "9")+m.of(letters, 1)+mixed()+m.digits(1)+m.of(letters, 1)+mixed()+m.digits(1)+m.of(letters, 2)+m.digits(2))
	}
	for _, s := range []string{"the NHS was founded in 1948", "NHS number is required", "medicare part 4 of 12", "nhs_number VARCHAR(10)"} {
		m.leave("mention", s)
	}
}

// Vehicles: ISO 3779 with the check digit of North America.
func (m *maker) vehicle() {
	value := func(c byte) int {
		if c <= '9' {
			return int(c - '0')
		}
		return int("12345678012345070923456789"[c-'A'] - '0')
	}
	for range 80 {
		s := []byte(m.of("ABCDEFGHJKLMNPRSTUVWXYZ0123456789", 11) + m.digits(6))
		s[8] = '0'
		sum := 0
		for i, w := range [...]int{8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2} {
			sum += value(s[i]) * w
		}
		right := "0123456789X"[sum%11]
		s[8] = right
		m.carry("vin", m.told(one(m, "VIN", "vin", "chassis number", "vehicle identification number")), string(s))
		m.spare("not told", m.plain(), string(s))
		s[8] = other(m, string(right), digits10)[0]
		m.spare("wrong check digit", m.told(one(m, "VIN", "vin")), string(s))
		m.spare("told otherwise", m.told(one(m, "part", "build", "serial")), string(s))
	}
	m.leave("mention", "the VIN has 17 characters")
}

// Fields whose name says that their value is a person's.
func (m *maker) personalField() {
	for range 90 {
		first, last := one(m, "Ada", "Grace", "Alan", "José", "Chloé", "Mary Ann", "Wei"), one(m, "Lovelace", "Hopper", "Turing", "García", "O'Neil", "van Rossum", "Li")
		f := one(m, [2]string{"first_name", first}, [2]string{"firstName", first}, [2]string{"last_name", last}, [2]string{"lastName", last}, [2]string{"surname", last}, [2]string{"full_name", first + " " + last}, [2]string{"fullName", first + " " + last}, [2]string{"maiden_name", last})
		m.carry(f[0], strings.ReplaceAll(one(m, `{"N":"§"}`, `{"id":7,"N": "§","ok":true}`, "N: §\n", "N=§\n", "<N>§</N>", "{\\\"N\\\":\\\"§\\\"}", "  N: \"§\"\n  age: 40\n"), "N", f[0]), f[1])
		m.carry("address", one(m, `{"home_address":"§"}`, `{"street_address":"§","n":1}`, `{"homeAddress":"§"}`), m.digits(2)+" "+one(m, "Elm Street", "High Road", "Rue de Rivoli")+", "+one(m, "Springfield", "Leeds", "Paris"))
		for range 2 {
			m.leave("other names", one(m, `{"name":"`+m.name()+`"}`, "file_name: "+m.name()+".txt\n", "hostname="+m.name()+"\n", "first: 1\nlast: 9\n", `{"first_page":1,"last_page":40}`, "SELECT first_name, last_name FROM users\n", "class FullName:\n", "first_name: str\n", "ip_address: 10.0.0.1\n", "email_address_count=3\n", "function fullName(user) {\n", "lastName?: string;\n", "the surname comes first\n", `{"last_modified":"2026-11-21"}`, "mac_address=02:00:5e:10:00:01\n", "branch_name: main\n", "table_name=users\n", "ssn_last4_required: true\n"))
		}
	}
}

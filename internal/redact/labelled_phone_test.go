package redact

import (
	"fmt"
	"strings"
)

// pickSentence returns a sentence that does not name the number in it.
func (m *maker) pickSentence() string {
	return one(m,
		"You get me on § until six.", "Try § after lunch, please.", "I am at § this week.",
		"Maria gave me § for the plumber, but it is dead.", "Yours, Ann\n§\n", "Ann Lee\n12 Elm Street\n§\n",
		"Tom left § on the pad (and nothing else).", "Ask Tom; he is at § now.", "Is § still right?",
		"The plumber (§) comes at noon.", "Vous pouvez essayer le § demain matin.", "Bitte unter § nachfragen.",
		"Mi tía está en el § por la tarde.", `{"role":"user","content":"the doctor is at § today"}`,
		"First we tried **§** without success.", "Ann lives in Leeds, § is hers.",
	)
}

// nationalForms are numbers as their countries write them; x is a digit, n one from 2 to 9.
var nationalForms = []string{
	"(nxx) 555-01xx", "nxx-555-01xx", "nxx.555.01xx", "1-nxx-555-01xx", "001-nxx-555-01xx", "nxx 555 01xx",
	"01632 960xxx", "(0161) 496 0xxx", "020 7946 0xxx", "07700 900xxx", "0161 496 0xxx",
	"01 nx xx xx xx", "06.nx.xx.xx.xx", "04-nx-xx-xx-xx",
	"030 nxxxxxxx", "0151/nxxxxxxx", "089/nxxxxxxx", "030 nx xx xx xx", "0171 nxxxxxx",
	"044 nxx xx xx", "079 nxx xx xx", "0664 nxxxxxx", "02 nxxxxxxx", "06 nxxx xxxx", "345 nxx xxxx",
	"91 nxx xx xx", "(02) 5550 xxxx", "0491 570 xxx", "02-nxx-xxxx", "054-nxx-xxxx", "082 nxx xxxx",
	"08-nxx xxx xx", "070-nxx xx xx", "412 xx xxx", "040 nxx xxxx", "03-nxxx-xxxx", "090-nxxx-xxxx",
	"010-nxxx-xxxx",
	"06-nxxxxxxx", "020 nxx xxxx", "0475 nx xx xx", "(11) 9xxxx-xxxx", "138 nxxx xxxx", "98xxx xxxxx",
	"8 (912) nxx-xx-xx", "0532 nxx xx xx", "0044 20 7946 0xxx", "00 33 1 nx xx xx xx", "0812 nxxx xxxx",
}

// fillForm replaces the signs of a form by digits.
func (m *maker) fillForm(form string) string {
	var b strings.Builder
	for _, c := range form {
		switch c {
		case 'x':
			b.WriteString(m.digits(1))
		case 'n':
			b.WriteString(m.of("23456789", 1))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// nationalPhone are national forms in prose, and in code, in tables and behind other names.
func (m *maker) nationalPhone() {
	for _, form := range nationalForms {
		for range 3 {
			m.carry(form, m.pickSentence(), m.fillForm(form))
		}
		n := m.fillForm(form)
		m.carry("extension "+form, m.pickSentence(), n+one(m, " x", "x", " ext. ", ", ext ",
			" ext ")+m.of("123456789", 1)+m.digits(2))
		if isCertainForm(form) {
			continue
		}
		for range 2 {
			m.spare("in code and tables", one(m, "x = [§]\n", "a;§;12\n", "12 § 34\n", "f(§)\n", "| 7 | § | 9 |\n",
				"\t§\t12\n",
				"[§, 12]\n", "v:§,w", "# v3 §\n7 8 9\n", "id_§", "x§", "§ 12 34 56\n"), n)
		}
		m.spare("named otherwise", one(m, "the part number § is sold out", "order § was sent on Monday",
			"SKU: § in the shop",
			"invoice no. § is open", "see ticket § for more", "the serial number is § on the back",
			"version § is out",
			"Artikelnummer § ist vergriffen", "in line § of the log"), n)
	}
	for range 150 {
		sub, v := m.phoneLike()
		m.spare(sub, one(m, m.pickSentence(), m.plain()), v)
	}
}

// isCertainForm reports whether a form is a phone's wherever it is.
func isCertainForm(form string) bool {
	switch form {
	case "nxx 555 01xx":
		return false
	case "01632 960xxx", "020 7946 0xxx", "07700 900xxx", "0161 496 0xxx", "8 (912) nxx-xx-xx", "090-nxxx-xxxx",
		"010-nxxx-xxxx":
		return true
	}
	return strings.Contains(form, "555-01") || strings.Contains(form, "555.01") || strings.HasPrefix(form, "(0")
}

// phoneLike is a number that is written like a phone's, and is not.
func (m *maker) phoneLike() (sub, value string) {
	d := m.digits
	two := func() string { return fmt.Sprintf("%02d", m.r.IntN(60)) }
	year := func() string { return one(m, "19", "20") + d(2) }
	list := map[string]string{
		"date": one(m, year()+"-0"+m.of("123456789", 1)+"-1"+d(1), "1"+d(1)+".0"+m.of("123456789", 1)+"."+year(),
			"0"+m.of("123456789", 1)+"/1"+d(1)+"/"+year(), "0"+m.of("123456789", 1)+" 1"+d(1)+" "+year(),
			"1"+d(1)+"-0"+m.of("123456789", 1)+"-"+d(2)),
		"time": one(m, "0"+d(1)+":"+two()+":"+two(), "0"+d(1)+"."+two(),
			"0"+d(1)+":"+two()+":"+two()+"."+d(6), "0900-1700"),
		"version": one(m, "0."+d(2)+"."+d(3), d(1)+"."+d(2)+"."+d(3)+"."+d(2), "1.0."+d(4),
			"20"+d(2)+"."+d(2)+"."+d(1)),
		"isbn": one(m, "978-0-"+d(3)+"-"+d(5)+"-"+d(1), "0-"+d(3)+"-"+d(5)+"-"+d(1),
			"0 "+d(2)+" "+d(6)+" "+d(1), "978 0 "+d(2)+" "+d(6)+" "+d(1)),
		"issn": "0" + d(3) + "-" + d(4),
		"thousands": one(m, d(2)+" "+d(3)+" "+d(3), m.of("123456789", 1)+" "+d(3)+" "+d(3),
			"1"+d(2)+","+d(3)+","+d(3), "2"+d(1)+"."+d(3)+"."+d(3)),
		"address":     one(m, "10."+d(2)+".0."+d(1), "192.168.0."+d(2), "10.0.0.1:8"+d(3)),
		"coordinates": "0" + d(1) + "." + d(6) + ", 1" + d(2) + "." + d(5),
		"matrix":      strings.Join([]string{d(2), d(2), d(2), d(2), d(2), d(2)}, " "),
		"hex dump": strings.Join([]string{"0" + d(1), d(2), "a" + d(1), m.hex(2), m.hex(2), m.hex(2), m.hex(2)},
			" "),
		"hash":  m.hex(40),
		"port":  "0.0.0.0:" + d(4),
		"csv":   strings.Join([]string{d(3), d(3), d(4), d(2)}, ","),
		"pages": one(m, d(4)+"-"+d(4), "1"+d(2)+"-1"+d(2), d(2)+"-"+d(2)),
		"years": one(m, "1990-2004", "2019-2026", "1999/2000"),
		"price": one(m, "$"+d(3)+".99", d(3)+",00 EUR", "0."+d(2)+" EUR"),
		"ratio": one(m, "16:9", "1920x1080", "0.5 x 12", "3x4x5"),
		"identifier": one(m, "0"+m.hex(7)+"-"+m.hex(4)+"-4"+m.hex(3)+"-a"+m.hex(3)+"-"+m.hex(12),
			"A0"+d(3)+"-"+d(3)+"-"+d(4), "XJ-0"+d(2)+"-"+d(3)+"-"+d(4)),
		"long number":  one(m, d(10), d(11), d(12), d(16)),
		"measurements": "0." + d(3) + " 0." + d(3) + " 1." + d(3),
		"drug code":    "0" + d(4) + "-" + d(4) + "-" + d(2),
		"order number": "1" + d(2) + "-" + d(7) + "-" + d(7),
		"log":          "2026-11-21 03:42:44,123 [0123] took 045 ms",
	}
	sub = one(m, sortedKeys(list)...)
	return sub, list[sub]
}

// namedPhone are numbers of any form with a word for a phone near them, in several languages.
func (m *maker) namedPhone() {
	for range 130 {
		n := one(m, m.fillForm("nxx xxx xxx"), m.fillForm("nx xx xx xx"), m.fillForm("555-xxxx"),
			m.fillForm("nxx-xxx-xxx"),
			m.fillForm("0nx xxxxxxx"), m.fillForm("nx xxx xxxx"))
		m.carry("named", one(m, "phone §", "Telefon: §\n", "mobile: §", "Tel. §", "fax §", "Handy: §", "WhatsApp §",
			"téléphone : §", "móvil §", "тел. §", "電話: §", "手机：§", "전화 §", "telefono §", "celular §",
			"§ (mobile)", "§ (fax)", "§ - phone", "§ (office)", "§ is my number", "§ is her mobile number"), n)
		m.carry("owned", one(m, "my number is §", "his new number is §", "our office number: §", "mi numero es §",
			"meine neue Nummer ist §", "text me at §", "reach me on §", "please dial §", "Bitte anrufen: §",
			"appelez le §", "chiama §", "ligue para §"), m.fillForm(one(m, "nxx-xxx-xxx", "nx xx xx xx",
			"0nx xxxxxxx")))
		for range 2 {
			m.spare("named otherwise", one(m, "the order number is §", "my account number is §", "row §",
				"§ is the total",
				"§ (total)", "§ - sum", "box §", "il numero d'ordine §"), m.fillForm(one(m, "nxx xxx xxx",
				"nx xx xx xx", "nxx-xxx-xxx")))
		}
		m.spare("counted", one(m, "§ phones were sold", "§ mobile users", "§ calls a day", "she called § times"),
			m.fillForm(one(m, "n xxx xxx", "nx xxx xxx", "nxxxxxx")))
		m.spare("year", one(m, "the phone of §", "mobile since §", "call for papers §"), one(m, "1998-2004",
			"2011-2026"))
	}
}

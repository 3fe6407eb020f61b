package sample

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Text is one text with a name for it.
type Text struct {
	Name string
	Text []byte
}

// Hostile are texts of size bytes each that are made to be slow: every byte a
// place to look, candidates that fail at their end, escapes in escapes, runs
// without an end. Some of them do hold what must be masked.
func Hostile(size int) []Text {
	w := newWriter(0xbad)
	var all []Text
	repeated := units(w)
	for _, name := range slices.Sorted(maps.Keys(repeated)) {
		all = append(all, Text{name, repeat(repeated[name], size)})
	}
	return append(all,
		Text{"numbers without an end", []byte(w.of("0123456789", size))},
		Text{"numbers in groups", []byte(w.of("0123456789 -", size))},
		Text{"signs alone", []byte(w.of("@:=+-_.%\"'\\/ ", size))},
		Text{"base64 without an end", []byte(w.of(base58+"+/", size))},
		Text{"hexadecimal without an end", []byte(w.of(hexDigits, size))},
		Text{"bytes of any kind", w.noise(size)},
		Text{"words of recovery phrases", w.phrases(size)},
		Text{"escapes in escapes", nested(size)},
	)
}

func repeat(unit string, size int) []byte {
	return bytes.Repeat([]byte(unit), size/len(unit)+1)[:size]
}

// units are what is repeated.
func units(w *writer) map[string]string {
	return map[string]string{
		"cards that fail":         "4111 1111 1111 1112 5500-0000-0000-0005 378282246310006 ",
		"one card after another":  "4111111111111111 ",
		"cards grown together":    "4111111111111111",
		"keys of no provider":     "token a1b2-c3d4_e5f6g7h8i9j0 ",
		"@ after @":               "a@b@c.d@",
		"mail that fails":         "somebody.somewhere@nowhere ",
		"host after host":         "a.b.c.d.e.f.g.",
		"password= again":         "password=",
		"password: without value": "password: \n",
		"quotes that stay open":   `{"password": "`,
		"a colon at each byte":    ":",
		"an equals at each byte":  "=",
		"a dash at each byte":     "-",
		"a dot at each byte":      ".",
		"an escape at each byte":  `\`,
		"a quote at each byte":    `"`,
		"one letter":              "a",
		"nothing but blanks":      " ",
		"bytes that are no text":  "\xff\xfe\xc0\x80",
		"escaped letters":         `\u0070\u0061\u0073\u0073`,
		"escaped escapes":         `\\\\u0070\\u0061`,
		"percent":                 "%40%3D%3a%2B%25",
		"armour that stays open":  "-----BEGIN RSA " + "PRIVATE KEY-----\n",
		"armour of no key":        "-----BEGIN CERTIFICATE-----\n-----END ",
		"ends of armour":          "-----END PRIVATE KEY-----",
		"tokens that are short":   "ghp_abcdefghij012 glpat-abc xoxb-123 sk-abc AKIA0123456789ABC ",
		"prefixes alone":          "ghp_ghp_sk-sk-xoxb-xoxb-npm_hf_",
		"JWT that stays open":     "eyJ",
		"JWT of one part":         "eyJhbGciOiJIUzI1NiJ9 ",
		"JWT with many parts":     "eyJhbGciOiJIUzI1NiJ9.eyJ",
		"bearer of nothing":       "Bearer Bearer\t",
		"addresses with users":    "https://a:b:c:d/",
		"users without hosts":     "://user:pass",
		"account numbers":         "GB82 WEST 1234 5698 7654 33 DE89370400440532013001 ",
		"phones that fail":        "+1 (555) +49 30 12 +",
		"one digit, one blank":    "1 ",
		"ssn and its word":        "ssn 123-45-678 social 000-12-3456 ",
		"words for numbers":       "phone ssn tax passport account routing ",
		"wallets that fail":       "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3 ",
		"addresses of contracts":  "0x" + w.of(hexDigits, 40) + " ",
		"masks again":             "[secret redacted][email hidden]****-****-****-1111",
		"masks that stay open":    "[secret redacted[pii redacted[",
		"names of people":         "Mr Smith Mrs Jones Dr ",
		"elements":                "<password><password>",
		"brackets":                "password: [[[[((((",
	}
}

func (w *writer) noise(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(w.r.Uint32())
	}
	return b
}

// phrases are words of the list of BIP 39, in no order that has its checksum.
func (w *writer) phrases(size int) []byte {
	list := strings.Fields("abandon ability able about above absent absorb abstract absurd abuse access accident legal winner thank year wave sausage worth useful zoo")
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(pick(w, list) + " ")
	}
	return []byte(b.String()[:size])
}

// nested is JSON in a string of JSON, as deep as it fits, again and again.
func nested(size int) []byte {
	doc := `{"a":"b"}`
	for len(doc) < min(size, 64<<10) {
		doc = `{"a":` + quoted(doc) + `}`
	}
	var b bytes.Buffer
	for b.Len() < size {
		fmt.Fprintln(&b, doc)
	}
	return b.Bytes()[:size]
}

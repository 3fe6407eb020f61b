package sample

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Dense returns texts of size bytes each with a finding on nearly every line, one text for each form. The values are
// made from a seed and belong to no one.
func Dense(size int) []Text {
	w := newWriter(0xde45e)
	const (
		letters = "abcdefghijklmnopqrstuvwxyz"
		digits  = "0123456789"
		base64s = base58 + "+/"
	)
	name := func() string { return w.of(letters, 3+w.r.IntN(6)) }
	password := func() string { return w.of(letters, 4) + w.of(digits, 3) + w.of("!#%+", 1) + w.of(base58, 6) }
	lines := []struct {
		name string
		line func() string
	}{
		{"addresses", func() string { return name() + "." + name() + "@" + name() + ".com" }},
		{"cards", func() string { return "card " + w.makeCard() }},
		{"phones", func() string {
			return fmt.Sprintf("call +1 %d %d %s", 200+w.r.IntN(700), 200+w.r.IntN(700), w.of(digits, 4))
		}},
		{"social security numbers", func() string {
			return fmt.Sprintf("ssn %03d-%02d-%04d", 100+w.r.IntN(500), 10+w.r.IntN(80), 1000+w.r.IntN(8000))
		}},
		{"tokens by prefix", func() string { return "ghp" + "_" + w.of(base58, 36) }},
		{"JSON Web Tokens", func() string {
			claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"` + w.uuid() + `"}`))
			return "eyJhbGciOiJIUzI1NiJ9." + claims + "." + w.of(base58, 43)
		}},
		{"settings", func() string { return strings.ToUpper(name()) + "_PASSWORD=" + password() }},
		{"JSON members", func() string { return `{"user":"` + name() + `","password":"` + password() + `"}` }},
		{"source code", func() string { return `	password := "` + password() + `"` }},
		{"YAML", func() string { return "  api_key: " + w.of(base58, 32) }},
		{"URLs", func() string { return "https://" + name() + ":" + password()[:7] + "@" + name() + ".com/" + name() }},
		{"connection strings", func() string {
			return "postgres://" + name() + ":" + w.of(base58, 12) + "@" + name() + ":5432/" + name()
		}},
		{"bearer headers", func() string { return "Authorization: Bearer " + w.of(base58, 40) }},
		{"sentences", func() string { return "The password is " + password() + "." }},
		{"private keys", func() string {
			var b strings.Builder
			b.WriteString("-----BEGIN " + "PRIVATE KEY-----\n")
			for range 8 {
				b.WriteString(w.of(base64s, 64) + "\n")
			}
			return b.String() + "-----END " + "PRIVATE KEY-----"
		}},
	}
	var all []Text
	var mixed strings.Builder
	for _, l := range lines {
		var b strings.Builder
		for b.Len() < size {
			b.WriteString(l.line() + "\n")
		}
		all = append(all, Text{l.name, []byte(b.String()[:size])})
	}
	for mixed.Len() < size {
		mixed.WriteString(pick(w, lines).line() + "\n")
	}
	return append(all, Text{"all of them", []byte(mixed.String()[:size])})
}

// card returns 16 digits of an issuer in groups, with a right check digit.
func (w *writer) makeCard() string {
	d := []byte("4" + w.of("0123456789", 14))
	sum := 0
	for i, c := range d {
		n := int(c - '0')
		if i%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	d = append(d, byte('0'+(10-sum%10)%10))
	return string(d[:4]) + " " + string(d[4:8]) + " " + string(d[8:12]) + " " + string(d[12:])
}

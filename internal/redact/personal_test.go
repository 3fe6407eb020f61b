package redact

import (
	"bytes"
	"strings"
	"testing"
)

// TestPassPersonalFindsSecretsOnly: an engine that passes personal data leaves it in every kind of message, and masks
// the secrets next to it.
func TestPassPersonalFindsSecretsOnly(t *testing.T) {
	all, err := New(Options{Masks: Egress})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Masks: Egress, PassPersonal: true})
	if err != nil {
		t.Fatal(err)
	}
	const mail, card, token = "ann.lee@example.com", "4111 1111 1111 1111",
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	for _, m := range []struct{ kind, body string }{
		{"text/plain", "write to " + mail + " about the card " + card + ", with " + token},
		{"application/json", `{"email": "` + mail + `", "first_name": "Ann", "passport": "C01X00T47",
		"card_number": ` +
			`4111111111111111, "card": "4111111111111111", "k": "` + token + `"}`},
		{"application/x-www-form-urlencoded", "email=" + mail + "&passport=C01X00T47&k=" + token},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"passport\"\r\n\r\n" +
			"C01X00T47\r\n--b\r\nContent-Disposition: form-data; name=\"k\"\r\n\r\n" + token + "\r\n--b--\r\n"},
	} {
		r, err := e.Body(m.kind, []byte(m.body))
		if want := strings.ReplaceAll(m.body, token, "[secret]"); err != nil || r.PII() ||
			strings.ReplaceAll(string(r.Out), "%5Bsecret%5D", "[secret]") != want {
			t.Errorf("%s: %q, %v, %v", m.kind, r.Out, r.Findings, err)
		}
		if r, err := all.Body(m.kind, []byte(m.body)); err != nil || !r.PII() {
			t.Errorf("%s has no personal data: %v, %v", m.kind, r.Findings, err)
		}
		var out bytes.Buffer
		s := e.Stream(&out)
		for _, b := range []byte(m.body) {
			if _, err := s.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil || out.String() != string(e.Text([]byte(m.body)).Out) {
			t.Errorf("%s as a stream: %q, %v", m.kind, &out, err)
		}
	}
	if u, list := e.URL("https://a.example/?email=" + mail + "&passport=C01X00T47&k=" + token); len(list) != 1 ||
		!strings.Contains(u, mail+"&passport=C01X00T47") {
		t.Errorf("a URL: %s, %v", u, list)
	}
	h := map[string][]string{"X-Note": {mail}, "Passport": {"C01X00T47"}, "X-Key": {token}}
	if _, list := e.Header(h); len(list) != 1 {
		t.Errorf("a header: %v", list)
	}
}

// TestCardsOfTwelveDigitsAndOtherIssuers: a word has to announce a card of twelve digits, and the word "card" one of
// no known issuer.
func TestCardsOfTwelveDigitsAndOtherIssuers(t *testing.T) {
	e := newEngine(t)
	for text, want := range map[string]bool{
		"card 67596482143§": true, "my card, 6759 6482 143§, is lost": true, "paid with 06048217334§": true,
		"card 333700000000000§": true, "card 311200000000000§": true, // JCB
		"the credit card 320000000000000§": true, "the credit card 3200-0000-0000-000§": false,
		"67596482143§": false, "order 67596482143§": false, "320000000000000§": false,
		"paid with 320000000000000§": false,
		"card 999900000000000§":      false, "card 3200000000000§": false,
	} {
		digits := strings.Map(func(c rune) rune {
			if c >= '0' && c <= '9' {
				return c
			}
			return -1
		}, text)
		wrong := strings.ReplaceAll(text, "§", string('0'+(luhnDigit(digits)[0]-'0'+1)%10))
		if r := e.Text([]byte(wrong)); len(r.Findings) > 0 {
			t.Errorf("%q: %v", wrong, r.Findings)
		}
		text = strings.ReplaceAll(text, "§", luhnDigit(digits))
		r := e.Text([]byte(text))
		if got := len(r.Findings) == 1 && r.Findings[0].Rule == "card"; got != want ||
			!want && len(r.Findings) > 0 {
			t.Errorf("%q: %v", text, r.Findings)
		}
	}
}

// TestAccountNumbersAreNotInUUIDs: a dash after eight places is a UUID's, also where the check of an account number is
// right by chance.
func TestAccountNumbersAreNotInUUIDs(t *testing.T) {
	e := newEngine(t)
	for text, want := range map[string]bool{
		"ee805b1d-3769-406e-9e92-ffc948d60b40": false, "be421f2b-7f3c-4239-ae56-557a0caccf07": false,
		"BE68-5390-0754-7034": true, "BE68 5390 0754 7034": true, "BE68539007547034": true,
		"BE68-5390-0754-7034-11": false,
	} {
		if r := e.Text([]byte("got " + text + " today")); (len(r.Findings) == 1) != want {
			t.Errorf("%q: %v", text, r.Findings)
		}
	}
}

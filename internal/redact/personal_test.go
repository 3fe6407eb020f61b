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
	const mail, card, token = "ann.lee@example.com", "4111 1111 1111 1111", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	for _, m := range []struct{ kind, body string }{
		{"text/plain", "write to " + mail + " about the card " + card + ", with " + token},
		{"application/json", `{"email": "` + mail + `", "first_name": "Ann", "passport": "C01X00T47", "card_number": ` +
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

package redact

import (
	base32std "encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

// encoders are the ways in which text or bytes are written into a string.
var encoders = map[string]func([]byte) string{
	"base64": base64.StdEncoding.EncodeToString, "base64url": base64.RawURLEncoding.EncodeToString,
	"hex":    hex.EncodeToString,
	"HEX":    func(b []byte) string { return strings.ToUpper(hex.EncodeToString(b)) },
	"base32": base32std.StdEncoding.EncodeToString,
	"base32 of small letters": func(b []byte) string {
		return strings.ToLower(base32std.StdEncoding.WithPadding(base32std.NoPadding).EncodeToString(b))
	},
}

// opensTo checks that a body, a record, a text and a stream mask secret in a string that holds it.
func opensTo(t *testing.T, e *Engine, name, text, secret string) {
	t.Helper()
	doc, err := json.Marshal(map[string]any{"a": text, "n": 1})
	if err != nil {
		t.Fatal(err)
	}
	core := secret[8 : len(secret)-8]
	if r, err := e.JSON(doc); err != nil || strings.Contains(string(r.Out), core) || !r.Found() {
		t.Errorf("%s: record %.300s, %v", name, r.Out, err)
	}
	if r, err := e.Body("application/json", doc); err != nil || strings.Contains(string(r.Out), core) || !r.Found() {
		t.Errorf("%s: body %.300s, %v", name, r.Out, err)
	}
	r := e.Text([]byte(text))
	if strings.Contains(string(r.Out), core) || !r.Found() {
		t.Errorf("%s: text %.300s", name, r.Out)
	}
	agrees(t, e, r, []byte(text[:len(text)/2]), []byte(text[len(text)/2:]))
}

// What is masked in text is masked in every encoding, behind bytes that are not
// text, where letters touch it, and two levels deep.
func TestEncodedFindingsAreMasked(t *testing.T) {
	e := newEngine(t, "Tr0ub4dor&3-horse")
	noise := strings.Repeat("\x01", 32)
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x01\x00\x08\x06\x00\x00\x00\x5c\x72\xa8\x66"
	jpeg := "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xdb\x00\x43\x00"
	for _, found := range []string{ghp, akia, "password=hunter2-and-more", "mail bob.smith@example.com now",
		"card 4111 1111 1111 1111", "Tr0ub4dor&3-horse", "https://u:hunter2@h.example.com/x",
		"xoxb-123456789012-abcdefGHIJ"} {
		for name, encode := range encoders {
			for before, head := range map[string]string{"": "", "noise": noise, "one byte": "\xfe", "PNG": png,
				"JPEG": jpeg, "NUL": "\x00\x00\x00", "long noise": strings.Repeat("\x80\x01\xff", 3000)} {
				personal := strings.HasPrefix(found, "mail") || strings.HasPrefix(found, "card")
				if personal && (before == "PNG" || before == "JPEG") {
					continue // pictures name their makers
				}
				for _, tail := range []string{"", "\x00\x01\x02", noise} {
					code := encode([]byte(head + found + tail))
					for _, c := range []string{"§", "x: §.", "key=§", "§ §"} {
						opensTo(t, e, found+" in "+name+" behind "+before, strings.ReplaceAll(c, "§", code), code)
					}
				}
			}
			code := strings.TrimRight(encode([]byte(found+" end")), "=")
			for _, c := range []string{"x§", "token§", "ABC§", "fade§", "0x§", "Ab§", "§yz", "§A", "/§/", "-§_",
				"x§x", "hexed§ff", "\\x§"} {
				opensTo(t, e, found+" in "+name+" in "+c, strings.ReplaceAll(c, "§", code), code)
			}
			for second, encodeAgain := range encoders {
				code := encodeAgain([]byte(noise + encode([]byte(noise+found)) + noise))
				opensTo(t, e, found+" in "+name+" in "+second, "v "+code, code)
			}
		}
	}
}

// A registered secret is found in base32 wherever it begins, in a text as well.
func TestRegisteredSecretsAreFoundInBase32(t *testing.T) {
	const secret = "Tr0ub4dor&3-horse"
	e := newEngine(t, secret)
	for shift := range 12 {
		code := base32std.StdEncoding.EncodeToString([]byte(strings.Repeat("\xf3", shift) + secret +
			strings.Repeat("z", 7)))
		for _, text := range []string{code, strings.ToLower(code), "x" + code + "y", "https://h/" + code + "/x"} {
			r := e.Text([]byte(text))
			if len(r.Findings) == 0 || r.Findings[0].Rule != "secret.literal" ||
				strings.Contains(strings.ToUpper(string(r.Out)), code[(shift*8+4)/5:][:20]) {
				t.Errorf("%d bytes before: %q by %v", shift, r.Out, r.Rules())
			}
			agrees(t, e, r, bytewise([]byte(text))...)
		}
	}
}

// A run of base64 is masked without the words of the path that it is in: the host of a URL
// stays one.
func TestEncodedFindingLeavesItsPath(t *testing.T) {
	e := newEngine(t)
	code := base64.RawURLEncoding.EncodeToString([]byte(ghp))
	for _, text := range []string{"https://h.test/§", "https://h.test/§==", "https://h.test/v1/items/§/info",
		"https://h.test/v1?x=§", "/srv/data/§/x.txt", "../keys/§"} {
		doc := []byte(`{"a":"` + strings.ReplaceAll(text, "§", code) + `"}`)
		want := `{"a":"` + strings.TrimSuffix(strings.ReplaceAll(text, "§", "[secret redacted]"), "==") + `"}`
		if r, err := e.JSON(doc); err != nil || string(r.Out) != want {
			t.Errorf("JSON(%s) = %s, %v, want %s", doc, r.Out, err, want)
		}
	}
}

// The first line of a key that is only named is kept in base64 as it is in text.
func TestNamedArmourInBase64Stays(t *testing.T) {
	e := newEngine(t)
	for _, kind := range []string{"RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		for _, end := range []string{"", "\n", "\r\n"} {
			text := base64.StdEncoding.EncodeToString([]byte("-----BEGIN " + kind + "-----" + end))
			if r := e.Text([]byte("x: " + text + "\n")); r.Found() {
				t.Errorf("Text of %s%q = %s", kind, end, r.Out)
			}
			body := base64.StdEncoding.EncodeToString([]byte("-----BEGIN " + kind + "-----\n" + keyLine))
			if r := e.Text([]byte("x: " + body + "\n")); !r.Found() {
				t.Errorf("Text keeps the base64 of a key: %s", r.Out)
			}
		}
	}
}

// Examples behind a scheme stay; in a header the same word is masked.
func TestExamplesOfBearerStay(t *testing.T) {
	e := newEngine(t)
	for _, v := range []string{"YOUR_TOKEN", "YOUR_ACCESS_TOKEN_GOES_HERE", "abc123", "xyz789token", "eyJhbGciOi...",
		"access_token"} {
		text := `{"description":"The token to send, for example 'Bearer ` + v + `'"}`
		if r := e.Text([]byte(text)); r.Found() {
			t.Errorf("Text(%s) = %s", text, r.Out)
		}
	}
	for _, text := range []string{"Authorization: Bearer abc.def", "Bearer q8ZtB2mWc0LrYv7n",
		"header = 'Authorization: Bearer xyz789token'"} {
		if r := e.Text([]byte(text)); !r.Found() {
			t.Errorf("Text keeps %s", text)
		}
	}
}

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// What the ledger takes is opened as a body is: a key behind base64, escapes or
// characters without width is masked with what it is wrapped in, and the rest
// of the string stays.
func TestSealOpensStrings(t *testing.T) {
	e := newEngine(t)
	text := "the key is " + akia + ", use it well"
	std, url := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	each := func(format string) string {
		var s strings.Builder
		for _, c := range []byte(text) {
			fmt.Fprintf(&s, format, c)
		}
		return s.String()
	}
	var wide []byte
	for _, u := range utf16.Encode([]rune(text)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for name, s := range map[string]string{
		"base64": std([]byte(text)), "base64 for URLs": url([]byte(text)), "hexadecimal": hex.EncodeToString([]byte(text)),
		"base64 in base64": std([]byte("see " + std([]byte(text)))), "four times": std([]byte(std([]byte(std([]byte(std([]byte(text)))))))),
		"JSON in base64": std([]byte(`{"a":{"password":"Tr0ub4dor&3x"}}`)), "behind a word": "dataX" + std([]byte(text)),
		"UTF-16 in base64": std(wide), "a key in base64": std([]byte(pem)),
		"references": each("&#%d;"), "escapes": each(`\x%02x`), "percent": each("%%%02X"), "without width": each("%c\u200b"),
		"base64 in percent": "%41" + strings.ReplaceAll(url([]byte(text)), "", "\u2060"),
		"JSON in a string":  `{"b":"` + std([]byte(text)) + `"}`,
	} {
		for _, form := range []string{`{"a":["before %s, behind"]}`, `{"before %s, behind":1}`} {
			q, err := json.Marshal("before " + s + ", behind")
			if err != nil {
				t.Fatal(err)
			}
			doc := []byte(strings.Replace(form, `"before %s, behind"`, string(q), 1))
			rec, err := e.Seal(doc)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out := rec.Bytes()
			if bytes.Contains(out, []byte(s)) || bytes.Contains(out, []byte(akia)) || !bytes.Contains(out, []byte("before ")) || !bytes.Contains(out, []byte(", behind")) || !bytes.Contains(out, []byte("redacted]")) {
				t.Errorf("%s: Seal(%.200s) = %.300s", name, doc, out)
			}
			if again, err := e.Seal(out); err != nil || !bytes.Equal(again.Bytes(), out) {
				t.Errorf("%s: a second time: %.300s, %v", name, again.Bytes(), err)
			}
			r, err := e.JSON(doc)
			if err != nil || !bytes.Equal(r.Out, out) || !r.Found() {
				t.Errorf("%s: JSON gives %.300s, %v", name, r.Out, err)
			}
		}
	}
}

// What is wrapped deeper than is read is masked, not refused and not shown;
// what only looks wrapped, and text without a finding, stays.
func TestSealMasksWhatItCannotOpen(t *testing.T) {
	e := newEngine(t)
	deep := "the key is " + akia + ", use it well, and often, for it is yours"
	for range 4 + 2 {
		deep = base64.StdEncoding.EncodeToString([]byte(deep))
	}
	rec, err := e.Seal([]byte(`{"a":"x ` + deep + ` y"}`))
	if err != nil || string(rec.Bytes()) != `{"a":"x `+mask.Secret+` y"}` {
		t.Errorf("%.200s, %v", rec.Bytes(), err)
	}
	picture := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), bytes.Repeat([]byte{0, 200, 3, 250}, 64)...)
	for name, s := range map[string]string{
		"code": base64.StdEncoding.EncodeToString(sample.Code(1, 2000)), "a hash": strings.Repeat("9f86d081", 8), "an id": "toolu_01A09q90qw90lq917835lq9",
		"a picture": base64.StdEncoding.EncodeToString(picture), "gzip": base64.StdEncoding.EncodeToString([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00")),
		"a path": "internal/redact/labelled/numbers/and/many/more", "signs": "100% &amp; more \\ and \\n, 50%2",
	} {
		q, _ := json.Marshal(map[string]string{"a": s}) // a string
		if rec, err := e.Seal(q); err != nil || !bytes.Equal(rec.Bytes(), q) {
			t.Errorf("%s: %.200s became %.200s, %v", name, q, rec.Bytes(), err)
		}
	}
}

// What a person signed is not opened: masking in it would unmake the signature.
// What stands beside it is, and so is the same name elsewhere.
func TestSealKeepsWhatIsSigned(t *testing.T) {
	e := newEngine(t)
	said := base64.StdEncoding.EncodeToString([]byte(`{"note":"card 4111111111111111, key ` + akia + `"}`))
	doc := `{"data":{"statement":"` + said + `","other":"` + said + `","in":{"statement":"` + said + `"}},"statement":"` + said + `"}`
	rec, err := e.Seal([]byte(doc), "id", "data.statement", "data.signature")
	if err != nil {
		t.Fatal(err)
	}
	out := string(rec.Bytes())
	if !strings.Contains(out, `{"data":{"statement":"`+said+`"`) || strings.Count(out, said) != 1 {
		t.Errorf("%s", out)
	}
}

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

func registered(t testing.TB, texts ...string) *Engine {
	t.Helper()
	var lits []holdfast.Secret
	for _, s := range texts {
		lits = append(lits, holdfast.NewSecret(s))
	}
	e, err := New(Options{Literals: lits})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// encoded is text as other writers write it, by name: none of them is ours.
func encoded(text string) map[string]string {
	out := map[string]string{
		"plain": text, "hex": hex.EncodeToString([]byte(text)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(text))),
		"query": url.QueryEscape(text), "path": url.PathEscape(text), "twice": url.QueryEscape(url.QueryEscape(text)),
		"query lower": lowered(url.QueryEscape(text)), "html": html.EscapeString(text),
	}
	for shift := range 3 {
		in := []byte(strings.Repeat("~", shift) + text + "!!")
		out[fmt.Sprint("base64+", shift)] = base64.StdEncoding.EncodeToString(in)
		out[fmt.Sprint("base64url+", shift)] = base64.RawURLEncoding.EncodeToString(in)
		out[fmt.Sprint("base64 in a URL+", shift)] = url.QueryEscape(base64.StdEncoding.EncodeToString(in))
	}
	q, _ := json.Marshal(text)
	out["JSON"] = string(q)
	twice, _ := json.Marshal(string(q))
	out["JSON in JSON"] = string(twice)
	le, be := &strings.Builder{}, &strings.Builder{}
	for _, u := range utf16.Encode([]rune(text)) {
		le.Write([]byte{byte(u), byte(u >> 8)})
		be.Write([]byte{byte(u >> 8), byte(u)})
	}
	out["UTF-16LE"], out["UTF-16BE"] = le.String(), be.String()
	out["base64 of UTF-16LE"] = base64.StdEncoding.EncodeToString([]byte(le.String()))
	every := &strings.Builder{}
	for _, c := range []byte(text) {
		fmt.Fprintf(every, "%%%02X", c)
	}
	out["every byte"], out["every byte, lower"] = every.String(), strings.ToLower(every.String())
	var ascii strings.Builder
	for _, r := range string(q[1 : len(q)-1]) {
		if r < 0x80 {
			ascii.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&ascii, `\u%04x`, u)
		}
	}
	out["JSON in ASCII"] = ascii.String()
	return out
}

func lowered(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			b[i+1], b[i+2] = char.ToLower(b[i+1]), char.ToLower(b[i+2])
		}
	}
	return string(b)
}

func TestRegisteredSecretsAreFoundInEveryEncoding(t *testing.T) {
	for _, secret := range []string{
		"correct horse", `qu"ote\back/slash+plus&<tag>'`, "grüße-Ωmega-😀", "line one\nline two\ttab", "a%41b=c?d#e", "plainword9",
		strings.Repeat("long secret / ", 300),
	} {
		e := registered(t, secret)
		for name, form := range encoded(secret) {
			text := []byte("before " + form + " after")
			r := e.Text(text)
			if !r.Found() {
				t.Errorf("%s of %.40q is not found in %.200q", name, secret, text)
				continue
			}
			if again := e.Text(r.Out); again.Found() {
				t.Errorf("%s: %q, then %q", name, r.Out, again.Out)
			}
			if left := len(r.Out) - len("before ") - len(mask.Secret) - len(" after"); left > 16 {
				t.Errorf("%s of %.40q leaves %d bytes: %.200q", name, secret, left, r.Out)
			}
		}
		if r := e.Text([]byte("nothing of it stands here")); r.Found() {
			t.Errorf("%.40q is found where it is not: %q", secret, r.Out)
		}
	}
}

// A registered secret that reads like a mask's words is masked, and a mask is
// not taken for it.
func TestRegisteredSecretsMayReadLikeMasks(t *testing.T) {
	for _, secret := range []string{"secret", "redacted", "hidden", "[secret redacted]", "****", "email", "1111"} {
		for _, text := range []string{secret, "a " + secret + " b", "x" + secret + secret + "y", "mail ann@example.com, card 4111111111111111"} {
			r := registered(t, secret).Text([]byte(text))
			if again := registered(t, secret).Text(r.Out); again.Found() {
				t.Errorf("%q: %q, %q, %q", secret, text, r.Out, again.Out)
			}
			if text == "a "+secret+" b" && secret != mask.Secret && string(r.Out) != "a "+mask.Secret+" b" {
				t.Errorf("%q in %q: %q", secret, text, r.Out)
			}
		}
	}
}

func TestTooManySecretsAreRefused(t *testing.T) {
	many := make([]holdfast.Secret, 1024+1)
	for i := range many {
		many[i] = holdfast.NewSecret(fmt.Sprintf("secret-%05d", i))
	}
	large := make([]holdfast.Secret, 5)
	for i := range large {
		large[i] = holdfast.NewSecret(strings.Repeat(fmt.Sprint(i), 65_536))
	}
	for name, l := range map[string][]holdfast.Secret{"too many": many, "too much": large, "too long": {holdfast.NewSecret(strings.Repeat("x", 65_536+1))},
		"too short": {holdfast.NewSecret("abc")}, "empty": {{}}} {
		var e *holdfast.Error
		if _, err := New(Options{Literals: l}); !errors.As(err, &e) || e.Kind != holdfast.KindValue || strings.Contains(e.Error(), "secret-0") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

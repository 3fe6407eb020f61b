package redact

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

const tenantKey = "0123456789abcdef"

func newStyled(t testing.TB, m mask.Masks, key string) *Engine {
	t.Helper()
	e, err := New(Options{Masks: m, Key: holdfast.NewSecret(key)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func styles(t testing.TB) map[string]*Engine {
	return map[string]*Engine{
		"ledger": newStyled(t, mask.Ledger, ""), "egress": newStyled(t, mask.Egress, ""),
		"pseudonyms": newStyled(t, mask.Pseudonyms, tenantKey),
	}
}

func TestMasksOfEachStyle(t *testing.T) {
	for _, c := range []struct{ text, ledger, egress, word string }{
		{"mail ann@example.com now", "mail [email hidden] now", "mail [email] now", "email"},
		{"card 4111 1111 1111 1111 now", "card ****-****-****-1111 now", "card ****-****-****-1111 now", "card"},
		{"call +44 20 7946 0958 now", "call [pii redacted] now", "call [phone] now", "phone"},
		{"ssn 536-22-1234 now", "ssn [pii redacted] now", "ssn [pii] now", "pii"},
		{"date of birth: 1980-01-02", "date of birth: [pii redacted]", "date of birth: [pii]", "pii"},
		{"key " + ghp + " now", "key [secret redacted] now", "key [secret] now", "secret"},
	} {
		if got := newStyled(t, mask.Ledger, "").Text([]byte(c.text)); string(got.Out) != c.ledger {
			t.Errorf("ledger: %q became %q, want %q", c.text, got.Out, c.ledger)
		}
		if got := newStyled(t, mask.Egress, "").Text([]byte(c.text)); string(got.Out) != c.egress {
			t.Errorf("egress: %q became %q, want %q", c.text, got.Out, c.egress)
		}
		got := string(newStyled(t, mask.Pseudonyms, tenantKey).Text([]byte(c.text)).Out)
		_, rest, _ := strings.Cut(got, "<"+c.word+":")
		if len(rest) < 9 || rest[8] != '>' {
			t.Errorf("pseudonyms: %q became %q", c.text, got)
		}
	}
}

// A pseudonym is a known answer of HMAC-SHA256 over value, NUL, sort:
// printf 'ann@example.com\0email' | openssl dgst -sha256 -hmac 0123456789abcdef
func TestPseudonymsAreStableUnderOneKeyAndDifferUnderAnother(t *testing.T) {
	a, b := newStyled(t, mask.Pseudonyms, tenantKey), newStyled(t, mask.Pseudonyms, "fedcba9876543210")
	text := []byte("from ann@example.com to bob@example.com, cc ann@example.com")
	one, other := string(a.Text(text).Out), string(b.Text(text).Out)
	f := strings.FieldsFunc(one, func(r rune) bool { return r == ' ' || r == ',' })
	if f[1] != f[5] || f[1] == f[3] || f[1] != "<email:3157704f>" {
		t.Errorf("under one key: %s", one)
	}
	if one == other {
		t.Errorf("two keys give the same: %s", one)
	}
	doc, err := a.JSON([]byte(`{"to":"ann@example.com","password":"hunter22","pin":"ann@example.c\u006fm"}`))
	if err != nil || strings.Count(string(doc.Out), f[1]) != 2 || !strings.Contains(string(doc.Out), `"password":"<secret:`) {
		t.Errorf("in JSON: %s, %v", doc.Out, err)
	}
}

// Whichever style came first, a second redaction of any style changes nothing.
func TestRedactingTwiceInAnyStyleChangesNothing(t *testing.T) {
	all := styles(t)
	texts := []string{
		"ghp: " + ghp + ": x", "password: " + ghp, `{"password":"hunter22","a":["4111111111111111"]}`, `{"` + ghp + `":"v"}`,
		`{"name":"` + ghp + `","value":"v"}`, "<password>hunter22</password>", "api_key=[" + ghp + "]", "ann@example.com:" + ghp + "@b",
		`{"ann@example.com":1,"bob@example.com":2}`, "postgres://u:hunter22@db.example.com/x", "+44 20 7946 0958: 12345678",
		`{"a":"{\"token\":\"hunter22\"}"}`, "token=ann@example.com", "secret = '" + ghp + "'", "Authorization: Bearer " + ghp,
	}
	for _, c := range mustMask {
		texts = append(texts, c.text, fmt.Sprintf("{%q:%q}", c.text, c.text), "x="+c.text+";")
	}
	for first, a := range all {
		for _, text := range texts {
			one := a.Text([]byte(text)).Out
			doc, err := a.JSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for second, b := range all {
				if two := b.Text(one); two.Found() {
					t.Errorf("%s then %s: %q, %q, %q", first, second, text, one, two.Out)
				}
				if two, err := b.JSON(doc.Out); err != nil || two.Found() {
					t.Errorf("%s then %s of JSON: %q, %q, %q, %v", first, second, text, doc.Out, two.Out, err)
				}
			}
		}
	}
}

// What only looks like a mask is not one.
func TestWhatOnlyLooksLikeAMaskIsRead(t *testing.T) {
	for _, s := range []string{"<email:7F3A91C2>", "<email:7f3a91c>", "<email:7f3a91c2", "<mail:7f3a91c2>", "[secret ]", "[phone", "<:7f3a91c2>", "****-****-****-12345", ""} {
		if n := mask.Len([]byte(s)); n != 0 {
			t.Errorf("maskLen(%q) = %d", s, n)
		}
	}
	e := newStyled(t, mask.Pseudonyms, tenantKey)
	if out := e.Text([]byte("password=<secret:7f3a91c2>hunter22")).Out; strings.Contains(string(out), "hunter22") {
		t.Errorf("what follows a mask is shown: %s", out)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no key":    {Masks: mask.Pseudonyms},
		"short key": {Masks: mask.Pseudonyms, Key: holdfast.NewSecret("0123456789abcde")},
		"style":     {Masks: 3},
	} {
		var e *holdfast.Error
		if _, err := New(o); !errors.As(err, &e) || e.Kind != holdfast.KindValue || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A text that comes in pieces gets the masks of the whole, in every style: a
// pseudonym of what is longer than is held, too.
func TestStreamWritesTheMasksOfTheWhole(t *testing.T) {
	var text []byte
	for _, c := range mustMask {
		text = append(append(text, c.text...), "\nand so on, in words\n"...)
	}
	text = append(text, "-----BEGIN PRIVATE KEY-----\n"+strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n", 400)+"-----END PRIVATE KEY-----\n"...)
	text = append(text, "password = \""+strings.Repeat("long ", 4_000)+"\"\nend\n"...)
	for name, e := range styles(t) {
		want := string(e.Text(text).Out)
		for _, size := range []int{7, 4096, 10_000} {
			var out bytes.Buffer
			s := e.Stream(&out)
			for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if _, err := s.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil || out.String() != want {
				t.Errorf("%s in pieces of %d differs from the whole: %v", name, size, err)
			}
		}
	}
}

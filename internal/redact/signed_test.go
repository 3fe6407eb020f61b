package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestSealKeepsWhatWasSigned: signatures and signed documents stay whole, though
// by chance there is what looks like personal data in the base64 of some; other
// text in their place is read, and a registered literal is masked in them too.
func TestSealKeepsWhatWasSigned(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	seal := func(e *Engine, key, s string) string {
		t.Helper()
		rec, err := e.Seal(fmt.Appendf(nil, `{"data":{%q:%q}}`, key, s), "data.signature", "data.statement")
		if err != nil {
			t.Fatal(err)
		}
		_, s, _ = strings.Cut(string(rec.Bytes()), `:{"`+key+`":"`)
		return strings.TrimSuffix(s, `"}}`)
	}
	by := []string{ // found at random: each has something that a detector takes
		"ATBB5MNuy7eCiN50vb2OfTm6icv5hZ0w83+PmSIx8FJcqFT9CcX20dKTjljRJu047cWEurA1deEq9oGpqoefww==",
		"sM53h31TMIsSle4MOWOsY5bLAiR/q3+xQQt4BfF2xGYaf5miX0KZJRFk3qZEWQOLtzcvPr8anSChInYs/v606w==",
	}
	for _, s := range by {
		if seal(e, "other", s) == s {
			t.Errorf("no detector takes anything in %s", s)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		raw := make([]byte, 64)
		for i := range raw {
			raw[i] = byte(rnd.Uint32())
		}
		by = append(by, base64.StdEncoding.EncodeToString(raw))
	}
	for i, s := range by {
		if got := seal(e, "signature", s); got != s {
			t.Errorf("signature %s became %s", s, got)
		}
		s = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"act":"approve","nonce":%q,"n":%d}`, s, i))
		if got := seal(e, "statement", s); got != s {
			t.Errorf("statement %s became %s", s, got)
		}
	}
	for _, s := range []string{"AKIA" + "IOSFODNN7EXAMPLQ", by[1][:84], "mail carol@example.org " + by[0]} {
		if got := seal(e, "signature", s); got == s {
			t.Errorf("%s was passed", s)
		}
	}
	secret := by[1][10:40]
	if e, err = New(Options{Literals: []holdfast.Secret{holdfast.NewSecret(secret)}}); err != nil {
		t.Fatal(err)
	}
	if got := seal(e, "signature", by[1]); strings.Contains(got, secret) {
		t.Errorf("a registered literal is in %s", got)
	}
}

// TestSealKeepsHashes: a SHA-256 at an exempt path stays whole, though decoded it shows what looks like an
// email address; at another path, or with other text around it, it is read.
func TestSealKeepsHashes(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	hash := hex.EncodeToString([]byte("  carol.smith@mail.example.org  "))
	seal := func(key, s string) string {
		t.Helper()
		rec, err := e.Seal(fmt.Appendf(nil, `{"data":{%q:%q}}`, key, s), "data.preview_hash")
		if err != nil {
			t.Fatal(err)
		}
		return string(rec.Bytes())
	}
	if got := seal("preview_hash", hash); !strings.Contains(got, hash) {
		t.Errorf("the hash became %s", got)
	}
	for key, s := range map[string]string{"other": hash, "preview_hash": "mail carol.smith@mail.example.org"} {
		if got := seal(key, s); strings.Contains(got, s) {
			t.Errorf("%s: %s was passed", key, s)
		}
	}
}

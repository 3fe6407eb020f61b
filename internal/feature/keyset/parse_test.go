package keyset

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

func TestParseRefuses(t *testing.T) {
	for name, doc := range map[string]string{
		"empty": "", "null": "null", "array": "[]", "no keys": "{}", "keys null": `{"keys":null}`, "keys object": `{"keys":{}}`, "case": `{"Keys":[]}`,
		"keys twice": `{"keys":[],"keys":[]}`, "cut": `{"keys":[`, "two": `{"keys":[]}{"keys":[]}`, "NUL": "{\"keys\":[]}\x00", "UTF-8": "{\"keys\":[],\"x\":\"\xff\"}",
		"deep":              `{"keys":` + strings.Repeat("[", 100_000),
		"name twice inside": `{"keys":[{"kty":"OKP","kty":"oct"}]}`,
		"many":              `{"keys":[` + strings.TrimSuffix(strings.Repeat("{},", maxKeys+1), ",") + `]}`,
	} {
		if k, err := parse([]byte(doc)); err == nil {
			t.Errorf("%s: accepted as %v", name, k)
		}
	}
}

func TestParseIgnoresWithReason(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := string(edJWK(t, 1, "good"))
	with := func(member string) string {
		return strings.TrimSuffix(string(edJWK(t, 2, "bad")), "}") + "," + member + "}"
	}
	coord := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"
	for name, bad := range map[string]string{
		"symmetric":      `{"kty":"oct","k":"c2VjcmV0","kid":"bad","alg":"HS256"}`,
		"symmetric d":    `{"kty":"oct","k":"c2VjcmV0","d":"x","kid":"bad"}`,
		"RSA 1024":       string(jwk(t, &weak.PublicKey, "bad", false)),
		"P-384":          string(jwk(t, &p384.PublicKey, "bad", false)),
		"X25519":         string(jwk(t, x.PublicKey(), "bad", false)),
		"secp256k1":      `{"kty":"EC","crv":"secp256k1","x":"` + coord + `","y":"` + coord + `","kid":"bad"}`,
		"off the curve":  `{"kty":"EC","crv":"P-256","x":"` + coord + `","y":"` + coord + `","kid":"bad"}`,
		"long x":         `{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("_", 90) + `","y":"` + coord + `","kid":"bad"}`,
		"x of 33 bytes":  `{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("_", 44) + `","y":"` + coord + `","kid":"bad"}`,
		"endless x":      `{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("_", 9000) + `","y":"` + coord + `","kid":"bad"}`,
		"endless n":      `{"kty":"RSA","n":"` + strings.Repeat("_", 9000) + `","e":"AQAB","kid":"bad"}`,
		"endless e":      `{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `","e":"` + strings.Repeat("_", 342) + `","kid":"bad"}`,
		"e is 1":         `{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `","e":"AQ","kid":"bad"}`,
		"for encryption": strings.Replace(with(`"use":"enc"`), `"alg":"EdDSA",`, "", 1),
		"for signing":    with(`"key_ops":["sign"]`),
		"other alg":      strings.Replace(string(edJWK(t, 2, "bad")), `"EdDSA"`, `"RS256"`, 1),
		"no key":         `{}`, "null": `null`, "number": `1`, "string": `"x"`, "no kind": `{"kid":"bad"}`, "kty number": `{"kty":1,"kid":"bad"}`,
		"kty lower case": strings.Replace(string(edJWK(t, 2, "bad")), `"OKP"`, `"okp"`, 1),
		"short":          `{"kty":"OKP","crv":"Ed25519","x":"AAAA","kid":"bad"}`,
		"long kid":       string(edJWK(t, 2, strings.Repeat("k", 5000))),
	} {
		t.Run(name, func(t *testing.T) {
			k, err := parse([]byte(`{"keys":[` + bad + `,` + good + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			if len(k.all) != 1 || len(k.ignored) != 1 || !strings.HasPrefix(k.ignored[0], "key 1: ") {
				t.Errorf("%d keys, ignored %v", len(k.all), k.ignored)
			}
			if _, ok := k.find("good"); !ok {
				t.Error("the good key is gone")
			}
			if _, ok := k.find("bad"); ok {
				t.Error("the bad key is there")
			}
		})
	}
	// The twins: the same members with harmless values.
	for _, member := range []string{`"use":"sig"`, `"key_ops":["verify"]`, `"key_ops":[]`, `"x5u":"https://evil.example/"`, `"x5c":["AAAA"]`, `"ext":true`} {
		if k, err := parse([]byte(`{"keys":[` + with(member) + `]}`)); err != nil || len(k.all) != 1 {
			t.Errorf("%s: %v %v", member, k, err)
		}
	}
}

func TestParsePrivate(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]any{"Ed25519": edKey(2), "EC": ec, "RSA": r} {
		if _, err := parse([]byte(set(edJWK(t, 1, "good"), jwk(t, k, "bad", true)))); !errors.Is(err, errPrivate) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseIDs(t *testing.T) {
	one, two, three := edJWK(t, 1, "k"), edJWK(t, 2, "k"), edJWK(t, 3, "k")
	k, err := parse([]byte(set(one, one)))
	if err != nil || len(k.all) != 1 || len(k.ids()) != 1 {
		t.Errorf("the same key twice: %+v %v", k, err)
	}
	for _, doc := range []string{set(one, two), set(one, two, three), set(one, two, one)} {
		k, err = parse([]byte(doc))
		if err != nil || len(k.ids()) != 0 {
			t.Errorf("two keys of one id: %+v %v", k, err)
		}
		if _, ok := k.find(""); ok {
			t.Error("one of several was picked")
		}
	}
	k, err = parse([]byte(set(edJWK(t, 1, ""), edJWK(t, 2, ""))))
	if err != nil || len(k.ids()) != 0 {
		t.Errorf("%+v %v", k, err)
	}
	if _, ok := k.find(""); ok {
		t.Error("one of two was picked")
	}
}

// FuzzParse: nothing panics, and every key that is offered can be used by the
// verifier as it is.
func FuzzParse(f *testing.F) {
	f.Add([]byte(set(edJWK(f, 1, "a"), edJWK(f, 2, ""))))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"a"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQ==","e":"AQAB","use":"sig","key_ops":["verify"]}]}`))
	f.Add([]byte(fmt.Sprintf(`{"keys":[{"kty":"RSA","n":"%s","e":"AQAB"}]}`, strings.Repeat("_", 342))))
	f.Fuzz(func(t *testing.T, doc []byte) {
		k, err := parse(doc)
		if err != nil {
			return
		}
		for _, one := range k.all {
			if err := token.CheckKey(one.public, one.alg); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range k.ids() {
			if _, ok := k.find(id); !ok || id == "" {
				t.Fatalf("id %q", id)
			}
		}
	})
}

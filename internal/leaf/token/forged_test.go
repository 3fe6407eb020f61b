package token

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/holdfast-dev/holdfast"
)

func sumOf(text string) digest { return sha256.Sum256([]byte(text)) }

// Each forged token is refused, by its kind.
func TestK2_FP2_forged_tokens(t *testing.T) {
	k := keys()
	body := toJSON(t, claims(nil))
	good := edToken(t, nil)
	seg := strings.Split(good, ".")
	der, err := x509.MarshalPKIXPublicKey(&k.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	rsaPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	strangerJWK := `{"kty":"OKP","crv":"Ed25519","x":"` + b64(string(stranger.Public().(ed25519.PublicKey))) + `"}`
	edPub := []byte(k.ed.Public().(ed25519.PublicKey))
	none := func(alg string) string { return b64(`{"alg":"`+alg+`","kid":"ed"}`) + "." + b64(body) + "." }
	withHeader := func(h string) string { return sign(t, EdDSA, h, body) }
	withBody := func(change func(string) string) string { return sign(t, EdDSA, edHeader, change(body)) }
	add := func(member string) string {
		return withBody(func(b string) string { return strings.TrimSuffix(b, "}") + "," + member + "}" })
	}
	set := func(claim string, v any) string { return edToken(t, map[string]any{claim: v}) }
	raw := func(claim, json string) string {
		b := strings.TrimSuffix(toJSON(t, claims(map[string]any{claim: nil})), "}") + `,"` + claim + `":` + json + `}`
		return sign(t, EdDSA, edHeader, b)
	}
	const J, D = holdfast.KindJWT, holdfast.KindJWTDecode

	for _, c := range []struct {
		name string
		text string
		kind holdfast.Kind
	}{
		{"alg none", none("none"), J},
		{"alg None", none("None"), J},
		{"alg NONE", none("NONE"), J},
		{"alg none with a signature", b64(`{"alg":"none","kid":"ed"}`) + "." + seg[1] + "." + seg[2], J},
		{"alg empty", none(""), J},
		{"alg missing", withHeader(`{"kid":"ed"}`), J},
		{"alg null", withHeader(`{"alg":null,"kid":"ed"}`), J},
		{"alg number", withHeader(`{"alg":1,"kid":"ed"}`), D},
		{"alg array", withHeader(`{"alg":["EdDSA"],"kid":"ed"}`), D},
		{"alg lower case", withHeader(`{"alg":"eddsa","kid":"ed"}`), J},
		{"alg escaped", withHeader(`{"alg":"\u006eone","kid":"ed"}`), J},
		{"HS256 with the RSA key's PEM", signWith(t, jwt.SigningMethodHS256, rsaPEM, `{"alg":"HS256","kid":"rsa"}`, body), J},
		{"HS256 with the RSA key's DER", signWith(t, jwt.SigningMethodHS256, der, `{"alg":"HS256","kid":"rsa"}`, body), J},
		{"HS256 with the Ed25519 key", signWith(t, jwt.SigningMethodHS256, edPub, `{"alg":"HS256","kid":"ed"}`, body), J},
		{"HS256 with an empty secret", signWith(t, jwt.SigningMethodHS256, []byte{}, `{"alg":"HS256","kid":"ed"}`, body), J},
		{"HMAC said to be RS256", signWith(t, jwt.SigningMethodHS256, rsaPEM, `{"alg":"RS256","kid":"rsa"}`, body), J},
		{"HMAC said to be EdDSA", signWith(t, jwt.SigningMethodHS256, edPub, `{"alg":"EdDSA","kid":"ed"}`, body), J},
		{"PS256", signWith(t, jwt.SigningMethodPS256, k.rsa, `{"alg":"PS256","kid":"rsa"}`, body), J},
		{"RS512", signWith(t, jwt.SigningMethodRS512, k.rsa, `{"alg":"RS512","kid":"rsa"}`, body), J},
		{"RS512 said to be RS256", signWith(t, jwt.SigningMethodRS512, k.rsa, `{"alg":"RS256","kid":"rsa"}`, body), J},
		{"ES256 under the RSA kid", sign(t, ES256, `{"alg":"ES256","kid":"rsa"}`, body), J},
		{"RS256 under the Ed25519 kid", sign(t, RS256, `{"alg":"RS256","kid":"ed"}`, body), J},
		{"EdDSA under the EC kid", sign(t, EdDSA, `{"alg":"EdDSA","kid":"ec"}`, body), J},

		{"signed by a stranger", signWith(t, jwt.SigningMethodEdDSA, stranger, edHeader, body), J},
		{"stranger's key in jwk", signWith(t, jwt.SigningMethodEdDSA, stranger, `{"alg":"EdDSA","kid":"ed","jwk":`+strangerJWK+`}`, body), J},
		{"stranger's key in jwk, no kid", signWith(t, jwt.SigningMethodEdDSA, stranger, `{"alg":"EdDSA","jwk":`+strangerJWK+`}`, body), J},
		{"stranger's key at jku", signWith(t, jwt.SigningMethodEdDSA, stranger, `{"alg":"EdDSA","kid":"x","jku":"https://evil.example/jwks"}`, body), J},
		{"stranger's key at x5u", signWith(t, jwt.SigningMethodEdDSA, stranger, `{"alg":"EdDSA","kid":"x","x5u":"https://evil.example/c"}`, body), J},
		{"kid missing with several keys", withHeader(`{"alg":"EdDSA"}`), J},
		{"kid null", withHeader(`{"alg":"EdDSA","kid":null}`), J},
		{"kid empty", withHeader(`{"alg":"EdDSA","kid":""}`), J},
		{"kid number", withHeader(`{"alg":"EdDSA","kid":1}`), D},
		{"kid path", withHeader(`{"alg":"EdDSA","kid":"../../../../dev/null"}`), J},
		{"kid SQL", withHeader(`{"alg":"EdDSA","kid":"ed' UNION SELECT 'k"}`), J},
		{"kid NUL", withHeader(`{"alg":"EdDSA","kid":"ed\u0000"}`), J},
		{"kid huge", withHeader(`{"alg":"EdDSA","kid":"` + strings.Repeat("k", 5000) + `"}`), J},
		{"crit", withHeader(`{"alg":"EdDSA","kid":"ed","crit":["exp"],"exp":1}`), J},
		{"crit empty", withHeader(`{"alg":"EdDSA","kid":"ed","crit":[]}`), J},
		{"crit null", withHeader(`{"alg":"EdDSA","kid":"ed","crit":null}`), J},
		{"crit b64", withHeader(`{"alg":"EdDSA","kid":"ed","b64":false,"crit":["b64"]}`), J},
		{"logout token", withHeader(`{"alg":"EdDSA","kid":"ed","typ":"logout+jwt"}`), J},
		{"typ number", withHeader(`{"alg":"EdDSA","kid":"ed","typ":1}`), D},

		{"alg twice", withHeader(`{"alg":"EdDSA","kid":"ed","alg":"none"}`), D},
		{"alg twice, once escaped", withHeader(`{"alg":"EdDSA","kid":"ed","\u0061lg":"none"}`), D},
		{"sub twice", add(`"sub":"root"`), D},
		{"roles twice, once escaped", add(`"role\u0073":["admin"]`), D},
		{"a name twice inside", add(`"x":{"a":1,"a":2}`), D},
		{"a name twice deep inside", add(`"x":[{"y":[{"a":1,"a":1}]}]`), D},

		{"claims changed", seg[0] + "." + b64(strings.Replace(body, "reader", "wizard", 1)) + "." + seg[2], J},
		{"header changed", b64(edHeader+" ") + "." + seg[1] + "." + seg[2], J},
		{"signature missing", seg[0] + "." + seg[1] + ".", J},
		{"signature cut", good[:len(good)-2], J},
		{"signature zero", seg[0] + "." + seg[1] + "." + strings.Repeat("A", 86), J},
		{"signature of another", seg[0] + "." + seg[1] + "." + strings.Split(set("jti", "t-2"), ".")[2], J},

		{"huge", set("email", strings.Repeat("x", MaxToken)), D},
		{"huge and not a token", strings.Repeat("A", 1<<20), D},
		{"nested arrays", raw("x", strings.Repeat("[", 3000)+strings.Repeat("]", 3000)), D},
		{"nested objects", raw("x", strings.Repeat(`{"a":`, 1000)+"1"+strings.Repeat("}", 1000)), D},
		{"nested without end", raw("x", strings.Repeat("[", 3000)), D},
		{"nested tokens", b64(`{"alg":"EdDSA","kid":"ed","cty":"JWT"}`) + "." + b64(good) + "." + seg[2], D},
		{"five parts", good + ".x.y", D},
		{"two parts", seg[0] + "." + seg[1], D},
		{"one part", seg[0], D},
		{"dots only", "..", D},
		{"truncated header", seg[0][:9] + "." + seg[1] + "." + seg[2], D},
		{"truncated claims", seg[0] + "." + seg[1][:40] + "." + seg[2], D},
		{"NUL before", "\x00" + good, D},
		{"NUL after", good + "\x00", D},
		{"NUL inside", seg[0] + "\x00." + seg[1] + "." + seg[2], D},
		{"line break", seg[0] + "\n." + seg[1] + "." + seg[2], D},
		{"padding", seg[0] + "=." + seg[1] + "." + seg[2], D},
		{"stray bits", strayBits(t, good), D},
		{"standard base64", strings.ReplaceAll(good, "_", "/") + "+", D},
		{"space after", good + " ", D},
		{"not UTF-8 in claims", withBody(func(b string) string { return strings.Replace(b, "user-7", "user\xff", 1) }), D},
		{"lone surrogate", withBody(func(b string) string { return strings.Replace(b, "user-7", `\ud800`, 1) }), D},
		{"claims an array", sign(t, EdDSA, edHeader, "["+body+"]"), D},
		{"claims null", sign(t, EdDSA, edHeader, "null"), D},
		{"claims a string", sign(t, EdDSA, edHeader, `"x"`), D},
		{"claims empty", sign(t, EdDSA, edHeader, ``), D},
		{"claims twice", sign(t, EdDSA, edHeader, body+body), D},
		{"comment", withBody(func(b string) string { return b + "//" }), D},
		{"header null", withHeader("null"), D},
		{"byte order mark", withBody(func(b string) string { return "\ufeff" + b }), D},
		{"case drift of a claim", withBody(func(b string) string { return strings.Replace(b, `"sub"`, `"Sub"`, 1) }), J},
		{"case drift of roles", withBody(func(b string) string { return strings.Replace(b, `"roles"`, `"Roles"`, 1) }), J},

		{"exp a string", raw("exp", `"1893456000"`), D},
		{"exp 1e400", raw("exp", `1e400`), D},
		{"exp beyond year 9999", raw("exp", `253402300800`), D},
		{"exp of many digits", raw("exp", strings.Repeat("9", 400)), D},
		{"exp negative", raw("exp", `-1`), holdfast.KindExpiredToken},
		{"exp -1e400", raw("exp", `-1e400`), D},
		{"exp zero", raw("exp", `0`), holdfast.KindExpiredToken},
		{"exp true", raw("exp", `true`), D},
		{"exp an array", raw("exp", `[1893456000]`), D},
		{"exp NaN", raw("exp", `NaN`), D},
		{"exp hexadecimal", raw("exp", `0x7fffffff`), D},
		{"exp with plus", raw("exp", `+1893456000`), D},
		{"nbf a string", raw("nbf", `"0"`), D},
		{"iat 1e400", raw("iat", `1e400`), D},
		{"roles a string", raw("roles", `"admin"`), D},
		{"roles an object", raw("roles", `{"admin":true}`), D},
		{"roles of numbers", raw("roles", `[1]`), D},
		{"roles with null", raw("roles", `["a",null]`), D},
		{"aud with null", raw("aud", `["holdfast",null]`), D},
		{"roles nested", raw("roles", `[["admin"]]`), D},
		{"roles true", raw("roles", `true`), D},
		{"tenant a number", raw("tenant_id", `7`), D},
		{"tenant an array", raw("tenant_id", `["acme"]`), D},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verifier(t, threeKeys())
			refused(t, v, c.text, now, c.kind)
			refused(t, v, c.text, now, c.kind) // the cache learnt nothing
			if v.cache.order.Len() != 0 {
				t.Error("a refused token is in the cache")
			}
		})
	}
	// The twin: what the table starts from is accepted.
	v := verifier(t, threeKeys())
	for _, text := range []string{good, withHeader(edHeader), add(`"x":{"a":1}`), raw("x", strings.Repeat("[", 18)+strings.Repeat("]", 18)), raw("exp", "1.893456e9")} {
		if _, err := verify(v, text, now); err != nil {
			t.Error(err)
		}
	}
}

// strayBits sets bits of the last character that decode to nothing.
func strayBits(t *testing.T, good string) string {
	t.Helper()
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(letters, good[len(good)-1])
	if last%16 != 0 { // 64 bytes leave 4 unused bits in the last character
		t.Fatal("unexpected spelling of a signature")
	}
	return good[:len(good)-1] + string(letters[last+1])
}

// A key that the set says is fine is checked all the same.
func TestUnacceptableKeys(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k := keys()
	body := toJSON(t, claims(nil))
	text := func(m jwt.SigningMethod, key any, alg string) string {
		return signWith(t, m, key, `{"alg":"`+alg+`","kid":"k"}`, body)
	}
	for _, c := range []struct {
		name string
		held held
		text string
	}{
		{"RSA of 1024 bits", held{&weak.PublicKey, RS256}, text(jwt.SigningMethodRS256, weak, RS256)},
		{"P-384", held{&p384.PublicKey, ES256}, text(jwt.SigningMethodES384, p384, ES256)},
		{"P-384 as ES384", held{&p384.PublicKey, "ES384"}, text(jwt.SigningMethodES384, p384, "ES384")},
		{"HMAC secret", held{[]byte("secret"), "HS256"}, text(jwt.SigningMethodHS256, []byte("secret"), "HS256")},
		{"HMAC secret said to be EdDSA", held{[]byte("secret"), EdDSA}, text(jwt.SigningMethodHS256, []byte("secret"), EdDSA)},
		{"RSA said to be EdDSA", held{&k.rsa.PublicKey, EdDSA}, text(jwt.SigningMethodRS256, k.rsa, EdDSA)},
		{"no algorithm", held{k.ed.Public(), ""}, text(jwt.SigningMethodEdDSA, k.ed, EdDSA)},
		{"a private key", held{k.ed, EdDSA}, text(jwt.SigningMethodEdDSA, k.ed, EdDSA)},
		{"a short key", held{ed25519.PublicKey{1, 2}, EdDSA}, text(jwt.SigningMethodEdDSA, k.ed, EdDSA)},
		{"nil", held{nil, EdDSA}, text(jwt.SigningMethodEdDSA, k.ed, EdDSA)},
		{"nil RSA", held{(*rsa.PublicKey)(nil), RS256}, text(jwt.SigningMethodRS256, k.rsa, RS256)},
		{"nil EC", held{(*ecdsa.PublicKey)(nil), ES256}, text(jwt.SigningMethodES256, k.ec, ES256)},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verifier(t, &keySet{keys: map[string]held{"k": c.held}})
			refused(t, v, c.text, now, holdfast.KindJWT)
		})
	}
}

func TestOneKeyNeedsNoKid(t *testing.T) {
	v := verifier(t, &keySet{keys: map[string]held{"ed": {keys().ed.Public(), EdDSA}}})
	if _, err := verify(v, sign(t, EdDSA, `{"alg":"EdDSA"}`, toJSON(t, claims(nil))), now); err != nil {
		t.Error(err)
	}
}

// FuzzVerify: nothing panics, and whatever is accepted is text that was
// really signed.
func FuzzVerify(f *testing.F) {
	k := keys()
	signed := map[string]bool{}
	seed := func(s string) {
		signed[s[:strings.LastIndexByte(s, '.')]] = true
		f.Add(s)
	}
	seed(edToken(f, nil))
	seed(edToken(f, map[string]any{"agent": "a", "aud": []string{"x", testAudience}, "nbf": 1}))
	seed(sign(f, ES256, `{"alg":"ES256","kid":"ec"}`, toJSON(f, claims(nil))))
	seed(sign(f, RS256, `{"alg":"RS256","kid":"rsa"}`, toJSON(f, claims(nil))))
	f.Add("")
	f.Add("..")
	f.Add(b64(`{"alg":"none"}`) + "." + b64(`{}`) + ".")
	f.Add(signWith(f, jwt.SigningMethodHS256, []byte(k.ed.Public().(ed25519.PublicKey)), edHeader, toJSON(f, claims(nil))))
	v := verifier(f, threeKeys())
	f.Fuzz(func(t *testing.T, text string) {
		id, err := verify(v, text, now)
		if err == nil && !signed[text[:strings.LastIndexByte(text, '.')]] {
			t.Fatalf("accepted what nobody signed: %q", text)
		}
		if (err == nil) != (id.Tenant != "") {
			t.Fatalf("%+v, %v", id, err)
		}
	})
}

// FuzzClaims drives the reading of claims that are signed, which random text
// never gets to: whatever is accepted is bounded and complete.
func FuzzClaims(f *testing.F) {
	f.Add(edHeader, toJSON(f, claims(nil)))
	f.Add(edHeader, toJSON(f, claims(map[string]any{"roles": []string{}, "agent": "a", "exp": 1e12})))
	f.Add(`{"alg":"EdDSA","kid":"ed","crit":[]}`, `{"exp":1e400,"roles":[null],"aud":["holdfast"]}`)
	src := threeKeys()
	f.Fuzz(func(t *testing.T, header, body string) {
		v := verifier(t, src)
		id, err := verify(v, signWith(t, jwt.SigningMethodEdDSA, keys().ed, header, body), now)
		if err != nil {
			if k := holdfast.KindOf(err); k == holdfast.KindInternal {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		for _, s := range append([]string{id.Tenant, id.Principal, id.Agent, id.Session, id.TokenID}, id.Roles...) {
			if nameFault(s) != "" {
				t.Fatalf("accepted the name %q", s)
			}
		}
		if !id.Expires.After(now) || id.Tenant == holdfast.Unverified || id.Roles == nil {
			t.Fatalf("accepted %+v", id)
		}
	})
}

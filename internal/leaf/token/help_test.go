package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/holdfast-dev/holdfast"
)

const (
	testIssuer   = "https://id.example.com/application/o/holdfast/"
	testAudience = "holdfast"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// testKeys are real keys of every accepted kind, made once.
type testKeys struct {
	ed  ed25519.PrivateKey
	ec  *ecdsa.PrivateKey
	rsa *rsa.PrivateKey
}

var keys = sync.OnceValue(func() testKeys {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	return testKeys{ed: ed25519.NewKeyFromSeed([]byte("a seed of thirty-two bytes, yes!")), ec: ec, rsa: r}
})

// held is a key with its algorithm.
type held struct {
	key crypto.PublicKey
	alg string
}

// keySet is a KeySource whose content a test may change.
type keySet struct {
	mu   sync.Mutex
	keys map[string]held
	err  error
	asks int
}

func (s *keySet) Key(_ context.Context, kid string) (crypto.PublicKey, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	if s.err != nil {
		return nil, "", s.err
	}
	if kid == "" && len(s.keys) == 1 {
		for _, h := range s.keys {
			return h.key, h.alg, nil
		}
	}
	h, ok := s.keys[kid]
	if !ok || kid == "" {
		return nil, "", ErrUnknownKey
	}
	return h.key, h.alg, nil
}

func threeKeys() *keySet {
	k := keys()
	return &keySet{keys: map[string]held{
		"ed":  {k.ed.Public(), EdDSA},
		"ec":  {&k.ec.PublicKey, ES256},
		"rsa": {&k.rsa.PublicKey, RS256},
	}}
}

func verifier(t testing.TB, src KeySource) *Verifier {
	t.Helper()
	v, err := NewVerifier(Issuer{Name: testIssuer, Audience: testAudience, Keys: src})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims returns a set that is accepted, changed by with; nil removes.
func claims(with map[string]any) map[string]any {
	c := map[string]any{
		"iss": testIssuer, "aud": testAudience, "sub": "user-7", "jti": "t-1", "tenant_id": "acme",
		"roles": []string{"reader", "writer"}, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
		"email": "someone@example.com", "org_id": "o-1",
	}
	maps.Copy(c, with)
	for k, v := range c {
		if v == nil {
			delete(c, k)
		}
	}
	return c
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// sign makes a token of raw header and claims with a real signature by alg.
func sign(t testing.TB, alg, header, body string) string {
	t.Helper()
	k := keys()
	var key any
	switch alg {
	case EdDSA:
		key = k.ed
	case ES256:
		key = k.ec
	default:
		key = k.rsa
	}
	return signWith(t, jwt.GetSigningMethod(alg), key, header, body)
}

func signWith(t testing.TB, m jwt.SigningMethod, key any, header, body string) string {
	t.Helper()
	text := b64(header) + "." + b64(body)
	sig, err := m.Sign(text, key)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

const edHeader = `{"alg":"EdDSA","kid":"ed","typ":"JWT"}`

// edToken is an accepted token with changed claims.
func edToken(t testing.TB, with map[string]any) string {
	t.Helper()
	return sign(t, EdDSA, edHeader, toJSON(t, claims(with)))
}

func verify(v *Verifier, text string, at time.Time) (holdfast.Identity, error) {
	return v.Verify(context.Background(), holdfast.NewSecret(text), at)
}

// refused checks the kind, and that refusal means nobody.
func refused(t *testing.T, v *Verifier, text string, at time.Time, want holdfast.Kind) {
	t.Helper()
	id, err := verify(v, text, at)
	if err == nil {
		t.Fatalf("accepted as %+v", id)
	}
	if got := holdfast.KindOf(err); got != want {
		t.Errorf("kind %s, want %s (%v)", got, want, err)
	}
	if id.Tenant != "" || id.Principal != "" || id.Agent != "" || id.Roles != nil || id.TokenID != "" {
		t.Errorf("a refusal named somebody: %+v", id)
	}
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Why == "" {
		t.Errorf("no reason: %v", err)
	} else if len(e.Why) > 600 {
		t.Errorf("reason of %d bytes", len(e.Why))
	}
}

package token

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
)

// MaxTTL bounds the life of a token that a Minter makes: what somebody takes
// away lives for a day at most.
const MaxTTL = 24 * time.Hour

// Minter makes the tokens of local mode: the daemon's, for the agents that it
// starts on its own machine. Their tenant is always holdfast.Local. It is safe
// for concurrent use; it prints nothing of its key.
type Minter struct {
	key    *ed25519.PrivateKey // a pointer, so that fmt never walks into it
	kid    string
	issuer Issuer
}

// NewMinter returns a minter that signs with the key as issuer for audience.
// The key stays the caller's and must not change.
func NewMinter(key ed25519.PrivateKey, issuer, audience string) (*Minter, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errors.New("the signing key is not an Ed25519 private key")
	}
	pub := key.Public().(ed25519.PublicKey)
	kid, err := Thumbprint(pub)
	if err != nil {
		return nil, err
	}
	m := &Minter{key: &key, kid: kid}
	m.issuer = Issuer{
		Name:       issuer,
		Audience:   audience,
		Keys:       single{kid: kid, key: pub},
		Algorithms: []string{EdDSA},
		Tenants:    []string{holdfast.Local},
	}
	if err := checkIssuer(&m.issuer); err != nil {
		return nil, err
	}
	return m, nil
}

// Issuer returns what a Verifier needs to accept this minter's tokens.
func (m *Minter) Issuer() Issuer { return m.issuer }

// KeyID returns the key's JWK thumbprint, which is the kid of every token.
func (m *Minter) KeyID() string { return m.kid }

// Format writes the key id for every verb, so that no way of printing a
// minter, as a pointer or as a value, prints its key.
func (m Minter) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, "minter "+m.kid) }

// Mint returns a token for id that lives for ttl, from one second to MaxTTL,
// and the identity that verifying it yields. Tenant may be empty or
// holdfast.Local; Principal and Roles are required; TokenID, Issuer and
// Expires are set here: the token id is a fresh UUIDv4.
func (m *Minter) Mint(id holdfast.Identity, ttl time.Duration, now time.Time) (holdfast.Secret, holdfast.Identity, error) {
	fail := func(err error) (holdfast.Secret, holdfast.Identity, error) {
		return holdfast.Secret{}, holdfast.Identity{}, fmt.Errorf("minting a token: %w", err)
	}
	if ttl < time.Second || ttl > MaxTTL {
		return fail(fmt.Errorf("a life of %v is not between 1s and %v", ttl, MaxTTL))
	}
	if now.IsZero() {
		return fail(errors.New("the time is not known"))
	}
	jti, err := uuid.NewRandom()
	if err != nil {
		return fail(err)
	}
	claims := m.claims(id, jti.String(), ttl, now)
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	t.Header["kid"] = m.kid
	text, err := t.SignedString(*m.key)
	if err != nil {
		return fail(err)
	}
	if len(text) > MaxToken {
		return fail(fmt.Errorf("the token would be longer than %d bytes", MaxToken))
	}
	// What was made is read back by the code that will verify it, so that
	// no token leaves here that would be refused.
	p, err := split(text)
	if err != nil {
		return fail(err)
	}
	c, err := read(p.claims, &m.issuer)
	if err != nil {
		return fail(err)
	}
	return holdfast.NewSecret(text), c.identity(), nil
}

func (m *Minter) claims(id holdfast.Identity, jti string, ttl time.Duration, now time.Time) jwt.MapClaims {
	if id.Tenant == "" {
		id.Tenant = holdfast.Local
	}
	if id.Roles == nil {
		id.Roles = []string{}
	}
	c := jwt.MapClaims{
		"iss": m.issuer.Name, "aud": m.issuer.Audience, "jti": jti,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(ttl).Unix(),
		"sub": id.Principal, "tenant_id": id.Tenant, "roles": id.Roles,
	}
	for claim, v := range map[string]string{
		"agent": id.Agent, "agent_kind": id.Kind, "agent_parent": id.Parent, "session": id.Session,
		"intent": id.Intent, "chain": id.Chain, "tier": id.Tier,
	} {
		if v != "" {
			c[claim] = v
		}
	}
	return c
}

// single is the key set of a minter.
type single struct {
	kid string
	key ed25519.PublicKey
}

// Key implements KeySource.
func (s single) Key(_ context.Context, kid string) (crypto.PublicKey, string, error) {
	if kid != s.kid && kid != "" {
		return nil, "", ErrUnknownKey
	}
	return s.key, EdDSA, nil
}

// Thumbprint returns the JWK thumbprint of an Ed25519 key with SHA-256 in
// base64url (RFC 7638, RFC 8037 appendix A.3).
func Thumbprint(key ed25519.PublicKey) (string, error) {
	if len(key) != ed25519.PublicKeySize {
		return "", errors.New("the Ed25519 key has a wrong length")
	}
	x := base64.RawURLEncoding.EncodeToString(key)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

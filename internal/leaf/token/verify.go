package token

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Verifier verifies tokens of the configured issuers. It is safe for
// concurrent use. The zero Verifier refuses everything.
type Verifier struct {
	issuers map[string]*Issuer
	cache   cache
}

// NewVerifier checks the issuers and returns their verifier. Issuers are
// copied. An incomplete issuer, or two of one name, is an error.
func NewVerifier(issuers ...Issuer) (*Verifier, error) {
	v := &Verifier{issuers: make(map[string]*Issuer, len(issuers))}
	for _, is := range issuers {
		if err := checkIssuer(&is); err != nil {
			return nil, fmt.Errorf("issuer %s: %w", show(is.Name), err)
		}
		if v.issuers[is.Name] != nil {
			return nil, fmt.Errorf("issuer %s is configured twice", show(is.Name))
		}
		is.Algorithms, is.Tenants = slices.Clone(is.Algorithms), slices.Clone(is.Tenants)
		v.issuers[is.Name] = &is
	}
	return v, nil
}

func checkIssuer(is *Issuer) error {
	if fault := nameFault(is.Name); fault != "" {
		return errors.New("the name " + fault)
	}
	if is.Audience == "" {
		return errors.New("the audience is missing: without it a token made for somebody else would be accepted")
	}
	if is.Keys == nil {
		return errors.New("there is no key set")
	}
	for _, a := range is.Algorithms {
		if method(a) == nil {
			return fmt.Errorf("algorithm %s is not accepted (EdDSA, ES256 or RS256)", show(a))
		}
	}
	for _, t := range is.Tenants {
		if nameFault(t) != "" || reserved(t) {
			return fmt.Errorf("tenant %s cannot be used", show(t))
		}
	}
	return nil
}

// Verify returns who the token names. Every error is a *holdfast.Error:
// JWTError (missing, not signed by a known key, wrong issuer or audience, a
// required claim missing), JWTDecodeError (malformed), ExpiredTokenError,
// TenantContextError, PermissionRegistryError (keys cannot be read).
//
// A token that was verified before is not verified again, but its times and
// its key are asked about at each use: one whose key has gone is refused.
func (v *Verifier) Verify(ctx context.Context, token holdfast.Secret, now time.Time) (holdfast.Identity, error) {
	text := token.Reveal()
	switch {
	case v == nil || len(v.issuers) == 0:
		return nobody(refuse(holdfast.KindJWT, "no issuer is configured", "", nil))
	case now.IsZero():
		return nobody(refuse(holdfast.KindJWT, "the time is not known, so no token can be judged", "", nil))
	case text == "":
		return nobody(refuse(holdfast.KindJWT, "there is no token", bearerHint, nil))
	case len(text) > MaxToken:
		return nobody(refuse(holdfast.KindJWTDecode, fmt.Sprintf("the token is longer than %d bytes", MaxToken), "", nil))
	}
	sum := digest(sha256.Sum256([]byte(text)))
	e := v.cache.get(sum)
	if e != nil {
		key, alg, err := v.key(ctx, e.issuer, e.kid)
		if err != nil {
			return nobody(err)
		}
		if alg != e.alg || !sameKey(e.key, key) {
			v.cache.drop(sum) // verified with a key that is no longer this one
			e = nil
		}
	}
	if e == nil {
		var err error
		if e, err = v.verify(ctx, text); err != nil {
			return nobody(err)
		}
		e.sum = sum
	}
	if err := e.claims.alive(now); err != nil {
		v.cache.drop(sum)
		return nobody(err)
	}
	v.cache.put(e)
	return e.claims.identity(), nil
}

func nobody(err error) (holdfast.Identity, error) { return holdfast.Identity{}, err }

// verify checks form, issuer, algorithm, key and signature, then the claims.
func (v *Verifier) verify(ctx context.Context, text string) (*entry, error) {
	p, err := split(text)
	if err != nil {
		return nil, refuse(holdfast.KindJWTDecode, "the token is malformed: "+err.Error(), "", err)
	}
	is, err := v.issuer(p.claims)
	if err != nil {
		return nil, err
	}
	e := &entry{issuer: is}
	if e.alg, e.kid, err = readHeader(p.header, is); err != nil {
		return nil, err
	}
	var alg string
	if e.key, alg, err = v.key(ctx, is, e.kid); err != nil {
		return nil, err
	}
	if alg != e.alg {
		return nil, refuse(holdfast.KindJWT, "the token's algorithm "+e.alg+" is not the key's, "+show(alg), "", nil)
	}
	if err := method(alg).Verify(p.signed, p.signature, e.key); err != nil {
		return nil, refuse(holdfast.KindJWT, "the token's signature is wrong", "", err)
	}
	if e.claims, err = read(p.claims, is); err != nil {
		return nil, err
	}
	return e, nil
}

// issuer picks whose keys are tried. The claim is not verified yet: it only
// selects, and the signature then proves it.
func (v *Verifier) issuer(claims object) (*Issuer, error) {
	iss, err := claims.text("iss")
	if err != nil {
		return nil, refuse(holdfast.KindJWTDecode, "claim "+err.Error(), "", nil)
	}
	if iss == "" {
		return nil, refuse(holdfast.KindJWT, "the token has no iss claim", "", nil)
	}
	is := v.issuers[iss]
	if is == nil {
		return nil, refuse(holdfast.KindJWT, "issuer "+show(iss)+" is not configured", "list the issuer under identity", nil)
	}
	return is, nil
}

// readHeader returns algorithm and key id. Keys or addresses of keys inside
// the header (jwk, jku, x5c, x5u) are never looked at (RFC 8725 section 3.10).
func readHeader(h object, is *Issuer) (alg, kid string, err error) {
	alg, err = h.text("alg")
	kid, kidErr := h.text("kid")
	typ, typErr := h.text("typ")
	if err = errors.Join(err, kidErr, typErr); err != nil {
		return "", "", refuse(holdfast.KindJWTDecode, "header: alg, kid and typ must be strings", "", err)
	}
	if method(alg) == nil || (len(is.Algorithms) > 0 && !slices.Contains(is.Algorithms, alg)) {
		return "", "", refuse(holdfast.KindJWT, "algorithm "+show(alg)+" is not accepted", "use EdDSA, ES256 or RS256 as the issuer is configured", nil)
	}
	if _, ok := h["crit"]; ok {
		return "", "", refuse(holdfast.KindJWT, "the token demands extensions that are not known here (crit)", "", nil)
	}
	if kid != "" || h.has("kid") {
		if fault := nameFault(kid); fault != "" {
			return "", "", refuse(holdfast.KindJWT, "header kid "+fault, "", nil)
		}
	}
	switch strings.ToLower(typ) {
	case "", "jwt", "at+jwt", "application/at+jwt":
	default:
		// A token of another purpose from the same issuer (RFC 8725 3.11).
		return "", "", refuse(holdfast.KindJWT, "the token is of type "+show(typ)+", not an access token", "", nil)
	}
	return alg, kid, nil
}

// key asks the issuer for a key and checks what comes.
func (v *Verifier) key(ctx context.Context, is *Issuer, kid string) (crypto.PublicKey, string, error) {
	key, alg, err := is.Keys.Key(ctx, kid)
	switch {
	case errors.Is(err, ErrUnknownKey) && kid == "":
		return nil, "", refuse(holdfast.KindJWT, "the token names no key and issuer "+show(is.Name)+" does not have exactly one", "let the issuer put kid into the header", err)
	case errors.Is(err, ErrUnknownKey):
		return nil, "", refuse(holdfast.KindJWT, "issuer "+show(is.Name)+" has no key "+show(kid), "the key may have been rotated: get a fresh token", err)
	case err != nil:
		return nil, "", refuse(holdfast.KindPermissionRegistry, "the keys of issuer "+show(is.Name)+" cannot be read", "see whether the issuer is reachable", err)
	}
	if err := CheckKey(key, alg); err != nil {
		return nil, "", refuse(holdfast.KindJWT, "a key of issuer "+show(is.Name)+" cannot be used: "+err.Error(), "", err)
	}
	return key, alg, nil
}

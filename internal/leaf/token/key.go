package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// Bounds of an RSA modulus in bits. Below the lower one signatures can be
// forged (RFC 7518 section 3.3), above the upper one verifying costs too much.
const (
	minRSA = 2048
	maxRSA = 8192
)

// CheckKey says whether the key is public, strong enough and of the kind that
// the algorithm needs. Every key is checked before it verifies anything, which
// is what makes confusing one kind of key with another impossible.
func CheckKey(key crypto.PublicKey, alg string) error {
	want, err := AlgorithmFor(key)
	if err != nil {
		return err
	}
	if alg != want {
		return fmt.Errorf("the key is for %s, not for %s", want, show(alg))
	}
	return nil
}

// AlgorithmFor returns the one algorithm that a public key is accepted for.
func AlgorithmFor(key crypto.PublicKey) (string, error) {
	switch k := key.(type) {
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return "", errors.New("the Ed25519 key has a wrong length")
		}
		return EdDSA, nil
	case *ecdsa.PublicKey:
		return ES256, checkP256(k)
	case *rsa.PublicKey:
		return RS256, checkRSA(k)
	}
	return "", fmt.Errorf("keys of type %T are not accepted", key)
}

func checkP256(k *ecdsa.PublicKey) error {
	if k == nil || k.Curve != elliptic.P256() {
		return errors.New("the elliptic curve is not P-256")
	}
	if _, err := k.ECDH(); err != nil { // refuses points off the curve
		return errors.New("the point is not on P-256")
	}
	return nil
}

func checkRSA(k *rsa.PublicKey) error {
	if k == nil || k.N == nil {
		return errors.New("the RSA key is empty")
	}
	bits := k.N.BitLen()
	switch {
	case bits < minRSA:
		return fmt.Errorf("the RSA key has %d bits, fewer than %d", bits, minRSA)
	case bits > maxRSA:
		return fmt.Errorf("the RSA key has %d bits, more than %d", bits, maxRSA)
	case k.N.Bit(0) == 0 || k.E < 3 || k.E%2 == 0 || k.E > 1<<31-1:
		return errors.New("the RSA key is not well formed")
	}
	return nil
}

// method returns the library's implementation of a pinned algorithm, or nil.
func method(alg string) jwt.SigningMethod {
	switch alg {
	case EdDSA:
		return jwt.SigningMethodEdDSA
	case ES256:
		return jwt.SigningMethodES256
	case RS256:
		return jwt.SigningMethodRS256
	}
	return nil
}

// sameKey compares public keys. Unknown types are never the same.
func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

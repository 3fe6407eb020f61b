// Package token turns a JSON Web Token into who asks (K2, D8). It believes
// nothing of a token until one of the configured issuers' keys has verified
// it: algorithms are pinned, the key decides the algorithm and not the header,
// and everything is bounded before it is parsed. It also mints the short-lived
// tokens of local mode and holds K2's arithmetic on permissions.
//
// Revocation and the roles' meaning are judged in the kernel at every use.
// The package does no I/O and reads no clock: keys come from a KeySource, the
// time is an argument.
//
// Sources: spec 003 section 1.3; RFC 7519 (claims), RFC 7515 (form), RFC 8725
// (what to refuse), RFC 7638 and RFC 8037 (key ids).
package token

import (
	"context"
	"crypto"
	"errors"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// The algorithms that exist here. Every other name is refused, "none" and the
// HMAC family among them.
const (
	EdDSA = "EdDSA"
	ES256 = "ES256"
	RS256 = "RS256"
)

// Limits of a token. They hold before anything is decoded or believed.
const (
	MaxToken = 16 << 10 // bytes of the compact form
	MaxDepth = 20       // of header and claims, the root is 1
	MaxName  = 256      // code points of sub, tenant, agent, role, kid, ...
	MaxRoles = 256
	// Skew is how far nbf and iat may lie in the future. exp has none.
	Skew = 30 * time.Second
)

// What a KeySource may answer. Any other error is taken as ErrKeysUnavailable.
var (
	// ErrUnknownKey says that the issuer has no such key, or several where
	// the token named none.
	ErrUnknownKey = errors.New("the issuer has no such key")
	// ErrKeysUnavailable says that the keys could not be read, or are too
	// old to be believed.
	ErrKeysUnavailable = errors.New("the issuer's keys cannot be read")
)

// KeySource finds an issuer's public key. It must be safe for concurrent use
// and is asked at every verification, cached ones included, so it answers from
// memory where it can.
type KeySource interface {
	// Key returns the key and the one algorithm it is for. An empty kid
	// asks for the only key there is. The key is not changed by anybody.
	Key(ctx context.Context, kid string) (key crypto.PublicKey, alg string, err error)
}

// Issuer is one authority whose tokens are accepted.
type Issuer struct {
	// Name must equal iss exactly; Audience must be in aud. Both required.
	Name     string
	Audience string
	Keys     KeySource
	// Algorithms narrows EdDSA, ES256 and RS256; empty leaves all three.
	Algorithms []string
	// TenantFrom is the claim that names the tenant; empty is tenant_id.
	TenantFrom string
	// Tenants are those this issuer may speak for. Empty means every tenant
	// but holdfast.Local, which must be listed by name.
	Tenants []string
}

// refuse makes K2's error.
func refuse(kind holdfast.Kind, why, hint string, cause error) error {
	gate := holdfast.K2
	if kind == holdfast.KindTenantContext {
		gate = holdfast.K4 // the document's table has this row under K4
	}
	return &holdfast.Error{Kind: kind, Gate: gate, Why: why, Hint: hint, Err: cause}
}

// show quotes hostile text for a person: at most 64 code points, escaped.
func show(s string) string {
	n := 0
	for i := range s {
		if n == 64 {
			return strconv.QuoteToASCII(s[:i]) + "..."
		}
		n++
	}
	return strconv.QuoteToASCII(s)
}

// nameFault says what is wrong with a name, or nothing. Control and invisible
// formatting characters would let a name look like another one on a page.
func nameFault(s string) string {
	switch {
	case s == "":
		return "is empty"
	case !utf8.ValidString(s):
		return "is not UTF-8"
	case utf8.RuneCountInString(s) > MaxName:
		return "is longer than 256 code points"
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	if unicode.IsSpace(first) || unicode.IsSpace(last) {
		return "begins or ends with a space"
	}
	for _, r := range s {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return "holds a control character"
		}
	}
	return ""
}

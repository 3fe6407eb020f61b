package token

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

const bearerHint = "send one header: Authorization: Bearer TOKEN; `holdfast agent token AGENT` makes one"

// Bearer reads the token out of the values of the Authorization header (RFC
// 6750 section 2.1; K2 failure predicate 1). Exactly one value with the scheme
// Bearer, in any case, is accepted; everything else is a JWTError.
func Bearer(values []string) (holdfast.Secret, error) {
	no := func(why string) (holdfast.Secret, error) {
		return holdfast.Secret{}, refuse(holdfast.KindJWT, why, bearerHint, nil)
	}
	switch {
	case len(values) == 0:
		return no("the authorization header is missing")
	case len(values) > 1:
		return no("there is more than one authorization header")
	case len(values[0]) > MaxToken+len("Bearer "):
		return no("the authorization header is too long")
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return no("the authorization header does not carry a bearer token")
	}
	text = strings.Trim(text, " ")
	if text == "" || strings.ContainsAny(text, " \t\r\n,") {
		return no("the authorization header must carry exactly one token")
	}
	return holdfast.NewSecret(text), nil
}

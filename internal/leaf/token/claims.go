package token

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// verified is what a verified token says: who, and when.
type verified struct {
	id     holdfast.Identity
	before time.Time // nbf, zero if none
	issued time.Time // iat, zero if none
}

// alive judges the times at every use (invariant 5; predicate 3: exp <= now is
// expired).
func (c *verified) alive(now time.Time) error {
	if !now.Before(c.id.Expires) {
		return refuse(holdfast.KindExpiredToken, "the token expired at "+c.id.Expires.Format(time.RFC3339), "get a fresh token: `holdfast agent token AGENT --ttl 8h` makes one", nil)
	}
	if c.before.After(now.Add(Skew)) {
		return refuse(holdfast.KindJWT, "the token is not valid before "+c.before.Format(time.RFC3339), "compare the clocks", nil)
	}
	if c.issued.After(now.Add(Skew)) {
		return refuse(holdfast.KindJWT, "the token was issued in the future, at "+c.issued.Format(time.RFC3339), "compare the clocks", nil)
	}
	return nil
}

// identity returns a copy that shares nothing with the cache, so that claims
// are the same at every use (invariant 3).
func (c *verified) identity() holdfast.Identity {
	id := c.id
	id.Roles = slices.Clone(c.id.Roles)
	return id
}

// reader collects the first fault while claims are read in a fixed order.
type reader struct {
	claims object
	err    error
}

func (r *reader) fail(kind holdfast.Kind, why, hint string) {
	if r.err == nil {
		r.err = refuse(kind, why, hint, nil)
	}
}

// name reads an optional name.
func (r *reader) name(claim string) string {
	s, err := r.claims.text(claim)
	if err != nil {
		r.fail(holdfast.KindJWTDecode, "claim "+err.Error(), "")
		return ""
	}
	if s == "" {
		return ""
	}
	if fault := nameFault(s); fault != "" {
		r.fail(holdfast.KindJWT, "claim "+claim+" "+fault, "")
	}
	return s
}

// required reads a name that must be there.
func (r *reader) required(claim string) string {
	s := r.name(claim)
	if s == "" {
		r.fail(holdfast.KindJWT, "the token has no "+claim+" claim", "let the issuer put "+claim+" into its tokens")
	}
	return s
}

// instant reads an optional time.
func (r *reader) instant(claim string, round func(float64) float64) time.Time {
	if !r.claims.has(claim) {
		return time.Time{}
	}
	t, err := r.claims.instant(claim, round)
	if err != nil {
		r.fail(holdfast.KindJWTDecode, "claim "+err.Error(), "times are seconds since 1970 as a number")
	}
	return t
}

func (r *reader) roles() []string {
	if !r.claims.has("roles") {
		r.fail(holdfast.KindJWT, "the token has no roles claim", "let the issuer put roles into its tokens")
		return nil
	}
	roles, err := r.claims.texts("roles")
	if err != nil {
		r.fail(holdfast.KindJWTDecode, "claim "+err.Error(), "")
	}
	if len(roles) > MaxRoles {
		r.fail(holdfast.KindJWT, "the token has more than 256 roles", "")
	}
	for _, role := range roles {
		if fault := nameFault(role); fault != "" {
			r.fail(holdfast.KindJWT, "a role "+fault, "")
		}
	}
	return roles
}

// tenant reads the tenant; a missing one is the document's TenantContextError
// (D8), and so is a name that no token may bear.
func (r *reader) tenant(is *Issuer) string {
	from := is.TenantFrom
	if from == "" {
		from = "tenant_id"
	}
	s, err := r.claims.text(from)
	if err != nil {
		r.fail(holdfast.KindJWTDecode, "claim "+err.Error(), "")
		return ""
	}
	if s == "" {
		r.fail(holdfast.KindTenantContext, "the token has no "+from+" claim", "let the issuer put "+from+" into its tokens")
		return ""
	}
	if fault := nameFault(s); fault != "" {
		r.fail(holdfast.KindTenantContext, "claim "+from+" "+fault, "")
	}
	if reserved(s) {
		r.fail(holdfast.KindTenantContext, "the tenant "+show(s)+" is reserved", "")
	}
	if !speaksFor(is, s) {
		r.fail(holdfast.KindTenantContext, "issuer "+show(is.Name)+" may not speak for tenant "+show(s), "list the tenant under the issuer")
	}
	return s
}

// reserved says whether a tenant is Holdfast's own: what nobody vouched for is
// recorded under one, and others, such as the checkpoints' log, begin with _.
func reserved(tenant string) bool {
	return strings.EqualFold(tenant, holdfast.Unverified) || strings.HasPrefix(tenant, "_")
}

func speaksFor(is *Issuer, tenant string) bool {
	if len(is.Tenants) == 0 {
		return tenant != holdfast.Local
	}
	return slices.Contains(is.Tenants, tenant)
}

// audience says whether aud, a string or an array of strings, names us.
func (r *reader) audience(want string) {
	if !r.claims.has("aud") {
		r.fail(holdfast.KindJWT, "the token has no aud claim", "let the issuer name "+show(want)+" as audience")
		return
	}
	var have []string
	var err error
	if r.claims["aud"].Kind() == '[' {
		have, err = r.claims.texts("aud")
	} else {
		have = make([]string, 1)
		have[0], err = r.claims.text("aud")
	}
	if err != nil {
		r.fail(holdfast.KindJWTDecode, "claim "+err.Error(), "")
	} else if !slices.Contains(have, want) {
		r.fail(holdfast.KindJWT, "the token is for another audience", "let the issuer name "+show(want)+" as audience")
	}
}

// read maps the claims of a token whose signature has been verified.
func read(claims object, is *Issuer) (*verified, error) {
	r := &reader{claims: claims}
	r.audience(is.Audience)
	if !claims.has("exp") {
		r.fail(holdfast.KindJWT, "the token has no exp claim", "let the issuer put exp into its tokens")
	}
	c := &verified{id: holdfast.Identity{
		Expires:   r.instant("exp", math.Floor),
		Tenant:    r.tenant(is),
		Principal: r.required("sub"),
		TokenID:   r.required("jti"),
		Roles:     r.roles(),
		Agent:     r.name("agent"),
		Kind:      r.name("agent_kind"),
		Parent:    r.name("agent_parent"),
		Session:   r.name("session"),
		Intent:    r.name("intent"),
		Chain:     r.name("chain"),
		Tier:      r.name("tier"),
		Issuer:    is.Name,
	}}
	c.before, c.issued = r.instant("nbf", math.Ceil), r.instant("iat", math.Ceil)
	if r.err != nil {
		return nil, r.err
	}
	if c.id.Agent == "" {
		c.id.Agent = c.id.Principal
	}
	if c.id.Session == "" {
		c.id.Session = c.id.TokenID
	}
	return c, nil
}

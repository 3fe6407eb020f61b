package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/trust"
)

// k2Permission asks whether this one may do that: a verified and unrevoked
// token, roles that are mapped, and every required permission both granted by
// a role and open to the agent's trust level (spec 003 section 1.3, D8).
func k2Permission(_ context.Context, j *judgement) holdfast.Opinion {
	if j.whoErr != nil {
		return refusal(holdfast.K2, tokenState(j.whoErr), j.whoErr)
	}
	if errors.Is(j.factErr, context.Canceled) {
		// Nothing is wrong with the store: whoever asked went away meanwhile.
		return deny(holdfast.K2, holdfast.KindCanceled, "the caller gave up before the crossing began", "")
	}
	if j.factErr != nil {
		op := deny(holdfast.K2, holdfast.KindRevocationCache, "the revocation list cannot be read", "nothing is allowed until the store answers; see `holdfast doctor`")
		op.State = "RESOLVING_PERMISSIONS"
		return op
	}
	if !j.now.Before(j.who.Expires) {
		op := deny(holdfast.K2, holdfast.KindExpiredToken, "the token expired at "+j.who.Expires.UTC().Format("2006-01-02T15:04:05Z"), "ask again with a fresh token")
		op.State = "EXPIRED"
		return op
	}
	if j.revoked {
		op := deny(holdfast.K2, holdfast.KindRevokedToken, "the token was revoked", "a revocation is for ever; ask for a new token")
		op.State = "REVOKED"
		return op
	}
	if j.pol.Roles == nil {
		return deny(holdfast.K2, holdfast.KindPermissionRegistry, "no roles are configured", "map roles to permissions under identity: in holdfast.yaml")
	}
	granted, unmapped := token.Permissions(j.pol.Roles, j.who.Roles)
	j.granted = granted
	if unmapped != "" {
		op := deny(holdfast.K2, holdfast.KindRoleNotFound, fmt.Sprintf("the role %q is mapped to no permissions", excerpt.Of(unmapped, 64)), "map it under identity: roles: in holdfast.yaml")
		op.State = "UNAUTHORIZED"
		return op
	}
	if no, denied := j.atDoor(holdfast.K2); denied && j.contract == nil {
		return no
	}
	if j.contract == nil {
		return deny(holdfast.K2, holdfast.KindPermission, "an unlisted boundary has no permissions that could be granted", "")
	}
	required := j.contract.Permissions
	if missing := token.Missing(required, granted); len(missing) > 0 {
		return unauthorized("the roles of "+excerpt.Of(j.who.Principal, 64)+" do not grant "+strings.Join(missing, ", "), "grant it to a role under identity: roles: in holdfast.yaml")
	}
	for _, p := range required {
		if !trust.May(j.agent.Level, p) {
			return unauthorized(fmt.Sprintf("the trust level %s may not %s", j.agent.Level, p), "a person can raise it: `holdfast agent trust "+excerpt.Of(j.agent.Name, 64)+" LEVEL`")
		}
	}
	if len(required) == 0 {
		return allow(holdfast.K2, "AUTHORIZED", noneDeclared, "the token is valid; the contract requires no permission")
	}
	return allow(holdfast.K2, "AUTHORIZED", "roles "+strings.Join(j.who.Roles, ", "), "granted "+strings.Join(required, ", "))
}

func unauthorized(why, hint string) holdfast.Opinion {
	op := deny(holdfast.K2, holdfast.KindPermission, why, hint)
	op.State = "UNAUTHORIZED"
	return op
}

func tokenState(err error) string {
	switch holdfast.KindOf(err) {
	case holdfast.KindExpiredToken:
		return "EXPIRED"
	case holdfast.KindTenantContext:
		return "TENANT_MISSING"
	}
	return "INVALID_JWT"
}

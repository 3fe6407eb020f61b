package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// k4Trace asks who is asking in which flow (spec 003 section 1.5).
func k4Trace(_ context.Context, j *judgement) holdfast.Opinion {
	if j.whoErr != nil {
		op := deny(holdfast.K4, holdfast.KindTenantContext, "no verified token names a tenant", "")
		op.State = "TENANT_MISSING"
		return op
	}
	if j.who.Tenant == "" {
		op := deny(holdfast.K4, holdfast.KindTenantContext, "the token names no tenant", "add a tenant_id claim")
		op.State = "TENANT_MISSING"
		return op
	}
	if j.corrErr != nil {
		return refusal(holdfast.K4, "RESOLVE_CORRELATION", j.corrErr)
	}
	return allow(holdfast.K4, "INJECTED", "", "correlation "+j.correlation)
}

package kernel

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
)

// k1Schema asks whether the request is well formed (spec 003 section 1.2, D7).
func k1Schema(ctx context.Context, j *judgement) holdfast.Opinion {
	if j.contract == nil && len(j.req.Denials) > 0 && j.docErr == nil {
		return allow(holdfast.K1, "VALID", noneDeclared, "the payload is well-formed JSON")
	}
	if j.contract == nil {
		op := deny(holdfast.K1, holdfast.KindSchemaNotFound,
			fmt.Sprintf("no contract lists the boundary %q", j.k.quote(j.req.Boundary, 128)),
			"list it under boundaries: in holdfast.yaml, or use a tool that the server lists")
		op.State = "NOT_FOUND"
		return op
	}
	c := j.contract
	if c.SchemaErr != nil {
		return refusal(holdfast.K1, "NOT_FOUND", c.SchemaErr)
	}
	if j.docErr != nil {
		op := refusal(holdfast.K1, "INVALID", j.docErr)
		if op.Kind != holdfast.KindPayloadTooLarge {
			op.Kind = holdfast.KindValidation
		}
		return op
	}
	if err := c.Names.Check(j.doc.Value()); err != nil {
		return refusal(holdfast.K1, "INVALID", err)
	}
	if c.Input == nil {
		return allow(holdfast.K1, "VALID", noneDeclared, "the payload is well-formed JSON")
	}
	errs, err := c.Input.Validate(ctx, j.doc.Value())
	if ctx.Err() != nil {
		return deny(holdfast.K1, holdfast.KindTimeout, "validation took longer than "+gateTime.String(), "")
	}
	if err != nil {
		return refusal(holdfast.K1, "INVALID", err)
	}
	if len(errs) == 0 {
		return allow(holdfast.K1, "VALID", c.SchemaName(), "the payload conforms to "+c.SchemaName())
	}
	op := deny(holdfast.K1, holdfast.KindValidation, schema.Describe(errs),
		"change the payload to conform to the schema "+c.SchemaName())
	op.State, op.Rule = "INVALID", c.SchemaName()
	return op
}

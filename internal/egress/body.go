package egress

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/domain"
)

// readBody reads, decodes, caps and redacts the body of r. Its error is a
// ValidationError (undecodable), PayloadTooLargeError or RedactionError.
func (p *Proxy) readBody(context.Context, *domain.Domain, *http.Request) (*body, *holdfast.Error) {
	return nil, &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: "no body is read yet"}
}

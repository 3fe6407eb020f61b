package egress

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// outgoing is what of the client's header goes to d: without what belongs to
// this connection, what speaks to a proxy and the agent's own credentials (but
// where d lets them pass), the rest redacted. h is not changed. Its error is a
// RedactionError.
func (p *Proxy) outgoing(*domain.Domain, http.Header) (http.Header, []redact.Finding, *holdfast.Error) {
	return nil, nil, &holdfast.Error{Kind: holdfast.KindRedaction, Gate: holdfast.K6, Why: "no header is cleaned yet"}
}

// credential adds the tenant's credential for d, if it names one, to the header
// of a request that is about to be sent.
func (p *Proxy) credential(context.Context, *domain.Domain, http.Header) error {
	return &holdfast.Error{Kind: holdfast.KindInternal, Why: "no credential is added yet", Err: holdfast.ErrNotStarted}
}

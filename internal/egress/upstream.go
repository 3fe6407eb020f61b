package egress

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/domain"
)

// outbound is what the outbound half keeps: transports, and the memory that
// buffered bodies may take.
type outbound struct{}

// start is called once, by New.
func (o *outbound) start(*Proxy) {}

// stop ends what is kept; it is called once, by Close, after every crossing.
func (o *outbound) stop() {}

// send sends req to d at o. Its error is a *holdfast.Error (ForwardError,
// TimeoutError, DomainBlockedError for an address that may not be dialled),
// with holdfast.ErrNotStarted in its chain where nothing left.
func (p *Proxy) send(context.Context, *domain.Domain, domain.Origin, *http.Request) (*http.Response, error) {
	return nil, &holdfast.Error{Kind: holdfast.KindInternal, Why: "nothing is sent yet", Err: holdfast.ErrNotStarted}
}

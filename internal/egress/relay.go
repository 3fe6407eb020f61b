package egress

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/domain"
)

// relay gives resp to the client, redacted, and closes its body.
func (p *Proxy) relay(_ context.Context, _ http.ResponseWriter, _ *domain.Domain, resp *http.Response) (relayed, error) {
	resp.Body.Close()
	return relayed{}, &holdfast.Error{Kind: holdfast.KindInternal, Why: "nothing is relayed yet"}
}

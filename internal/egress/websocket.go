package egress

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/domain"
)

// webSocket makes the handshake up with the upstream, takes the client's
// connection over from w, and carries messages both ways until one end closes.
// r is the client's handshake; up is what goes out of it, with its credential.
func (p *Proxy) webSocket(_ context.Context, _ http.ResponseWriter, _, _ *http.Request, _ *domain.Domain, _ domain.Origin) (relayed, error) {
	return relayed{}, &holdfast.Error{Kind: holdfast.KindInternal, Why: "no WebSocket is carried yet", Err: holdfast.ErrNotStarted}
}

package egress

import (
	"context"
	"net"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/domain"
)

// tunnel carries bytes between client and o, uninspected and capped. The first
// thing that client reads is its TLS ClientHello, which was looked at: its name
// is o's host. It does not close client.
func (p *Proxy) tunnel(context.Context, net.Conn, *domain.Domain, domain.Origin) (relayed, error) {
	return relayed{}, &holdfast.Error{Kind: holdfast.KindInternal, Why: "no tunnel is carried yet", Err: holdfast.ErrNotStarted}
}

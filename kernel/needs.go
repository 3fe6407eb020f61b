package kernel

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/constitution"
)

// Rules is what the kernel needs of a constitution.
type Rules interface {
	// Judge asks every rule for that kind whose boundary pattern matches,
	// and returns those that spoke, in the rules' order. It ends by ctx.
	Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding
}

// Verifier checks a token's signature, issuer, audience and times, and reads
// its claims. An error is a *holdfast.Error of a K2 kind.
type Verifier interface {
	Verify(ctx context.Context, token holdfast.Secret, now time.Time) (holdfast.Identity, error)
}

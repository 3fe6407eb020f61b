package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// TurnedAway counts n requests or connections that a door turned away before it
// made crossings of them, because their caller has too many under way: they are
// in the event that ends the minute (denials_summarised), as its unrecorded
// ones. token is the caller's; whose is no good is nobody's. n below 1 counts
// nothing. A door calls it for many at once, as it verifies the token.
func (k *Kernel) TurnedAway(ctx context.Context, token holdfast.Secret, n int) {
	if n < 1 {
		return
	}
	j := &judgement{k: k, now: k.now().UTC()}
	j.who, j.whoErr = k.verify(ctx, token, j)
	k.flood.CountDropped(j.tenant(), j.who.Agent, j.now, n)
}

package upstream

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// What ended the wait for an answer, such as a client that left, is no proof that
// nothing was sent: what was reserved stays charged.
func TestSendError_whyTheWaitEndedIsNoProof(t *testing.T) {
	left := &holdfast.Error{Kind: holdfast.KindCanceled, Why: "the caller left"}
	if err := sendError(domain.Origin{}, 0, left, left); errors.Is(err, holdfast.ErrNotStarted) || holdfast.KindOf(err) != holdfast.KindForward {
		t.Errorf("%v", err)
	}
	if err := sendError(domain.Origin{}, 0, left, &notStarted{left}); !errors.Is(err, holdfast.ErrNotStarted) || holdfast.KindOf(err) != holdfast.KindCanceled {
		t.Errorf("%v", err)
	}
}

package daemon

import (
	"log/slog"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// Notices that tool servers cause fill their queue; one of a review and one of a
// halt are taken all the same.
func TestAttack_noticesOfReviewsPassAFullQueue(t *testing.T) {
	d := &Daemon{log: slog.New(slog.DiscardHandler),
		notices: make(chan kernel.Notice, 2), urgent: make(chan kernel.Notice, 2), halts: make(chan haltNotice, 1)}
	for range 10 {
		d.notice(kernel.Notice{Event: "tool_changed", Boundary: "mcp/x/y"})
	}
	d.notice(kernel.Notice{Event: "review_opened", Review: "rv_0000000000"})
	d.notice(kernel.Notice{Event: "halted"})
	if len(d.notices) != 2 || len(d.urgent) != 2 || len(d.halts) != 1 {
		t.Errorf("%d, %d and %d are taken", len(d.notices), len(d.urgent), len(d.halts))
	}
}

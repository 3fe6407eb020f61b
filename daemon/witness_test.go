package daemon

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/watch"
)

// A daemon that runs looks again and again whether its ledger contains what was signed
// of it. Where somebody has changed it behind its back that is CRITICAL, and everything
// is halted (D41a); what is right is told to nobody.
func TestD41a_VerificationFailed(t *testing.T) {
	d, _, down := up(t, watched)
	defer func() {
		_ = d.latch.Clear()
		down()
	}()
	act(t, d)
	if _, err := d.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	failed := func() bool {
		for _, s := range d.watching.watch.Hold() {
			if s.Condition == watch.VerificationFailed && s.Severity == watch.Critical {
				return true
			}
		}
		return false
	}
	if d.verify(t.Context()); failed() || d.latch.Halted() {
		t.Fatal("what is right is told as wrong")
	}
	pastTriggers(t, d.Paths.DB, func(t *testing.T, db *sql.DB) { cutTree(t, db, holdfast.Local, 1) })
	if d.verify(t.Context()); !failed() {
		t.Fatal("nobody is told; the ledger:", d.verified(t.Context()))
	}
	until(t, "the halt", d.latch.Halted)
	if s, err := d.latch.Read(); err != nil || !strings.Contains(s.Why, "cut back") {
		t.Errorf("%+v %v", s, err)
	}
}

package daemon

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/watch"
	"github.com/holdfast-dev/holdfast/kernel"
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

// What was taken from the ledger is as CRITICAL as what was written anew; what could
// not be looked at is neither.
func TestD41a_VerificationFailed_whatIsGone(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *Daemon){
		"a leaf": func(t *testing.T, d *Daemon) { spoilLeaf(t, d, "(SELECT min(seq) FROM leaf)") },
		"a hash": func(t *testing.T, d *Daemon) {
			pastTriggers(t, d.Paths.DB, func(t *testing.T, db *sql.DB) { run(t, db, "UPDATE leaf SET hash = x'00'") })
		},
		"the witness": func(t *testing.T, d *Daemon) { forge(t, d.Paths.Signed) },
	} {
		t.Run(name, func(t *testing.T) {
			d, _, down := up(t, watched)
			defer func() {
				_ = d.latch.Clear()
				down()
			}()
			act(t, d)
			if _, err := d.checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			spoil(t, d)
			d.verify(t.Context())
			until(t, "the halt", d.latch.Halted)
		})
	}
	if !unlooked(fmt.Errorf("open: %w", syscall.EMFILE)) || unlooked(fmt.Errorf("tile 1: %w", kernel.ErrNotFound)) || unlooked(errors.New("3 hashes where 256 were asked for")) {
		t.Error("what could not be read is taken for what is wrong, or the other way about")
	}
}

func spoilLeaf(t *testing.T, d *Daemon, seq string) {
	t.Helper()
	pastTriggers(t, d.Paths.DB, func(t *testing.T, db *sql.DB) {
		run(t, db, "DELETE FROM leaf WHERE tenant = (SELECT id FROM tenant WHERE name = ?) AND seq = "+seq, holdfast.Local)
	})
}

func forge(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, []byte("forged"), 0o600); err != nil {
		t.Fatal(err)
	}
}

package daemon

import (
	"database/sql"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
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
	if _, err := d.witness.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	failed := func() bool {
		for _, s := range d.watching.Watch.Hold() {
			if s.Condition == watch.VerificationFailed && s.Severity == watch.Critical {
				return true
			}
		}
		return false
	}
	if d.witness.Verify(t.Context()); failed() || d.latch.Halted() {
		t.Fatal("what is right is told as wrong")
	}
	pastTriggers(t, d.Paths.DB, func(t *testing.T, db *sql.DB) { cutTree(t, db, holdfast.Local, 1) })
	if d.witness.Verify(t.Context()); !failed() {
		t.Fatal("nobody is told; the ledger:", d.witness.Trouble())
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
		"no witness, though it was signed twice": func(t *testing.T, d *Daemon) {
			act(t, d)
			_, err := d.witness.Checkpoint(t.Context())
			if err := errors.Join(err, os.Remove(d.Paths.Signed)); err != nil {
				t.Fatal(err)
			}
		},
		"a link for the witness": func(t *testing.T, d *Daemon) {
			if err := errors.Join(os.Rename(d.Paths.Signed, d.Paths.Signed+".real"), os.Symlink(d.Paths.Signed+".real", d.Paths.Signed)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _, down := up(t, watched)
			defer func() {
				_ = d.latch.Clear()
				down()
			}()
			act(t, d)
			if _, err := d.witness.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			spoil(t, d)
			d.witness.Verify(t.Context())
			until(t, "the halt", d.latch.Halted)
		})
	}
}

// Where the ledger cannot be verified nobody is stopped, and nobody takes it for whole
// either: status, the pages and what goes on now say why, people are told once an
// hour, and all of it ends with the next verification that can be carried out.
func TestD41a_VerificationFailed_whatCannotBeLookedAt(t *testing.T) {
	d, _, down := up(t, strings.Replace(watched, "pages: none", `pages: "127.0.0.1:0"`, 1))
	defer down()
	act(t, d)
	if _, err := d.witness.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := signIn(t, d)
	const words = "whether the ledger contains what was signed of it could not be seen: "
	// told is where it is said, with the reason.
	told := func() (in []string) {
		s, err := d.Status(t.Context())
		n, nerr := d.Now(t.Context(), "")
		if err := errors.Join(err, nerr); err != nil {
			t.Fatal(err)
		}
		for where, all := range map[string]string{"status": strings.Join(s.Problems, "\n"), "now": strings.Join(n.Because, "\n"), "pages": page("/")} {
			if strings.Contains(all, words) && strings.Contains(all, "no such file") {
				in = append(in, where)
			}
		}
		if slices.Contains(in, "now") && n.Health == health.Green {
			t.Error("what is unknown is GREEN")
		}
		slices.Sort(in)
		return in
	}
	if d.witness.Verify(t.Context()); len(told()) > 0 || d.witness.Trouble() != "" {
		t.Fatalf("nothing is wrong, and told in %q", told())
	}
	away := d.Paths.DB + ".away"
	if err := os.Rename(d.Paths.DB, away); err != nil {
		t.Fatal(err)
	}
	d.witness.Verify(t.Context())
	if err := os.Rename(away, d.Paths.DB); err != nil {
		t.Fatal(err)
	}
	if in := told(); !slices.Equal(in, []string{"now", "pages", "status"}) || d.witness.Trouble() == "" ||
		d.latch.Halted() {
		t.Errorf("told in %q; %q; halted: %v", in, d.witness.Trouble(), d.latch.Halted())
	}
	if d.witness.Verify(t.Context()); len(told()) > 0 || d.witness.Trouble() != "" {
		t.Errorf("it was verified since, and told in %q", told())
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

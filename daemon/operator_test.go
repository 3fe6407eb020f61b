package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

var (
	passphrase = holdfast.NewSecret("correct horse battery")
	nothing    = func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, nil }
)

// openHolding opens a daemon with a boundary at which each request is held.
func openHolding(t *testing.T) *Daemon {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "holdfast.yaml")
	text := "version: 1\nboundaries:\n  - {boundary: files/delete, risk: HIGH}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), Options{State: filepath.Join(dir, "state"), Config: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// askReview makes a request that is held, and returns its review.
func askReview(t *testing.T, d *Daemon, payload string) Review {
	t.Helper()
	token, err := d.Mint(holdfast.Identity{Agent: "tidy"})
	if err != nil {
		t.Fatal(err)
	}
	req := holdfast.Request{Boundary: "files/delete", Payload: []byte(payload), Token: token}
	out, err := d.Kernel.Cross(t.Context(), req, nothing)
	if holdfast.KindOf(err) != holdfast.KindHeld {
		t.Fatal(err)
	}
	r, err := d.Kernel.Review(t.Context(), out.Review)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOperatorDecidesReviews(t *testing.T) {
	d := openHolding(t)
	if _, err := d.OpenOperator("ada", passphrase); holdfast.KindOf(err) != holdfast.KindPermission {
		t.Errorf("without a key: %v", err)
	}
	if _, err := d.CreateOperator("a name", passphrase); holdfast.KindOf(err) != holdfast.KindUsage {
		t.Errorf("a bad name: %v", err)
	}
	id, err := d.CreateOperator("ada", passphrase)
	if err != nil || len(d.operators()) != 1 || d.operators()[0].ID() != id {
		t.Fatalf("%s, %v", id, err)
	}
	if _, err := d.CreateOperator("eve", passphrase); holdfast.KindOf(err) != holdfast.KindConflict {
		t.Errorf("a second first key: %v", err)
	}
	wrong := holdfast.NewSecret("incorrect horse battery")
	if _, err := d.OpenOperator("", wrong); holdfast.KindOf(err) != holdfast.KindPermission {
		t.Errorf("a wrong passphrase: %v", err)
	}
	if _, err := d.OpenOperator("eve", passphrase); holdfast.KindOf(err) != holdfast.KindUsage {
		t.Errorf("the key of another: %v", err)
	}
	ada, err := d.OpenOperator("", passphrase)
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour)
	for payload, c := range map[string]struct {
		answer Answer
		state  review.State
	}{
		`1`: {Answer{Act: Approve}, review.Approved},
		`2`: {Answer{Act: Reject, Reason: "no"}, review.Rejected},
		`3`: {Answer{Act: Changes, Reason: "another"}, review.Changes},
		`4`: {Answer{Act: Defer, Until: until}, review.Deferred},
	} {
		r, err := ada.Decide(askReview(t, d, payload), c.answer)
		if err != nil || r.State != c.state || r.Reviewer != "ada" || r.Reason != c.answer.Reason {
			t.Errorf("%+v: %s by %q, %v", c.answer, r.State, r.Reviewer, err)
		}
	}
	for payload, a := range map[string]Answer{`5`: {}, `6`: {Act: Changes}, `7`: {Act: Defer}, `8`: {Act: "unpause"}} {
		r := askReview(t, d, payload)
		if _, err := ada.Decide(r, a); err == nil {
			t.Errorf("%+v was carried out", a)
		}
		if now, err := d.Kernel.Review(t.Context(), r.ID); err != nil || now.State != review.Pending {
			t.Errorf("%+v: %s, %v", a, now.State, err)
		}
	}
	r := askReview(t, d, `{"token":"sk-ant-api03-`+string(make76())+`"}`)
	if _, err := ada.Decide(r, Answer{Act: Approve}); !r.Masked || holdfast.KindOf(err) != holdfast.KindPermission {
		t.Errorf("masked %v: %v", r.Masked, err)
	}
	if r, err = ada.Decide(r, Answer{Act: Approve, InPart: true}); err != nil || r.State != review.Approved {
		t.Errorf("%s, %v", r.State, err)
	}
	ada.Close()
	if _, err := ada.Sign(Statement{Act: "resume"}); holdfast.KindOf(err) != holdfast.KindPermission {
		t.Errorf("a closed operator signed: %v", err)
	}
}

// make76 returns a text as long as that of a key.
func make76() (b []byte) {
	for i := range 76 {
		b = append(b, "aB3xY7kLm9Qz"[i*i%12])
	}
	return b
}

func TestExportLedgerIsSignedAndVerifies(t *testing.T) {
	d := openHolding(t)
	askReview(t, d, `1`)
	key, err := LedgerKey(d.Paths)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "export"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := d.ExportLedger(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	reports, err := (&ledger.ExportVerifier{Key: key, Deep: true}).Verify(file)
	if err != nil || len(reports) != 2 {
		t.Fatalf("%v, %v", reports, err)
	}
	if local := reports[1]; local.Beyond() != 0 || local.Events == 0 {
		t.Errorf("%+v", local)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.ExportLedger(ended, file); err == nil {
		t.Error("an export succeeded after its context ended")
	}
}

package witness

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
)

func TestReadFailureIsNoChange(t *testing.T) {
	if _, _, err := Read(filepath.Join(t.TempDir(), strings.Repeat("long", 100)), nil); !isReadFailure(err) {
		t.Errorf("what the machine cannot open is taken for forged: %v", err)
	}
	if !isReadFailure(fmt.Errorf("open: %w", syscall.EMFILE)) ||
		isReadFailure(fmt.Errorf("tile 1: %w", kernel.ErrNotFound)) ||
		isReadFailure(errors.New("3 hashes where 256 were asked for")) {
		t.Error("what could not be read is taken for what is wrong, or the other way about")
	}
}

// While the ledger cannot be verified it is tried again each minute, and people hear of it once an hour.
func TestTroubleIsToldOnceAnHour(t *testing.T) {
	w, now := New(Options{}), time.Now()
	if w.verifyAfter() != verifyEvery {
		t.Errorf("nothing is wrong, and it is looked again after %s", w.verifyAfter())
	}
	first := w.noteLook(now, "x")
	if w.verifyAfter() >= verifyEvery {
		t.Errorf("it is looked again after %s", w.verifyAfter())
	}
	if !first || w.noteLook(now, "x") || !w.noteLook(now.Add(verifyEvery), "x") ||
		w.noteLook(now.Add(verifyEvery+verifyAgain), "x") {
		t.Error("people are not told once an hour")
	}
	if w.noteLook(now, ""); w.verifyAfter() != verifyEvery || w.Trouble() != "" {
		t.Errorf("it was verified since: %s, %q", w.verifyAfter(), w.Trouble())
	}
}

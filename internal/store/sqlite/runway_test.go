package sqlite

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/storetest"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The log is lengthened while it is written, faster than in earnest; what was
// committed is all there in a copy that nobody closed, zeros behind it.
func TestRunwayLosesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	defer s.Close()
	log := s.tidy.log
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				lengthen(log, runwayStep)
			}
		}
	}()
	const n = 300
	for i := range n {
		err := s.Update(t.Context(), func(tx kernel.Tx) error {
			_, err := tx.Append(storetest.Leaf(t, "acme", ledger.KindEvent, storetest.Crossing(i), strconv.Itoa(i)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-stopped
	if info, err := os.Stat(log); err != nil || info.Size() < runwayBytes || info.Size() > logBytes+runwayBytes+runwayStep {
		t.Fatalf("the log: %v, %v", info.Size(), err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(s.opt.Path + suffix)
		if err == nil {
			err = os.WriteFile(copied+suffix, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(t.Context(), Options{Path: copied})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	err = again.View(t.Context(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err == nil && (len(heads) != 1 || heads[0].Size != n) {
			t.Errorf("%+v", heads)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A new store has a short runway soon, and the whole once it is written to.
func TestRunwayOfANewStore(t *testing.T) {
	s := openStore(t, t.TempDir())
	defer s.Close()
	awaitLength(t, s, firstBytes)
	for i := range 100 {
		err := s.Update(t.Context(), func(tx kernel.Tx) error {
			_, err := tx.Append(storetest.Leaf(t, "acme", ledger.KindEvent, storetest.Crossing(i), strings.Repeat("x", firstBytes/100)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	awaitLength(t, s, runwayBytes)
}

// awaitLength waits until the store's log has n bytes.
func awaitLength(t *testing.T, s *Store, n int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if info, err := os.Stat(s.tidy.log); err == nil && info.Size() >= n {
			return
		}
	}
	t.Fatalf("the log did not become %d bytes long", n)
}

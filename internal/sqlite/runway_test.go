package sqlite

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
	"github.com/holdfast-dev/holdfast/storetest"
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

// A new store has its runway soon.
func TestRunwayOfANewStore(t *testing.T) {
	s := openStore(t, t.TempDir())
	defer s.Close()
	for range 500 {
		if info, err := os.Stat(s.tidy.log); err == nil && info.Size() >= runwayBytes {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the log was not lengthened")
}

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// testErasure erases parts, and nothing else.
func testErasure(t *testing.T, open Open) {
	s := begin(t, open)
	part := append(bytes.Repeat([]byte{7}, ledger.SaltSize), "the result"...)
	var ls []ledger.Leaf
	for i := range 4 {
		l := Leaf(t, "acme", ledger.KindEntry, Crossing(i), "entry")
		l.Part = part
		ls = append(ls, l)
	}
	s.append(ls...)
	s.everywhere(func(tx kernel.Tx) error { return parts(tx, true, true, true, true) })
	boom := errors.New("boom")
	if err := s.Update(context.Background(), func(tx kernel.Tx) error {
		return errors.Join(tx.EraseParts("acme", 0, 4), boom)
	}); !errors.Is(err, boom) {
		t.Fatalf("an update that failed: %v", err)
	}
	s.everywhere(func(tx kernel.Tx) error { return parts(tx, true, true, true, true) })
	s.update(func(tx kernel.Tx) error { return tx.EraseParts("acme", 1, 3) })
	s.everywhere(func(tx kernel.Tx) error { return parts(tx, true, false, false, true) })
	s.update(func(tx kernel.Tx) error {
		if tx.EraseParts("acme", 0, 5) == nil || tx.EraseParts("acme", 3, 2) == nil || tx.EraseParts("nobody", 0, 0) == nil {
			return errors.New("a range that is not there was erased")
		}
		return nil
	})
	if err := s.View(context.Background(), func(tx kernel.Tx) error { return tx.EraseParts("acme", 0, 1) }); !errors.Is(err, kernel.ErrReadOnly) {
		t.Fatalf("in a view: %v", err)
	}
}

// parts compares which leaves of the tenant have their part.
func parts(tx kernel.Tx, want ...bool) error {
	i := 0
	err := tx.Leaves("acme", 0, int64(len(want)), func(l ledger.Stored) error {
		if (l.Part != nil) != want[i] {
			return fmt.Errorf("leaf %d has its part: %v, want %v", l.Seq, l.Part != nil, want[i])
		}
		if len(l.Record) == 0 {
			return fmt.Errorf("leaf %d lost its record", l.Seq)
		}
		i++
		return nil
	})
	if err == nil && i != len(want) {
		err = fmt.Errorf("%d leaves, want %d", i, len(want))
	}
	return err
}

package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/mod/sumdb/tlog"
)

func testLedger(t *testing.T, open Open) {
	s := begin(t, open)
	part := append(bytes.Repeat([]byte{7}, ledger.SaltSize), "the result"...)
	id := Crossing(1)
	b := Leaf(t, "acme", ledger.KindBegin, id, "begin")
	e := Leaf(t, "acme", ledger.KindEntry, id, "entry")
	e.At, e.Part = start().Add(time.Second), part
	v := Leaf(t, "acme", ledger.KindEvent, "", "event")
	o := Leaf(t, "other", ledger.KindEvent, id, "an event may name a crossing")
	places := s.append(b, e, v, o)
	want4 := []ledger.Place{{Tenant: "acme", Seq: 0}, {Tenant: "acme", Seq: 1}, {Tenant: "acme", Seq: 2}, {Tenant: "other", Seq: 0}}
	for i, l := range []ledger.Leaf{b, e, v, o} {
		want4[i].Hash = tlog.RecordHash(l.Record.Bytes())
	}
	if err := differ("places", places, want4); err != nil {
		t.Fatal(err)
	}
	stored := func(l ledger.Leaf, p ledger.Place) ledger.Stored {
		return ledger.Stored{Place: p, Kind: l.Kind, Crossing: l.Crossing, At: l.At, Record: l.Record.Bytes(), Part: l.Part}
	}
	s.everywhere(func(tx kernel.Tx) error {
		got, err := tx.Leaf("acme", 1)
		if err != nil {
			return err
		}
		if err := differ("leaf", got, stored(e, places[1])); err != nil {
			return err
		}
		clear(got.Record) // it is the caller's
		both, err := tx.Crossing("acme", id)
		if err != nil {
			return err
		}
		if err := differ("crossing", both, []ledger.Stored{stored(b, places[0]), stored(e, places[1])}); err != nil {
			return err
		}
		var all []ledger.Stored
		err = tx.Leaves("acme", 1, 99, func(l ledger.Stored) error { all = append(all, l); return nil })
		if err != nil {
			return err
		}
		if err := differ("leaves", all, []ledger.Stored{stored(e, places[1]), stored(v, places[2])}); err != nil {
			return err
		}
		if l, err := tx.Leaf("other", 0); err != nil || l.Crossing != id || l.Part != nil {
			return fmt.Errorf("leaf of the other tenant: %+v, %v", l, err)
		}
		enough := errors.New("enough")
		n := 0
		err = tx.Leaves("acme", 0, 3, func(ledger.Stored) error { n++; return enough })
		if !errors.Is(err, enough) || n != 1 {
			return fmt.Errorf("leaves went on after an error: %d times, %v", n, err)
		}
		for _, tenant := range []string{"acme", "other"} {
			for _, end := range []int64{99, 1 << 40, 1<<40 + 1, math.MaxInt64} {
				n := 0
				err := tx.Leaves(tenant, 0, end, func(l ledger.Stored) error { n++; return differ("tenant", l.Tenant, tenant) })
				if want := map[string]int{"acme": 3, "other": 1}[tenant]; err != nil || n != want {
					return fmt.Errorf("%d leaves of %s before %d, want %d: %v", n, tenant, end, want, err)
				}
			}
		}
		for _, from := range []int64{-5, 3, 99} {
			err := tx.Leaves("acme", from, from, func(ledger.Stored) error { return enough })
			if err != nil {
				return fmt.Errorf("leaves of the empty range at %d: %w", from, err)
			}
		}
		return missing(tx, id)
	})
	testEvents(s, id, o, places[3], stored)
	refusals(t, s)
}

// testEvents: the events of a crossing are those of that tenant that name it,
// in order, those of this very update among them, and at most as many as asked.
func testEvents(s *suite, id string, o ledger.Leaf, at ledger.Place, stored func(ledger.Leaf, ledger.Place) ledger.Stored) {
	two := Leaf(s, "other", ledger.KindEvent, id, "a second")
	two.Part = append(bytes.Repeat([]byte{9}, ledger.SaltSize), "a part"...)
	place := s.append(Leaf(s, "other", ledger.KindEvent, "", "beside it"), two)[1]
	s.everywhere(func(tx kernel.Tx) error {
		for limit, want := range map[int][]ledger.Stored{0: nil, -1: nil, 1: {stored(o, at)}, 2: {stored(o, at), stored(two, place)}, 9: {stored(o, at), stored(two, place)}} {
			got, err := tx.Events("other", id, limit)
			if err != nil {
				return err
			}
			if err := differ(fmt.Sprintf("events, at most %d", limit), got, want); err != nil {
				return err
			}
		}
		for _, none := range [][2]string{{"acme", id}, {"nobody", id}, {"other", ""}, {"other", Crossing(77)}, {"other", "no such"}} {
			if got, err := tx.Events(none[0], none[1], 9); err != nil || len(got) != 0 {
				return fmt.Errorf("events of %q: %v, %w", none, got, err)
			}
		}
		return nil
	})
	s.update(func(tx kernel.Tx) error {
		if _, err := tx.Append(Leaf(s, "other", ledger.KindEvent, id, "a third")); err != nil {
			return err
		}
		got, err := tx.Events("other", id, 9)
		if err == nil && len(got) != 3 {
			err = fmt.Errorf("%d events, with one of this update", len(got))
		}
		return err
	})
}

// missing asks for what is not there.
func missing(tx kernel.Tx, id string) error {
	var err error
	for _, seq := range []int64{-1, 3, 1 << 40, 1<<63 - 1} {
		if _, err = tx.Leaf("acme", seq); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("leaf %d: %w", seq, err)
		}
	}
	if _, err = tx.Leaf("nobody", 0); !errors.Is(err, kernel.ErrNotFound) {
		return fmt.Errorf("leaf of nobody: %w", err)
	}
	// K6_AC4: a tenant sees nothing of another's.
	if l, err := tx.Crossing("other", id); !errors.Is(err, kernel.ErrNotFound) {
		return fmt.Errorf("crossing of another tenant: %v, %w", l, err)
	}
	for _, none := range []string{"", "no such", Crossing(77)} {
		if _, err := tx.Crossing("acme", none); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("crossing %q: %w", none, err)
		}
	}
	return nil
}

// refusals are leaves that no store takes.
func refusals(t *testing.T, s *suite) {
	ok := Leaf(t, "acme", ledger.KindEvent, "", "x")
	bad := map[string]func(*ledger.Leaf){
		"a record that redaction did not make": func(l *ledger.Leaf) { l.Record = redact.Record{} },
		"no tenant":                            func(l *ledger.Leaf) { l.Tenant = "" },
		"an endless tenant":                    func(l *ledger.Leaf) { l.Tenant = strings.Repeat("x", 1<<20) },
		"kind 0":                               func(l *ledger.Leaf) { l.Kind = 0 },
		"kind 4":                               func(l *ledger.Leaf) { l.Kind = 4 },
		"a begin without a crossing":           func(l *ledger.Leaf) { l.Kind = ledger.KindBegin },
		"an entry without a crossing":          func(l *ledger.Leaf) { l.Kind = ledger.KindEntry },
		"a part without its salt":              func(l *ledger.Leaf) { l.Part = []byte("short") },
	}
	for name, spoil := range bad {
		l := ok
		spoil(&l)
		s.update(func(tx kernel.Tx) error {
			if p, err := tx.Append(l); err == nil {
				t.Errorf("a leaf with %s was taken as %v", name, p)
			}
			return nil
		})
	}
	s.view(func(tx kernel.Tx) error {
		_, err := tx.Leaf("acme", 3)
		want(t, "a refused leaf", err, kernel.ErrNotFound)
		return nil
	})
}

func testUniqueness(t *testing.T, open Open) {
	s := begin(t, open)
	kinds := [...]ledger.Kind{ledger.KindBegin, ledger.KindEntry}
	// Each way to append two of them, in one update, in two, and after the
	// store was opened again. Only begin and then entry is allowed.
	n := 0
	for _, how := range []string{"one update", "two updates", "reopened"} {
		for _, first := range kinds {
			for _, second := range kinds {
				n++
				id := Crossing(n)
				if n%2 == 0 {
					id = fmt.Sprintf("not a uuid %d", n)
				}
				allowed := first == ledger.KindBegin && second == ledger.KindEntry
				err := s.pair(how, Leaf(t, "acme", first, id, "1"), Leaf(t, "acme", second, id, "2"))
				if allowed && err != nil {
					t.Errorf("%s, %d then %d: %v", how, first, second, err)
				}
				if !allowed {
					want(t, fmt.Sprintf("%s, %d then %d", how, first, second), err, kernel.ErrExists)
				}
				err = s.pair("two updates", Leaf(t, "acme", ledger.KindEvent, id, "1"), Leaf(t, "acme", ledger.KindEvent, id, "2"))
				if err != nil {
					t.Errorf("two events of a crossing: %v", err)
				}
			}
		}
	}
	id := Crossing(1000)
	s.append(Leaf(t, "acme", ledger.KindBegin, id, "b"))
	s.update(func(tx kernel.Tx) error {
		_, err := tx.Append(Leaf(t, "other", ledger.KindEntry, id, "e"))
		want(t, "another tenant's entry for a crossing", err, kernel.ErrExists)
		return nil
	})
	// An id below ones that were seen is still new.
	s.append(Leaf(t, "acme", ledger.KindBegin, Crossing(0), "b"))
}

// pair appends two leaves and returns the second's error.
func (s *suite) pair(how string, a, b ledger.Leaf) error {
	s.Helper()
	if how == "one update" {
		var err error
		s.update(func(tx kernel.Tx) error {
			if _, err := tx.Append(a); err != nil {
				return err
			}
			_, err = tx.Append(b)
			return nil
		})
		return err
	}
	s.append(a)
	if how == "reopened" {
		s.again()
	}
	var err error
	s.update(func(tx kernel.Tx) error { _, err = tx.Append(b); return nil })
	return err
}

// testTree grows trees past tiles and compares every answer with x/mod tlog.
func testTree(t *testing.T, open Open) {
	s := begin(t, open)
	sizes := []int{1, 2, 3, 255, 256, 257, 600}
	var hashes []tlog.Hash // by tlog's numbering
	reader := tlog.HashReaderFunc(func(is []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(is))
		for i, x := range is {
			out[i] = hashes[x]
		}
		return out, nil
	})
	n := 0
	for i, size := range sizes {
		for n < size {
			var batch []ledger.Leaf
			for ; n < size && len(batch) < 100; n++ {
				l := Leaf(t, "acme", ledger.KindEvent, "", fmt.Sprint(n))
				hs, err := tlog.StoredHashes(int64(n), l.Record.Bytes(), reader)
				if err != nil {
					t.Fatal(err)
				}
				hashes = append(hashes, hs...)
				batch = append(batch, l)
			}
			s.append(batch...)
		}
		s.append(Leaf(t, "other", ledger.KindEvent, "", fmt.Sprint("other", i)))
		root, err := tlog.TreeHash(int64(size), reader)
		if err != nil {
			t.Fatal(err)
		}
		check := func(tx kernel.Tx) error { return sameTree(tx, int64(size), root, i+1) }
		s.update(check)
		s.view(check)
		if size > 250 {
			s.again()
			s.view(check)
			s.update(check)
		}
	}
	// In an update the tree is what it is there, with what was just added.
	s.update(func(tx kernel.Tx) error {
		for range 300 {
			l := Leaf(t, "acme", ledger.KindEvent, "", fmt.Sprint(n))
			hs, err := tlog.StoredHashes(int64(n), l.Record.Bytes(), reader)
			if err != nil {
				return err
			}
			hashes = append(hashes, hs...)
			n++
			if _, err := tx.Append(l); err != nil {
				return err
			}
		}
		root, err := tlog.TreeHash(int64(n), reader)
		if err != nil {
			return err
		}
		return sameTree(tx, int64(n), root, len(sizes))
	})
}

// sameTree checks head, nodes and proofs of tenant acme.
func sameTree(tx kernel.Tx, size int64, root tlog.Hash, others int) error {
	hs, err := tx.Heads()
	if err != nil {
		return err
	}
	if len(hs) != 2 || hs[0] != (ledger.Head{Tenant: "acme", Size: size, Root: root}) ||
		hs[1].Tenant != "other" || hs[1].Size != int64(others) {
		return fmt.Errorf("heads at size %d: %v, want root %v", size, hs, root)
	}
	nodes := tx.Nodes("acme")
	leaves, err := nodes.LeafHashes(0, size)
	if err != nil || int64(len(leaves)) != size {
		return fmt.Errorf("leaf hashes: %d of %d, %w", len(leaves), size, err)
	}
	if _, err := nodes.LeafHashes(0, size+1); err == nil {
		return fmt.Errorf("a leaf hash beyond the size %d", size)
	}
	if _, err := nodes.Tile(1, 0); err == nil {
		return fmt.Errorf("a tile at level 1 with %d leaves", size)
	}
	if got, err := tx.Nodes("nobody").LeafHashes(0, 1); err == nil {
		return fmt.Errorf("a leaf hash of nobody: %v", got)
	}
	r := ledger.HashReader(nodes, size)
	for _, seq := range []int64{0, size / 2, size - 1} {
		p, err := tlog.ProveRecord(size, seq, r)
		if err != nil {
			return fmt.Errorf("prove leaf %d of %d: %w", seq, size, err)
		}
		if err := tlog.CheckRecord(p, size, root, seq, leaves[seq]); err != nil {
			return fmt.Errorf("leaf %d of %d: %w", seq, size, err)
		}
		old, err := tlog.TreeHash(seq+1, r)
		if err != nil {
			return err
		}
		tp, err := tlog.ProveTree(size, seq+1, r)
		if err != nil {
			return fmt.Errorf("prove the tree of %d in %d: %w", seq+1, size, err)
		}
		if err := tlog.CheckTree(tp, size, root, seq+1, old); err != nil {
			return fmt.Errorf("the tree of %d in %d: %w", seq+1, size, err)
		}
	}
	return nil
}

func testOpen(t *testing.T, open Open) {
	s := begin(t, open)
	var wantOpen []string
	for i := range 30 {
		tenant := []string{"acme", "other", "third"}[i%3]
		l := Leaf(t, tenant, ledger.KindBegin, Crossing(i), fmt.Sprint(i))
		l.At = start().Add(time.Duration(i) * time.Second)
		s.append(l)
		if i%4 != 0 {
			s.append(Leaf(t, tenant, ledger.KindEntry, Crossing(i), "done"))
			continue
		}
		wantOpen = append(wantOpen, Crossing(i))
	}
	s.append(Leaf(t, "acme", ledger.KindEntry, Crossing(99), "denied: an entry without a begin"))
	same := func(tx kernel.Tx) error {
		var got []string
		err := tx.Open(func(l ledger.Stored) error {
			if l.Kind != ledger.KindBegin || len(l.Record) == 0 {
				return fmt.Errorf("open gives %+v", l)
			}
			got = append(got, l.Crossing)
			return nil
		})
		if err != nil {
			return err
		}
		return differ("open crossings, oldest first", got, wantOpen)
	}
	s.everywhere(same)
	s.append(Leaf(t, "acme", ledger.KindEntry, wantOpen[0], "recovered"))
	wantOpen = wantOpen[1:]
	s.everywhere(same)
	stop := errors.New("stop")
	err := s.View(t.Context(), func(tx kernel.Tx) error {
		return tx.Open(func(ledger.Stored) error { return stop })
	})
	want(t, "open stops at the first error", err, stop)
}

func testCheckpoints(t *testing.T, open Open) {
	s := begin(t, open)
	cp := func(tenant string, size int64, note string) ledger.SignedCheckpoint {
		return ledger.SignedCheckpoint{Head: ledger.Head{Tenant: tenant, Size: size, Root: tlog.Hash{byte(size)}}, At: start(), Note: []byte(note)}
	}
	put := func(c ledger.SignedCheckpoint) {
		t.Helper()
		s.update(func(tx kernel.Tx) error { return tx.PutCheckpoint(c) })
	}
	s.view(func(tx kernel.Tx) error {
		_, err := tx.Checkpoint("acme")
		want(t, "no checkpoint", err, kernel.ErrNotFound)
		return nil
	})
	put(cp("acme", 7, "seven"))
	put(cp("acme", 7, "seven again"))
	put(cp("acme", 3, "three"))
	put(cp("other", 9, "nine"))
	newest := func(wantCP ledger.SignedCheckpoint) func(tx kernel.Tx) error {
		return func(tx kernel.Tx) error {
			got, err := tx.Checkpoint("acme")
			if err != nil {
				return err
			}
			return differ("newest checkpoint", got, wantCP)
		}
	}
	s.everywhere(newest(cp("acme", 7, "seven")))
	s.update(func(tx kernel.Tx) error {
		if err := tx.PutCheckpoint(cp("acme", 8, "eight")); err != nil {
			return err
		}
		return newest(cp("acme", 8, "eight"))(tx)
	})
	s.everywhere(newest(cp("acme", 8, "eight")))
}

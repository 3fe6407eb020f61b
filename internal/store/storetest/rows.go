package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

// Tables returns the tables with which a store under test is opened.
func Tables() []*table.Def { return []*table.Def{notes.Def(), jobs.Def()} }

// notes has one text by name; jobs has everything that a table can have.
var (
	notes = table.New[string, note]("test_note", table.Options{Key: "name", Gates: true})
	jobs  = table.New[jobKey, job]("test_job", table.Options{})
)

type note struct {
	Text string `json:"text"`
}

type jobKey struct {
	Tenant string `table:"tenant"`
	Number int64  `table:"number"`
}

type job struct {
	State string   `json:"state" table:"state,index"`
	Prio  int64    `json:"prio" table:"prio,index"`
	Tags  []string `json:"tags,omitempty"`
	Tries int64    `json:"-" table:"tries,sum"`
	Cost  int64    `json:"-" table:"cost,sum"`
}

// putNote writes a note, whether or not it is there.
func putNote(tx kernel.Tx, name, text string) error {
	_, version, err := notes.Find(tx, name)
	if err != nil {
		return err
	}
	return notes.Put(tx, name, note{text}, version)
}

func hasNote(tx kernel.Tx, name string) error {
	_, _, err := notes.Get(tx, name)
	return err
}

func testRows(t *testing.T, open Open) {
	s := begin(t, open)
	one := jobKey{"acme", 1}
	s.update(func(tx kernel.Tx) error {
		if _, _, err := jobs.Get(tx, one); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("a row before it is inserted: %w", err)
		}
		if _, version, err := jobs.Find(tx, one); version != 0 || err != nil {
			return fmt.Errorf("found a row before it is inserted: %d, %w", version, err)
		}
		return errors.Join(
			jobs.Insert(tx, one, job{State: "open", Prio: -5, Tags: []string{"a", "\x00\u2028é"}, Tries: 7,
				Cost: math.MaxInt64 - 1}),
			putNote(tx, "", ""), putNote(tx, "x\x00y", "nul"), putNote(tx, strings.Repeat("k", table.MaxKey), "long"))
	})
	var first int64
	s.everywhere(func(tx kernel.Tx) error {
		got, version, err := jobs.Get(tx, one)
		if err != nil || version < 1 || got.State != "open" || got.Prio != -5 || !slices.Equal(got.Tags,
			[]string{"a", "\x00\u2028é"}) || got.Tries != 7 || got.Cost != math.MaxInt64-1 {
			return fmt.Errorf("%+v, version %d, %w", got, version, err)
		}
		if first == 0 {
			first = version
		}
		if version != first {
			return fmt.Errorf("version %d here and %d there", version, first)
		}
		for name, want := range map[string]string{"": "", "x\x00y": "nul", strings.Repeat("k", table.MaxKey): "long"} {
			if n, _, err := notes.Get(tx, name); err != nil || n.Text != want {
				return fmt.Errorf("note %q: %+v, %w", name, n, err)
			}
		}
		return nil
	})
	s.update(func(tx kernel.Tx) error {
		want(t, "insert twice", jobs.Insert(tx, one, job{}), kernel.ErrExists)
		want(t, "replace another version", jobs.Replace(tx, one, job{}, first+1), kernel.ErrConflict)
		want(t, "replace nothing", jobs.Replace(tx, jobKey{"acme", 2}, job{}, 1), kernel.ErrNotFound)
		want(t, "add to nothing", jobs.Add(tx, jobKey{"acme", 2}, 1, 1), kernel.ErrNotFound)
		if err := jobs.Replace(tx, one, job{State: "done", Tries: 8, Cost: math.MaxInt64 - 1}, first); err != nil {
			return err
		}
		got, second, err := jobs.Get(tx, one)
		if err != nil || second == first || got.State != "done" || got.Tags != nil {
			return fmt.Errorf("after replace: %+v, version %d, %w", got, second, err)
		}
		want(t, "replace the version before", jobs.Replace(tx, one, job{}, first), kernel.ErrConflict)
		if err := jobs.Add(tx, one, -10, 5); err != nil {
			return err
		}
		got, third, err := jobs.Get(tx, one)
		if err != nil || third == second || got.Tries != -2 || got.Cost != math.MaxInt64 {
			return fmt.Errorf("after add: %+v, version %d, %w", got, third, err)
		}
		return jobs.Delete(tx, jobKey{"other", 9})
	})
	s.everywhere(func(tx kernel.Tx) error {
		got, _, err := jobs.Get(tx, one)
		if err != nil || got.State != "done" || got.Tries != -2 || got.Cost != math.MaxInt64 {
			return fmt.Errorf("%+v, %w", got, err)
		}
		return nil
	})
	// A row that is deleted and inserted again is not the one that was there.
	s.update(func(tx kernel.Tx) error {
		_, before, err := jobs.Get(tx, one)
		err = errors.Join(err, jobs.Delete(tx, one))
		want(t, "a deleted row", func() error { _, _, err := jobs.Get(tx, one); return err }(), kernel.ErrNotFound)
		err = errors.Join(err, jobs.Insert(tx, one, job{}))
		if _, after, fault := jobs.Get(tx, one); after == before || fault != nil {
			return fmt.Errorf("the version is %d again, %w", after, fault)
		}
		return err
	})
	s.update(func(tx kernel.Tx) error { return jobs.Delete(tx, one) })
	s.everywhere(func(tx kernel.Tx) error {
		if _, _, err := jobs.Get(tx, one); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("a deleted row: %w", err)
		}
		return nil
	})
	badRows(t, s)
}

// badRows tries what does not fit a table.
func badRows(t *testing.T, s *suite) {
	other := table.New[string, note]("test_elsewhere", table.Options{})
	s.update(func(tx kernel.Tx) error {
		for what, err := range map[string]error{
			"a key that is too long": putNote(tx, strings.Repeat("k", table.MaxKey+1), ""),
			"a row that is too long": notes.Insert(tx, "long", note{strings.Repeat("x", table.MaxDoc)}),
			"a table of no store":    other.Insert(tx, "a", note{}),
			"an empty tenant":        jobs.Insert(tx, jobKey{"", 1}, job{}),
			"a key of another type": tx.InsertRow(jobs.Def(), table.Row{Key: []any{"acme", "1"},
				Index: []any{"s", int64(1)}, Sums: []int64{0, 0}, Doc: []byte("{}")}),
			"a key that is too short": tx.InsertRow(jobs.Def(), table.Row{Key: []any{"acme"}, Index: []any{"s",
				int64(1)}, Sums: []int64{0, 0}, Doc: []byte("{}")}),
			"a row without sums": tx.InsertRow(jobs.Def(), table.Row{Key: []any{"acme", int64(1)},
				Index: []any{"s", int64(1)}, Doc: []byte("{}")}),
			"a scan without an end": tx.Scan(jobs.Def(), table.Range{}, nil),
			"a scan of no index": tx.Scan(jobs.Def(), table.Range{Index: "tags", Prefix: []any{"a"},
				Limit: 1}, nil),
			"a scan by too many": tx.Scan(notes.Def(), table.Range{Prefix: []any{"a", "b"}, Limit: 1}, nil),
		} {
			if err == nil {
				t.Errorf("%s was taken", what)
			}
		}
		return nil
	})
	// A row that is not of its type is an error of its reader, and no other row's.
	s.update(func(tx kernel.Tx) error {
		return tx.InsertRow(notes.Def(), table.Row{Key: []any{"odd"}, Doc: []byte(`{"text":"x","more":1}`)})
	})
	s.everywhere(func(tx kernel.Tx) error {
		damaged := (*table.DamagedError)(nil)
		if err := hasNote(tx, "odd"); !errors.As(err, &damaged) || damaged.Table != "test_note" {
			return fmt.Errorf("a row with an unknown member: %w", err)
		}
		return nil
	})
}

// testScans reads ranges over rows on disk, in the batch before and in the running update.
func testScans(t *testing.T, open Open) {
	s := begin(t, open)
	put := func(tx kernel.Tx, tenant string, n int64, state string) error {
		k := jobKey{tenant, n}
		_, version, err := jobs.Find(tx, k)
		return errors.Join(err, jobs.Put(tx, k, job{State: state, Prio: n % 3}, version))
	}
	s.update(func(tx kernel.Tx) (err error) {
		for n := range int64(10) {
			err = errors.Join(err, put(tx, "acme", n-5, "open"), put(tx, "acme2", n, "open"), put(tx, "a", n, "done"))
		}
		return err
	})
	list := func(tx kernel.Tx, r table.Range) (out []string, err error) {
		err = jobs.Scan(tx, r, func(k jobKey, j job, version int64) error {
			if version < 1 {
				return errors.New("a row without a version")
			}
			out = append(out, fmt.Sprint(k.Tenant, k.Number))
			return nil
		})
		return out, err
	}
	check := func(tx kernel.Tx, r table.Range, want ...string) error {
		got, err := list(tx, r)
		if err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("scan %+v: %q, expected %q, %w", r, got, want, err)
		}
		return nil
	}
	s.everywhere(func(tx kernel.Tx) error {
		return errors.Join(
			check(tx, table.Range{Prefix: []any{"acme"}, Limit: 4}, "acme-5", "acme-4", "acme-3", "acme-2"),
			check(tx, table.Range{Prefix: []any{"acme", int64(3)}, Limit: 4}, "acme3"),
			check(tx, table.Range{Prefix: []any{"acm"}, Limit: 4}),
			check(tx, table.Range{Limit: 2}, "a0", "a1"),
			check(tx, table.Range{Index: "prio", Prefix: []any{int64(-2)}, Limit: 9}, "acme-5", "acme-2"),
			check(tx, table.Range{Index: "state", Prefix: []any{"none"}, Limit: 9}))
	})
	s.update(func(tx kernel.Tx) error {
		err := errors.Join(jobs.Delete(tx, jobKey{"acme", -5}), jobs.Delete(tx, jobKey{"acme", -3}),
			put(tx, "acme", -2, "done"), put(tx, "acme", -9, "open"))
		return errors.Join(err,
			check(tx, table.Range{Prefix: []any{"acme"}, Limit: 3}, "acme-9", "acme-4", "acme-2"),
			check(tx, table.Range{Index: "state", Prefix: []any{"done"}, Limit: 2}, "a0", "a1"),
			check(tx, table.Range{Index: "state", Prefix: []any{"open"}, Limit: 3}, "acme-9", "acme-4", "acme-1"))
	})
	s.everywhere(func(tx kernel.Tx) error {
		return errors.Join(
			check(tx, table.Range{Prefix: []any{"acme"}, Limit: 3}, "acme-9", "acme-4", "acme-2"),
			check(tx, table.Range{Index: "state", Prefix: []any{"done"}, Limit: 11}, "a0", "a1", "a2", "a3", "a4",
				"a5", "a6", "a7", "a8", "a9", "acme-2"))
	})
	stop := errors.New("stop")
	s.view(func(tx kernel.Tx) error {
		n := 0
		err := jobs.Scan(tx, table.Range{Limit: 9}, func(jobKey, job, int64) error { n++; return stop })
		if !errors.Is(err, stop) || n != 1 {
			t.Errorf("a scan that was stopped: %d rows, %v", n, err)
		}
		return nil
	})
	// What an update wrote that failed is gone, and nothing else.
	failed := s.Update(t.Context(), func(tx kernel.Tx) error {
		return errors.Join(jobs.Delete(tx, jobKey{"acme", -9}), put(tx, "acme", 100, "open"), jobs.Add(tx,
			jobKey{"acme", -4}, 1, 1), stop)
	})
	if !errors.Is(failed, stop) {
		t.Errorf("%v", failed)
	}
	s.everywhere(func(tx kernel.Tx) error {
		j, _, err := jobs.Get(tx, jobKey{"acme", -4})
		if j.Tries != 0 {
			err = errors.Join(err, fmt.Errorf("%d tries", j.Tries))
		}
		return errors.Join(err, check(tx, table.Range{Prefix: []any{"acme"}, Limit: 2}, "acme-9", "acme-4"),
			check(tx, table.Range{Prefix: []any{"acme", int64(100)}, Limit: 2}))
	})
}

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func (s *site) begun() []Begun {
	s.t.Helper()
	list, err := BegunIn(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// TestRefusedIsNotGoneOnWith: of a rollback that ended in an error a person was told,
// and nothing goes on with it at the next start; one whose process ended is gone on
// with.
func TestRefusedIsNotGoneOnWith(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := s.take()
	to := Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}
	stop := during(t, func(i int) { _ = os.WriteFile(s.path("a"), []byte(fmt.Sprint("now ", i)), 0o644) })
	_, err := s.k.Rollback(t.Context(), s.tree, to, "test")
	stop()
	if err == nil {
		t.Fatal("it was put back under a tree that does not hold still")
	}
	if holdfast.KindOf(err) != holdfast.KindConflict || len(s.begun()) != 0 {
		t.Fatalf("%v, and %v is left", err, s.begun())
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.open(func(o *Options) { o.Before = func(*Manifest) error { time.AfterFunc(0, cancel); return nil } })
	s.write("a", "2")
	for i := range 500 {
		s.write(fmt.Sprint("new/", i), "x")
	}
	if _, err := s.k.Rollback(ctx, s.tree, to, "ended"); err == nil {
		t.Fatal("it was not ended")
	}
	for _, b := range s.begun() {
		if _, err := s.k.Finish(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.begun()) != 0 {
		t.Fatal("it is not done")
	}
}

// TestTwoTreesAtOnce: each rollback has a record of its own that it has begun.
func TestTwoTreesAtOnce(t *testing.T) {
	s := newSite(t)
	trees := []Tree{s.tree, {Path: s.tree.Path + "2", Kind: "code"}}
	if err := os.Mkdir(trees[1].Path, 0o755); err != nil {
		t.Fatal(err)
	}
	fill := func(text string) {
		for i := range 20 {
			for _, tree := range trees {
				if err := os.WriteFile(filepath.Join(tree.Path, fmt.Sprint("f", i)), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	fill("good")
	m, err := s.k.Take(t.Context(), trees, Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	for try := range 3 {
		fill(fmt.Sprint("bad ", try))
		var wg sync.WaitGroup
		for i, tree := range trees {
			wg.Go(func() {
				if _, err := s.k.Rollback(t.Context(), tree, Target{Commit: m.Trees[i].Commit, Content: m.Trees[i].Content}, "test"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if len(s.begun()) != 0 {
		t.Fatal("one is left")
	}
}

// TestBegunThatCannotBeRead is told, and hides no other.
func TestBegunThatCannotBeRead(t *testing.T) {
	s := newSite(t)
	if err := s.k.begin(&Begun{Tree: s.tree, Who: "me"}, "x"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"0" + begunEnd: "\x00", "1" + begunEnd: "", "2" + begunEnd: `{"tree":{"Path":"/etc"}}`} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := BegunIn(s.dir)
	if len(list) != 1 || list[0].Who != "me" || err == nil || strings.Count(err.Error(), "cannot be read") != 3 {
		t.Fatalf("%v, %v", list, err)
	}
}

// TestBegunWhileAnotherWaits: a rollback that ends takes away its own record that it has
// begun, and never that of the one that waited for it.
func TestBegunWhileAnotherWaits(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := s.take()
	r, err := s.k.repo(t.Context(), s.tree.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		s.write("a", fmt.Sprint("now ", i))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.back(m)
		}()
		for len(s.begun()) == 0 { // until it is in the middle, and has the tree
			time.Sleep(time.Millisecond)
		}
		r.mu.Lock()
		left := s.begun()
		r.mu.Unlock()
		<-ended
		if len(left) != 0 {
			t.Fatalf("the next one has the tree, and %v is there still", left)
		}
	}
}

// TestTimeBeginsWithTheTree: what came before a rollback does not take its time.
func TestTimeBeginsWithTheTree(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *Options) { o.Limits.Time = 3 * time.Second })
	s.write("a", "1")
	mark, err := s.k.Mark(t.Context(), s.tree, Message{Agent: "coder", At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s.write("a", "2")
	r, err := s.k.repo(t.Context(), s.tree.Path)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock() // as for packing
	time.AfterFunc(3500*time.Millisecond, r.mu.Unlock)
	if _, err := s.k.PutBack(t.Context(), mark, "test"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(s.path("a")); string(b) != "1" {
		t.Errorf("%q", b)
	}
}

func (s *site) stopped() []Stopped {
	s.t.Helper()
	list, err := StoppedIn(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// TestStoppedWaitsForAPerson: what cannot be carried to its end stands as stopped, and
// why; neither a rollback that is refused or fails nor one for an act ends that, and one
// on a person's word does.
func TestStoppedWaitsForAPerson(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := s.take()
	to := Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}
	s.write("a", "2")
	if err := s.k.begin(&Begun{Tree: s.tree, To: to, Who: "killed", Word: true}, "the one before"); err != nil {
		t.Fatal(err)
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.k.Finish(cut, s.begun()[0]); err == nil || len(s.stopped()) != 0 {
		t.Fatalf("%v, %+v: the next start is to go on with what was cut", err, s.stopped())
	}
	s.write(".git/MERGE_HEAD", "")
	if _, err := s.k.Finish(t.Context(), s.begun()[0]); holdfast.KindOf(err) != holdfast.KindConflict {
		t.Fatal(err)
	}
	waits := func(after string) {
		t.Helper()
		b := s.stopped()
		if len(b) != 1 || b[0].Who != "killed" || b[0].To != to || b[0].Before != "the one before" || !strings.Contains(b[0].Why, "middle of a merge") || b[0].Since.IsZero() || len(s.begun()) != 0 {
			t.Fatalf("after %s: %+v, %+v", after, b, s.begun())
		}
	}
	waits("the start")
	if _, err := s.k.Rollback(t.Context(), s.tree, to, "test"); err == nil {
		t.Fatal("it is in the middle of a merge")
	}
	waits("a rollback that was refused")
	s.remove(".git/MERGE_HEAD")
	mark, err := s.k.Mark(t.Context(), s.tree, Message{Agent: "coder", At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s.write("b", "junk")
	if _, err := s.k.PutBack(t.Context(), mark, "holdfast"); err != nil {
		t.Fatal(err)
	}
	waits("an act that failed")
	stop := during(t, func(i int) { _ = os.WriteFile(s.path("a"), []byte(fmt.Sprint("now ", i)), 0o644) })
	_, err = s.k.Rollback(t.Context(), s.tree, to, "test")
	stop()
	if err == nil {
		t.Fatal("it was put back under a tree that does not hold still")
	}
	waits("a rollback that failed in the middle")
	s.back(m)
	if len(s.stopped()) != 0 {
		t.Fatalf("%+v", s.stopped())
	}
}

// TestActsLeaveAPersonsRollback: what an act's failure puts back displaces neither a
// person's rollback that waits nor one that was cut off.
func TestActsLeaveAPersonsRollback(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := s.take()
	to := Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}
	mark, err := s.k.Mark(t.Context(), s.tree, Message{Agent: "coder", At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s.write("a", "2")
	person := Begun{Tree: s.tree, To: to, Who: "a person", Word: true}
	if err := s.k.begin(&person, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.k.PutBack(t.Context(), mark, "holdfast"); holdfast.KindOf(err) != holdfast.KindConflict {
		t.Fatal(err)
	}
	if b := s.begun(); len(b) != 1 || b[0].Who != "a person" {
		t.Fatalf("%+v", b)
	}
	if b, _ := os.ReadFile(s.path("a")); string(b) != "2" {
		t.Errorf("%q", b)
	}
	why := errors.New("why")
	if err := errors.Join(s.k.Stop(person, why), s.k.Stop(Begun{Tree: s.tree, Who: "an act"}, why)); err != nil {
		t.Fatal(err)
	}
	if b := s.stopped(); len(b) != 1 || b[0].Who != "a person" || len(s.begun()) != 0 {
		t.Fatalf("%+v", b)
	}
}

// TestAfterIsToldFirst: a rollback is not over before what it made of the tree was told.
func TestAfterIsToldFirst(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := s.take()
	var told []*Rolled
	broken := errors.New("nothing can be written down")
	s.open(func(o *Options) {
		o.After = func(r *Rolled, _ string) error {
			if told = append(told, r); len(s.begun()) != 1 {
				t.Error("it was over")
			}
			return broken
		}
	})
	s.write("a", "2")
	if _, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "me"); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if len(s.begun()) != 1 || len(told) != 1 {
		t.Fatalf("%v, %v", s.begun(), told)
	}
	broken = nil
	if _, err := s.k.Finish(t.Context(), s.begun()[0]); err != nil {
		t.Fatal(err)
	}
	if r := told[len(told)-1]; len(told) != 2 || len(s.begun()) != 0 || r.After.Commit == "" || r.After.Content != m.Trees[0].Content {
		t.Errorf("%d, %+v", len(told), r)
	}
}

// TestWhatWasOnlyLookedAtIsCommitted: a dry run or another act's mark between what an act
// wrote and the commit behind it hides nothing of it, nor how much it is.
func TestWhatWasOnlyLookedAtIsCommitted(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Ledger = func(context.Context) (Position, error) { return Position{Size: 42}, nil }
	})
	s.write("a", "1")
	m := s.take()
	if p := m.Trees[0]; p.Ledger != 42 {
		t.Errorf("%+v", p)
	}
	msg := Message{Agent: "coder", Crossing: "c", At: time.Now(), Ledger: 5}
	for name, look := range map[string]func() error{
		"dry": func() error {
			_, err := s.k.Look(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content})
			return err
		},
		"mark": func() error {
			mark, err := s.k.Mark(t.Context(), s.tree, Message{Agent: "other", At: time.Now()})
			if err == nil {
				mark.Forget()
			}
			return err
		},
	} {
		for i := range 3 {
			s.write(fmt.Sprint(name, i), "new")
		}
		if err := look(); err != nil {
			t.Fatal(err)
		}
		c, err := s.k.Commit(t.Context(), s.tree, msg)
		if err != nil || c == nil || c.Changed != 3 {
			t.Fatalf("after a %s: %+v, %v", name, c, err)
		}
		if c, err := s.k.Commit(t.Context(), s.tree, msg); err != nil || c != nil {
			t.Fatalf("nothing changed: %+v, %v", c, err)
		}
	}
	if list, err := s.k.Commits(t.Context(), s.tree, 42); err != nil || len(list) != 2 || list[0].At != 42 {
		t.Errorf("%+v, %v", list, err)
	}
}

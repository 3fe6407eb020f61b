package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func all(string) bool { return true }

// begun is a draft with something in it.
func begun(t *testing.T, dir, word string) *Copy {
	t.Helper()
	c, err := Begin(t.Context(), dir, word)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.Home, "content"), []byte(word), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// finished is a copy of a name, held.
func finished(t *testing.T, dir, name string) *Copy {
	t.Helper()
	c := begun(t, dir, name)
	if first, err := c.Finish(t.Context(), name); err != nil || !first {
		t.Fatal(first, err)
	}
	return c
}

// names are those in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// old makes everything at a path look as if it had been so for an hour.
func old(t *testing.T, path string) {
	t.Helper()
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// TestDraftIsNobodysPrey: at whatever step its maker is stopped, for however long,
// nobody takes a draft away, and nobody takes a step while another is between two of
// his own.
func TestDraftIsNobodysPrey(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel() // so that who finds the door shut says so at once
	dir := t.TempDir()
	user, other := finished(t, dir, "x"), begun(t, dir, "other")
	defer user.Release()
	defer other.Release()
	d, err := enter(t.Context(), dir) // as a maker does
	if err != nil {
		t.Fatal(err)
	}
	draft := filepath.Join(dir, Draft+"made")
	var c *Copy
	steps := []func() error{
		func() error { return nil },
		func() error { return os.Mkdir(draft, 0o700) },
		func() error { return os.WriteFile(filepath.Join(draft, lockName), nil, 0o600) },
		func() (err error) { c, err = d.hold(Draft+"made", unix.LOCK_SH); return err },
		func() error { return os.Rename(draft, filepath.Join(dir, "y")) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatal(i, err)
		}
		if _, err := os.Stat(draft); err == nil {
			old(t, draft)
		}
		before := names(t, dir)
		ends := map[string]error{}
		_, ends["hold"] = Hold(stopped, dir, "x")
		_, ends["begin"] = Begin(stopped, dir, "z")
		_, ends["finish"] = other.Finish(stopped, "z")
		ends["behind"] = Behind(stopped, dir, func() error { t.Error("it is behind the door with another"); return nil })
		twin, err := d.hold("x", unix.LOCK_SH)
		if err != nil {
			t.Fatal(err)
		}
		ends["discard"] = twin.Discard(stopped)
		for what, err := range ends {
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another one makes or removes copies in "+dir) {
				t.Errorf("after step %d: %s: %v", i, what, err)
			}
		}
		if gone := Sweep(stopped, dir, all); gone != nil || names(t, dir) != before {
			t.Errorf("after step %d: swept %q, there is %s and was %s", i, gone, names(t, dir), before)
		}
	}
	d.leave()
	if gone := Sweep(stopped, dir, all); gone != nil { // all are held
		t.Errorf("swept %q", gone)
	}
	c.Release()
	if gone := Sweep(stopped, dir, all); !slices.Equal(gone, []string{"y"}) {
		t.Errorf("swept %q", gone)
	}
}

// TestWhoWaitsComesIn: the door is opened by who leaves it, also where a child has
// the descriptor too, and who waits need not be stopped.
func TestWhoWaitsComesIn(t *testing.T) {
	dir := t.TempDir()
	d, err := enter(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(d.fd) // as a child has it between fork and exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	came := make(chan *Copy)
	go func() {
		c, err := Begin(context.Background(), dir, "")
		if err != nil {
			t.Error(err)
		}
		came <- c
	}()
	d.leave()
	c := <-came
	child2, err := unix.Dup(int(c.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child2)
	c.Release()
	if gone := Sweep(t.Context(), dir, all); len(gone) != 1 {
		t.Errorf("what was released is held still: %s", names(t, dir))
	}
}

// orders calls f with every order of steps in which those of each list stay in its
// order: a list's number for each step.
func orders(lists []int, f func(order []int)) {
	var order []int
	left := slices.Clone(lists)
	var next func()
	next = func() {
		ended := true
		for i := range left {
			if left[i] > 0 {
				ended = false
				left[i]--
				order = append(order, i)
				next()
				order = order[:len(order)-1]
				left[i]++
			}
		}
		if ended {
			f(order)
		}
	}
	next()
}

// content is which draft a copy was, or "" where it is gone.
func content(c *Copy) string {
	b, _ := os.ReadFile(filepath.Join(c.Home, "content"))
	return string(b)
}

// TestEveryOrder: two make a copy of the same name, one finds it not whole and
// discards it, and one sweeps everything that nobody uses; three of them at a time, in
// every order of their steps: no step fails, nothing is left, and who holds a copy has
// it until he lets it go, but for the one that was discarded.
func TestEveryOrder(t *testing.T) {
	t.Parallel()
	for _, steps := range [][]int{{3, 3, 0, 1}, {3, 0, 2, 1}, {2, 2, 2, 0}} {
		everyOrder(t, steps)
	}
}

func everyOrder(t *testing.T, steps []int) {
	ctx, base, n := t.Context(), t.TempDir(), 0
	orders(steps, func(order []int) {
		if second := slices.Index(order, 1); second >= 0 && second < slices.Index(order, 0) {
			return // the two that make it are alike
		}
		n++
		dir := filepath.Join(base, strconv.Itoa(n))
		var held [3]*Copy
		var whose [3]string
		bad, at := "none", [4]int{}
		step := func(who, at int) (err error) {
			switch {
			case who == 3:
				Sweep(ctx, dir, all)
			case who == 2 && at == 0:
				if held[2], err = Hold(ctx, dir, "x"); errors.Is(err, fs.ErrNotExist) {
					return nil
				} else if err == nil {
					bad = content(held[2])
				}
			case who == 2:
				if held[2] != nil {
					err = held[2].Discard(ctx)
				}
			case at == 0:
				if held[who], err = Begin(ctx, dir, "x"); err == nil {
					err = os.WriteFile(filepath.Join(held[who].Home, "content"), []byte{'0' + byte(who)}, 0o600)
				}
			case at == 1:
				_, err = held[who].Finish(ctx, "x")
				whose[who] = content(held[who])
			default:
				if now := content(held[who]); now != whose[who] && whose[who] != bad {
					err = fmt.Errorf("it has %q, and had %q", now, whose[who])
				}
				err = errors.Join(err, held[who].Release())
			}
			return err
		}
		for _, who := range order {
			if err := step(who, at[who]); err != nil {
				t.Fatalf("in the order %v, step %d of %d: %v", order, at[who], who, err)
			}
			at[who]++
		}
		for who := range 2 {
			for ; held[who] != nil && at[who] < 3; at[who]++ {
				if err := step(who, at[who]); err != nil {
					t.Fatalf("after the order %v: step %d of %d: %v", order, at[who], who, err)
				}
			}
		}
		Sweep(ctx, dir, all)
		if left := names(t, dir); left != "" {
			t.Fatalf("in the order %v: left is %s", order, left)
		}
	})
	t.Log(n, "orders")
}

// TestDiscardTakesNoOther: who was slow to discard what was not whole leaves what
// another has put there in the meantime.
func TestDiscardTakesNoOther(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir, "x").Release()
	slow, err := Hold(t.Context(), dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	quick, err := Hold(t.Context(), dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := quick.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := finished(t, dir, "x")
	defer good.Release()
	if err := slow.Discard(t.Context()); err != nil || content(good) != "x" || names(t, dir) != "x" {
		t.Errorf("%v: there is %s", err, names(t, dir))
	}
}

// TestWhatCannotBeHeldMakesWay for a copy that is finished.
func TestWhatCannotBeHeldMakesWay(t *testing.T) {
	for what, make := range map[string]func(home string) error{
		"nothing":          func(string) error { return nil },
		"an empty folder":  func(home string) error { return os.Mkdir(home, 0o700) },
		"one with no lock": func(home string) error { return os.MkdirAll(filepath.Join(home, "content"), 0o700) },
		"a lock elsewhere": func(home string) error {
			return errors.Join(os.Mkdir(home, 0o700), os.Symlink("/dev/null", filepath.Join(home, lockName)))
		},
		"a file":            func(home string) error { return os.WriteFile(home, nil, 0o600) },
		"a link to nowhere": func(home string) error { return os.Symlink("nowhere", home) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, "x")); err != nil {
			t.Fatal(err)
		}
		c := finished(t, dir, "x")
		if content(c) != "x" || names(t, dir) != "x" {
			t.Errorf("%s: there is %s", what, names(t, dir))
		}
		c.Release()
	}
}

// TestWhatWasKilled leaves is removed: at once where it has a lock, and after a
// minute where not, since it may be being removed.
func TestWhatWasKilled(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{Draft + "locked", Draft + "young", Draft + "old", "young", "old", "kept"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, Draft+"locked", lockName), nil, 0o600), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Draft + "old", "old", "kept"} {
		old(t, filepath.Join(dir, name))
	}
	gone := Sweep(t.Context(), dir, func(name string) bool { return name != "kept" })
	if slices.Sort(gone); !slices.Equal(gone, []string{Draft + "locked", Draft + "old", "old"}) || names(t, dir) != Draft+"young file kept young" {
		t.Errorf("removed %q, left %s", gone, names(t, dir))
	}
}

// TestFolderIsTakenAway while somebody waits at its door: there is another one, with
// a door of its own.
func TestFolderIsTakenAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copies")
	d, err := enter(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.leave()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	finished(t, dir, "x").Release()
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if c, err := Hold(t.Context(), link, "x"); err != nil || c.Release() != nil {
		t.Error(err)
	}
	if _, err := Hold(t.Context(), dir, "y"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

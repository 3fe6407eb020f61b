package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// during keeps calling f until the test's part is over.
func during(t *testing.T, f func(i int)) (stop func()) {
	t.Helper()
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
				f(i)
			}
		}
	})
	return func() { close(end); wg.Wait() }
}

// TestRaceOfLinks: while it is kept and put back, an agent swaps a folder for a link
// to one outside, and a file for a link to a secret. Nothing outside is read or
// written.
func TestRaceOfLinks(t *testing.T) {
	s := newSite(t)
	outside := filepath.Join(filepath.Dir(s.tree.Path), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	const secret = "a secret that nobody may carry into a snapshot"
	for _, name := range []string{"f", "secret"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const folders = 20
	for i := range folders {
		s.write(fmt.Sprintf("d/%d/f", i), "inside")
	}
	m := s.take()
	stop := during(t, func(i int) {
		d := s.path(fmt.Sprintf("d/%d", i%folders))
		_ = os.Rename(d, s.path("aside")) // each of these may lose its race
		_ = os.Symlink(outside, d)
		_ = os.Remove(d)
		_ = os.Rename(s.path("aside"), d)
		f := filepath.Join(d, "f")
		_ = os.Rename(f, f+".was")
		_ = os.Symlink(filepath.Join(outside, "secret"), f)
		_ = os.Remove(f)
		_ = os.Rename(f+".was", f)
	})
	for range testrepeat.Times(5, 2) {
		n := s.take()
		r := s.k.repos[s.tree.Path]
		list, err := r.list(t.Context(), n.Trees[0].Commit)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.blob == blobOf([]byte(secret)) {
				t.Fatalf("%s holds what lies outside", e.path)
			}
		}
		_, err = s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
		if err != nil && holdfast.KindOf(err) != holdfast.KindConflict && holdfast.KindOf(err) != holdfast.KindInternal {
			t.Fatal(err)
		}
	}
	stop()
	for _, name := range []string{"f", "secret"} {
		if b, err := os.ReadFile(filepath.Join(outside, name)); string(b) != secret {
			t.Fatalf("%s was written to: %q, %v", name, b, err)
		}
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	s.back(m)
}

// TestRaceOfContents: files that grow, shrink and vanish while they are read. Every
// snapshot is whole in itself, and says what was not still.
func TestRaceOfContents(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Limits.File = 64 << 20 })
	for i := range 20 {
		s.write(fmt.Sprint("f", i), strings.Repeat("x", 100_000))
	}
	stop := during(t, func(i int) {
		name := s.path(fmt.Sprint("f", i%20))
		switch i % 3 {
		case 0:
			_ = os.Truncate(name, int64(i%7)*50_000)
		case 1:
			if f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0); err == nil {
				_, _ = f.WriteString(strings.Repeat("y", 70_000))
				f.Close()
			}
		default:
			_ = os.Remove(name)
			_ = os.WriteFile(name, []byte("anew"), 0o644)
		}
	})
	var all []*Manifest
	for range testrepeat.Times(4, 2) {
		all = append(all, s.take())
	}
	stop()
	for _, m := range all {
		s.verified(m)
	}
}

// TestFileWithoutEnd: a file that grows beyond what one may have while it is read.
func TestFileWithoutEnd(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Limits.File = inMemory + 100 })
	s.write("long", strings.Repeat("x", inMemory+100))
	m := s.take()
	s.verified(m)
	if m.Trees[0].Files != 1 {
		t.Fatalf("%+v", m.Trees[0])
	}
	k := &keeping{r: s.k.repos[s.tree.Path], limits: s.k.limits}
	f, err := os.OpenFile(s.path("long"), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("y"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	c, err := k.copy(f)
	if err != nil || c.err == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	c.close()
	n := s.take()
	if p := n.Trees[0]; p.Files != 0 || !strings.Contains(left(p, "long"), "more than") {
		t.Fatalf("%+v", p)
	}
}

// TestBounds: more names, folders or bytes than a tree may have are a named error.
func TestBounds(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Limits = Limits{Names: 30, Depth: 5, Bytes: 100, File: 90} })
	s.write("a/b/c/d/e/f/g/h", "deep")
	m := s.take()
	if why := left(m.Trees[0], "a/b/c/d/e/f"); !strings.Contains(why, "5 folders deep") {
		t.Fatalf("%q", why)
	}
	s.write("x", strings.Repeat("x", 60))
	s.write("y", strings.Repeat("x", 60))
	_, err := s.k.Take(t.Context(), []Tree{s.tree}, Manifest{})
	if holdfast.KindOf(err) != holdfast.KindBounds || !strings.Contains(err.Error(), "bytes") {
		t.Fatal(err)
	}
	s.remove("y")
	for i := range 30 {
		s.write(fmt.Sprint("many", i), "")
	}
	_, err = s.k.Take(t.Context(), []Tree{s.tree}, Manifest{})
	if holdfast.KindOf(err) != holdfast.KindBounds || !strings.Contains(err.Error(), "names") {
		t.Fatal(err)
	}
	for _, tree := range []Tree{{Path: s.path("nothing")}, {Path: s.path("x")}} {
		if _, err := s.k.Take(t.Context(), []Tree{tree}, Manifest{}); holdfast.KindOf(err) != holdfast.KindNotFound {
			t.Fatalf("%v", err)
		}
	}
	if err := os.Symlink("/", s.path("root")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.k.Take(t.Context(), []Tree{{Path: s.path("root")}}, Manifest{}); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Fatalf("%v", err)
	}
}

// TestSnapshotThatIsEdited: whoever changes or deletes what is kept is found by
// verify, and a rollback to it changes nothing.
func TestSnapshotThatIsEdited(t *testing.T) {
	edits := map[string]func(t *testing.T, s *site, m *Manifest){
		"an object is gone": func(t *testing.T, s *site, m *Manifest) {
			each(t, s, func(path string) error { return os.Remove(path) })
		},
		"an object has other bytes": func(t *testing.T, s *site, m *Manifest) {
			each(t, s, func(path string) error {
				if err := os.Chmod(path, 0o644); err != nil {
					return err
				}
				return os.WriteFile(path, []byte("x\x9cnonsense"), 0o644)
			})
		},
		"the commit is another": func(t *testing.T, s *site, m *Manifest) {
			s.write("a", "of the agent")
			n := s.take()
			m.Trees[0].Commit = n.Trees[0].Commit
			rewrite(t, s, m)
		},
		"the manifest is gone": func(t *testing.T, s *site, m *Manifest) {
			if err := os.Remove(filepath.Join(s.dir, m.ID+manifestEnd)); err != nil {
				t.Fatal(err)
			}
		},
		"the manifest is cut off": func(t *testing.T, s *site, m *Manifest) {
			if err := os.Truncate(filepath.Join(s.dir, m.ID+manifestEnd), 100); err != nil {
				t.Fatal(err)
			}
		},
		"the manifest is a link": func(t *testing.T, s *site, m *Manifest) {
			path := filepath.Join(s.dir, m.ID+manifestEnd)
			if err := errors.Join(os.Rename(path, path+".was"), os.Symlink(path+".was", path)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.write("a", "good")
			s.write("sub/b", "good too")
			m := s.take()
			to, sum := Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, m.Sum
			edit(t, s, m)
			s.write("a", "bad")
			read, err := s.k.Read(m.ID)
			if err == nil && read.Sum == sum {
				out, err := s.k.Verify(t.Context(), read)
				if err != nil || out[0].OK {
					t.Fatalf("%+v, %v", out, err)
				}
				to.Commit = read.Trees[0].Commit
			}
			if name != "the commit is another" && strings.Contains(name, "manifest") {
				return // there is nothing to go back to by its name
			}
			if _, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: to.Content}, "test"); err == nil {
				t.Fatal("it rolled back to what was edited")
			}
			if b, _ := os.ReadFile(s.path("a")); string(b) != "bad" {
				t.Fatalf("%q", b)
			}
		})
	}
}

// each does something to every object that is kept.
func each(t *testing.T, s *site, do func(string) error) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(s.dir, "trees", "*", "git", "objects", "??", "*"))
	packs, perr := filepath.Glob(filepath.Join(s.dir, "trees", "*", "git", "objects", "pack", "*.pack")) // as git likes it
	list, err = append(list, packs...), errors.Join(err, perr)
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, path := range list {
		if err := do(path); err != nil {
			t.Fatal(err)
		}
	}
}

func rewrite(t *testing.T, s *site, m *Manifest) {
	t.Helper()
	if err := m.write(s.dir); err != nil {
		t.Fatal(err)
	}
}

// fakeGit is a program in the place of git.
func fakeGit(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGitIsMissingOldOrHangs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		git  string
		kind holdfast.Kind
		why  string
	}{
		"missing":  {"/nonexistent/git", holdfast.KindNotFound, "is not there"},
		"old":      {fakeGit(t, "echo git version 2.20.1"), holdfast.KindNotFound, "too old"},
		"no git":   {fakeGit(t, "echo hello"), holdfast.KindNotFound, "no git"},
		"chatters": {fakeGit(t, "yes"), holdfast.KindBounds, "answered more"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(o *Options) { o.Git = c.git })
			s.write("a", "1")
			_, err := s.k.Take(t.Context(), []Tree{s.tree}, Manifest{})
			if holdfast.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("%v", err)
			}
		})
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	hangs := fakeGit(t, `case "$*" in *fast-import*) sleep 1000;; *) exec `+real+` "$@";; esac`)
	s := newSite(t, func(o *Options) { o.Git, o.Limits.Time = hangs, 3*time.Second })
	s.write("a", "1")
	_, err = s.k.Take(t.Context(), []Tree{s.tree}, Manifest{})
	if k := holdfast.KindOf(err); k != holdfast.KindTimeout {
		t.Fatalf("%v", err)
	}
	s.open()
	s.verified(s.take())
}

// TestTwoAtOnce: snapshots, commits and rollbacks of one tree wait for each other.
func TestTwoAtOnce(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := s.take()
	var wg sync.WaitGroup
	errs := make(chan error, 40)
	for i := range 2 {
		wg.Go(func() {
			_, err := s.k.Take(t.Context(), []Tree{s.tree}, Manifest{})
			errs <- err
		})
		wg.Go(func() {
			_, err := s.k.Commit(t.Context(), s.tree, Message{Agent: fmt.Sprint("a", i), Action: "x", Crossing: "c"})
			errs <- err
		})
		wg.Go(func() {
			_, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	list, err := s.k.List()
	if err != nil || len(list) != 5 {
		t.Fatalf("%d, %v", len(list), err)
	}
	seen := map[int64]bool{}
	for _, m := range list {
		if seen[m.Seq] || m.Seq == 0 {
			t.Fatalf("%d twice", m.Seq)
		}
		seen[m.Seq] = true
		s.verified(&m)
	}
}

// TestClockSetBack: order is by number, and what is untouched is known by more than
// the clock.
func TestClockSetBack(t *testing.T) {
	now := time.Now()
	s := newSite(t, func(o *Options) { o.Now = func() time.Time { return now } })
	s.write("a", "1")
	first := s.take()
	now = now.Add(-48 * time.Hour)
	s.write("a", "2")
	second := s.take()
	now = time.Unix(-5, 0)
	third := s.take()
	list, err := s.k.List()
	if err != nil || list[0].ID != third.ID || list[1].ID != second.ID || list[2].ID != first.ID {
		t.Fatalf("%v, %v", list, err)
	}
	if second.Trees[0].Changed != 1 || third.Trees[0].Content != second.Trees[0].Content {
		t.Fatal("the clock hid a change")
	}
	s.open(func(o *Options) { o.Now = func() time.Time { return now } })
	if fourth := s.take(); fourth.Seq != third.Seq+1 {
		t.Fatalf("%d after %d", fourth.Seq, third.Seq)
	}
}

// killed runs this test in a process of its own that is killed once the tree or the
// directory looks as asked.
const killedTree = "HOLDFAST_TEST_KILLED_TREE"

// TestKilledInTheMiddle: kill -9 in a snapshot, and in a rollback. What was begun is
// cleared away, or carried to its end.
func TestKilledInTheMiddle(t *testing.T) {
	if dir := os.Getenv(killedTree); dir != "" {
		goOnFor(t, dir)
		return
	}
	for _, what := range []string{"snapshot", "rollback"} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t)
			files := testrepeat.Times(300, 100)
			for i := range files {
				s.write(fmt.Sprintf("d%d/f%d", i%10, i), fmt.Sprint("good ", i))
			}
			m := s.take()
			good := s.picture()
			if err := os.WriteFile(filepath.Join(s.dir, ".new-7.tmp"), []byte("{"), 0o600); err != nil { // half a manifest
				t.Fatal(err)
			}
			for try := range testrepeat.Times(3, 1) {
				for i := range files {
					s.write(fmt.Sprintf("d%d/f%d", i%10, i), fmt.Sprint("bad ", try, i))
				}
				s.write(fmt.Sprint("new", try), "x")
				kill(t, s, what, m, time.Duration(try)*40*time.Millisecond)
				s.open()
				begun, err := BegunIn(s.dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range begun {
					if b.Who != "killed" {
						t.Fatalf("%q", b.Who)
					}
					if _, err := s.k.Finish(t.Context(), b); err != nil {
						t.Fatal(err)
					}
					s.is(good)
				}
				s.verified(s.take())
				s.verified(m)
				s.k.Unfinished()
				s.back(m)
				s.is(good)
			}
			for _, pattern := range []string{"*.begun", "*.tmp", ".*.tmp", "trees/*/staged-*", "trees/*/git/fast_import_crash*", "trees/*/git/objects/tmp*", "trees/*/git/objects/pack/tmp*"} {
				if left, _ := filepath.Glob(filepath.Join(s.dir, pattern)); len(left) > 0 {
					t.Errorf("%v is left", left)
				}
			}
		})
	}
}

// goOnFor is the process that is killed.
func goOnFor(t *testing.T, dir string) {
	s := &site{t: t, dir: filepath.Join(dir, "kept"), tree: Tree{Path: filepath.Join(dir, "tree"), Kind: "code"}}
	s.open()
	m, err := s.k.Read(os.Getenv("HOLDFAST_TEST_KILLED_TO"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("begun")
	if os.Getenv("HOLDFAST_TEST_KILLED") == "snapshot" {
		s.take()
	} else if _, err := s.k.Rollback(context.Background(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "killed"); err != nil {
		t.Fatal(err)
	}
}

// awaitMiddle returns once a snapshot's git writes its objects, a rollback has left its
// record, or the process has ended.
func awaitMiddle(s *site, what string, ended <-chan struct{}) {
	pattern := filepath.Join(s.dir, "trees", "*", "git", "objects", "pack", "tmp_*")
	if what == "rollback" {
		pattern = filepath.Join(s.dir, "*"+begunEnd)
	}
	for {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// kill runs goOnFor in another process, and kills it in its middle, or that much later.
func kill(t *testing.T, s *site, what string, m *Manifest, later time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledInTheMiddle$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), killedTree+"="+filepath.Dir(s.tree.Path), "HOLDFAST_TEST_KILLED="+what, "HOLDFAST_TEST_KILLED_TO="+m.ID)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := out.Read(b); err != nil || string(b) != "begun" {
		t.Fatalf("%q, %v", b, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, out)
	}()
	awaitMiddle(s, what, ended)
	time.Sleep(later) // some are killed after they ended
	_ = cmd.Process.Kill()
	<-ended
	_ = cmd.Wait()
}

// TestNamesThatAPowerCutEmptied: a name of Holdfast's own in its repository that holds
// no version keeps nothing from being kept or put back, by the second try at the latest.
func TestNamesThatAPowerCutEmptied(t *testing.T) {
	for i, name := range []string{"last", "rolled", "before/coder"} {
		for j, text := range []string{"", "garbage\n", strings.Repeat("\x00", 41)} {
			for _, reopened := range []bool{false, true} {
				if other := map[bool]int{true: 1}[reopened]; !testrepeat.Enduring && j != (i+other)%3 {
					continue // each name and each text twice
				}
				s := newSite(t)
				s.write("a", "good")
				mark := func() error {
					m, err := s.k.Mark(t.Context(), s.tree, Message{Agent: "coder", Crossing: "c"})
					if err == nil {
						m.Forget()
					}
					return err
				}
				m := s.take()
				s.write("a", "bad")
				s.back(m)
				if err := mark(); err != nil {
					t.Fatal(err)
				}
				ref := filepath.Join(s.dir, "trees", repoName(s.tree.Path), "git", "refs", "holdfast", name)
				if err := os.WriteFile(ref, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if reopened {
					s.open()
				}
				s.write("a", "worse")
				var errs []error
				for range 2 {
					_, err := s.k.Take(t.Context(), []Tree{s.tree}, Manifest{Who: "test", Reason: "asked for"})
					_, rerr := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
					errs = append(errs, errors.Join(err, rerr, mark()))
				}
				if errs[1] != nil || reopened && errs[0] != nil {
					t.Errorf("%s, %q, opened again %v: %v", name, text, reopened, errs)
				}
				if b, err := os.ReadFile(s.path("a")); string(b) != "good" {
					t.Errorf("%s, %q: the tree has %q, %v", name, text, b, err)
				}
			}
		}
	}
}

// TestVerificationThatCouldNotBe: what keeps a snapshot from being restored says nothing
// about it, and is no damage.
func TestVerificationThatCouldNotBe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("a", "x")
	m := s.take()
	for name, c := range map[string]struct {
		kind holdfast.Kind
		with func(*Options)
	}{
		"git is missing":               {holdfast.KindNotFound, func(o *Options) { o.Git = filepath.Join(s.dir, "nothing") }},
		"it takes too long to list":    {holdfast.KindTimeout, func(o *Options) { o.Git, o.Limits.Time = fakeGit(t, slowly("ls-tree")), time.Second }},
		"it takes too long to restore": {holdfast.KindTimeout, func(o *Options) { o.Git, o.Limits.Time = fakeGit(t, slowly("cat-file")), time.Second }},
	} {
		s.open(c.with)
		if out, err := s.k.Verify(t.Context(), m); holdfast.KindOf(err) != c.kind || len(out) != 0 {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	s.open()
	s.verified(m)
}

// TestDamageIsToldThoughAnotherTreeIsNotSeen: that one tree cannot be looked at hides
// nothing of the other.
func TestDamageIsToldThoughAnotherTreeIsNotSeen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("a", "x")
	m := s.take()
	other := Tree{Path: s.tree.Path + "-other", Kind: "code"}
	if err := os.Mkdir(other.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	two, err := s.k.Take(t.Context(), []Tree{other}, Manifest{Who: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	both := *m
	both.Trees = append(slices.Clone(m.Trees), two.Trees...)
	both.Trees[1].Content = both.Trees[0].Content
	s.open(func(o *Options) {
		o.Git, o.Limits.Time = fakeGit(t, `case "$*" in *`+both.Trees[0].Commit+`*) sleep 5 ;; esac; exec git "$@"`), 2*time.Second
	})
	out, err := s.k.Verify(t.Context(), &both)
	if err != nil || len(out) != 2 || out[0].OK || out[1].OK || !strings.HasPrefix(out[0].Why, "it could not be looked at: ") || !strings.Contains(out[1].Why, "not what was kept") {
		t.Errorf("%+v, %v", out, err)
	}
}

// slowly is git, but for one word that it thinks about.
func slowly(word string) string {
	return `case " $* " in *" ` + word + ` "*) sleep 5 ;; esac; exec git "$@"`
}

package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// TestObjectThatCannotBePut: where one object of a version cannot be put in its place the
// version is refused, or whole all the same.
func TestObjectThatCannotBePut(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	s.take()
	r, err := s.k.repo(t.Context(), s.tree.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i, tried := 0, 0; tried < 4; i++ {
		text := fmt.Sprint("the only copy ", i)
		blob := blobOf([]byte(text))
		place := filepath.Join(r.git.dir, "objects", hex.EncodeToString(blob[:1]))
		if _, err := os.Lstat(place); err == nil {
			continue // the directory has another object already
		}
		tried++
		s.write("b", text)
		if err := os.WriteFile(place, nil, 0o600); err != nil { // where a folder belongs
			t.Fatal(err)
		}
		m, err := s.k.Take(t.Context(), []Tree{s.tree}, Manifest{})
		if err := os.Remove(place); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			s.verified(m)
		}
	}
}

// TestNoInodes: a disk that has room and no inodes left breaks no version in silence: the
// rollback is refused, or what was there before it is kept whole.
func TestNoInodes(t *testing.T) {
	if inOwnMounts(t) {
		return
	}
	fine, refused := 0, 0
	for left := 0; left < 72; left += 9 / testrepeat.Times(3, 1) {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			s := newSite(t)
			if err := unix.Mount("tmpfs", s.dir, "tmpfs", 0, "size=64m,nr_inodes=2000,mode=700"); err != nil {
				t.Fatal(err)
			}
			defer unix.Unmount(s.dir, unix.MNT_DETACH)
			if s.backWithInodes(uint64(left)) {
				fine++
			} else {
				refused++
			}
		})
	}
	if fine == 0 || refused == 0 {
		t.Errorf("%d went back and %d were refused: is the test blind?", fine, refused)
	}
}

// backWithInodes rolls the tree back with so many inodes left for versions, and says
// whether it went back.
func (s *site) backWithInodes(left uint64) bool {
	s.t.Helper()
	s.open(func(o *Options) { o.Now = func() time.Time { return time.Now().Add(time.Hour) } })
	s.write("a", "1")
	m := s.take()
	for i := range 12 {
		s.write(fmt.Sprint("b", i), fmt.Sprint("the only copy ", i))
	}
	was, fill := s.picture(), filepath.Join(s.dir, "fill")
	if err := os.Mkdir(fill, 0o700); err != nil {
		s.t.Fatal(err)
	}
	for i := 0; ; i++ {
		var st unix.Statfs_t
		if err := unix.Statfs(s.dir, &st); err != nil {
			s.t.Fatal(err)
		}
		if st.Ffree <= left {
			break
		}
		if err := os.WriteFile(filepath.Join(fill, fmt.Sprint(i)), nil, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	out, err := s.k.Rollback(s.t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
	if err := os.RemoveAll(fill); err != nil {
		s.t.Fatal(err)
	}
	if out != nil && out.Before != nil {
		s.verified(out.Before)
	}
	if err == nil {
		s.back(out.Before)
	} else if _, lerr := os.Lstat(s.path("b0")); errors.Is(lerr, os.ErrNotExist) && (out == nil || out.Before == nil) {
		s.t.Errorf("what was there is gone: %v", err)
	} else if lerr == nil && (out == nil || !out.begun) {
		s.is(was)
	}
	return err == nil
}

// TestFoldersThatChangePlaces: none of two that change places all the while is missing in
// a snapshot without a word.
func TestFoldersThatChangePlaces(t *testing.T) {
	s := newSite(t)
	for i := range 30 {
		s.write(fmt.Sprintf("d1/f%d", i), "x")
		s.write(fmt.Sprintf("d2/f%d", i), "x")
	}
	stop := during(t, func(int) {
		if err := unix.Renameat2(unix.AT_FDCWD, s.path("d1"), unix.AT_FDCWD, s.path("d2"), unix.RENAME_EXCHANGE); err != nil {
			t.Error(err)
		}
	})
	defer stop()
	for range testrepeat.Times(60, 12) {
		m := s.take()
		if p := m.Trees[0]; p.Files+p.TornCount < 60 && p.LeftOut.Names == 0 || p.Folders != 2 {
			t.Fatalf("%d files of 60 and %d folders of 2, %d torn, %d left out", p.Files, p.Folders, p.TornCount, p.LeftOut.Names)
		}
	}
}

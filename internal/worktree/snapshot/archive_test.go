package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-dev/holdfast"
)

// packed is the archive of a snapshot with a store that is none.
func (s *site) packed(m *Manifest) []byte {
	s.t.Helper()
	store := filepath.Join(s.t.TempDir(), "db")
	if err := os.WriteFile(store, []byte("a store\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.k.Pack(s.t.Context(), &b, m, store, "a key"); err != nil {
		s.t.Fatal(err)
	}
	return b.Bytes()
}

// varied fills the tree with what trees are made of.
func (s *site) varied() *Manifest {
	s.t.Helper()
	s.write("a", "one")
	s.write("dir/sub/b", strings.Repeat("long ", 3_000_000)) // not read at once
	s.write("dir/empty", "")
	s.write("na\nme\\ \xff\"", "odd")
	s.write(strings.Repeat("deep/", 60)+"end", "x")
	err := errors.Join(os.Symlink("../"+strings.Repeat("away/", 100), s.path("link")), os.Symlink("a", s.path("dir/other")), os.Mkdir(s.path("nothing"), 0o700),
		os.Chmod(s.path("a"), 0o751), os.Chmod(s.path("dir/empty"), 0o400), os.Chmod(s.path("dir"), 0o500))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = os.Chmod(s.path("dir"), 0o700) })
	return s.take()
}

// TestArchiveIsRestored: whatever a tree holds stands in the archive and can be
// restored from it, with nothing else, and any tar reads it.
func TestArchiveIsRestored(t *testing.T) {
	s := newSite(t)
	m := s.varied()
	b := s.packed(m)
	dir := t.TempDir()
	u, err := Unpack(t.Context(), bytes.NewReader(b), dir)
	if err != nil {
		t.Fatal(err)
	}
	if u.Snapshot != m.ID || u.Manifest.Sum != m.Sum || u.LedgerKey != "a key" || len(u.LeftOut) == 0 {
		t.Errorf("%+v", u)
	}
	for name, want := range map[string]string{u.Store: "a store\n", filepath.Join(dir, "trees/0/a"): "one", filepath.Join(dir, "trees/0/na\nme\\ \xff\""): "odd"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "trees/0/dir/other")); to != "a" || err != nil {
		t.Errorf("%q, %v", to, err)
	}
	if again := s.names(s.packed(m)); strings.Join(again, "\n") != strings.Join(s.names(b), "\n") {
		t.Error("its order is not the same each time")
	}
	// It holds the snapshot, and not what the tree has become.
	s.write("a", "two")
	if _, err := Unpack(t.Context(), bytes.NewReader(s.packed(m)), t.TempDir()); err != nil {
		t.Error(err)
	}
}

func (s *site) names(b []byte) (out []string) {
	s.eachName(b, func(h *tar.Header, _ []byte) { out = append(out, h.Name) })
	return out
}

func (s *site) eachName(b []byte, fn func(*tar.Header, []byte)) {
	s.t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		var text []byte
		if err == nil {
			text, err = io.ReadAll(r)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		fn(h, text)
	}
}

// remade packs an archive anew with each name as change leaves it; nil takes it away.
func (s *site) remade(b []byte, change func(h *tar.Header, text []byte) []byte) []byte {
	s.t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		s.t.Fatal(err)
	}
	w := tar.NewWriter(z)
	s.eachName(b, func(h *tar.Header, text []byte) {
		text = change(h, text)
		if h.Size = int64(len(text)); h.Name == "" {
			return
		}
		err := w.WriteHeader(h)
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	})
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		s.t.Fatal(err)
	}
	return out.Bytes()
}

// TestArchiveThatIsTamperedWith: no file, name, mode or link in an archive can be
// another unseen, none taken away and none added; nothing is written outside of the
// folder that it is restored into.
func TestArchiveThatIsTamperedWith(t *testing.T) {
	s := newSite(t)
	s.write("a", "one")
	s.write("b/c", "two")
	if err := os.Symlink("a", s.path("l")); err != nil {
		t.Fatal(err)
	}
	good := s.packed(s.take())
	if _, err := Unpack(t.Context(), bytes.NewReader(s.remade(good, func(_ *tar.Header, b []byte) []byte { return b })), t.TempDir()); err != nil {
		t.Fatalf("what nobody changed: %v", err)
	}
	on := func(name string, do func(h *tar.Header, b []byte) []byte) func(*tar.Header, []byte) []byte {
		return func(h *tar.Header, b []byte) []byte {
			if h.Name == name {
				return do(h, b)
			}
			return b
		}
	}
	flip := func(_ *tar.Header, b []byte) []byte { return append(b[:len(b)-1:len(b)-1], b[len(b)-1]^1) }
	gone := func(h *tar.Header, _ []byte) []byte { h.Name = ""; return nil }
	named := func(name string) func(*tar.Header, []byte) []byte {
		return func(h *tar.Header, b []byte) []byte { h.Name = name; return b }
	}
	for what, change := range map[string]func(*tar.Header, []byte) []byte{
		"a file":           on("trees/0/a", flip),
		"the store":        on("store.db", flip),
		"the manifest":     on("snapshot.json", flip),
		"what it is":       on("archive.json", flip),
		"the sums":         on("SHA256SUMS", flip),
		"no store":         on("store.db", gone),
		"no sums":          on("SHA256SUMS", gone),
		"a file is gone":   on("trees/0/b/c", gone),
		"a folder is gone": on("trees/0/b", gone),
		"a tree is gone":   on("trees/0", gone),
		"another name":     on("trees/0/a", named("trees/0/aa")),
		"a name above":     on("trees/0/a", named("trees/0/../../../a")),
		"a name of git's":  on("trees/0/a", named("trees/0/.git")),
		"another mode":     on("trees/0/a", func(h *tar.Header, b []byte) []byte { h.Mode = 0o777; return b }),
		"another link":     on("trees/0/l", func(h *tar.Header, b []byte) []byte { h.Linkname = "/etc/passwd"; return b }),
		"a link for a file": on("trees/0/a", func(h *tar.Header, b []byte) []byte {
			h.Typeflag, h.Linkname = tar.TypeSymlink, "/etc/passwd"
			return nil
		}),
		"a device": on("trees/0/a", func(h *tar.Header, b []byte) []byte { h.Typeflag = tar.TypeChar; return nil }),
		"through a link": func(h *tar.Header, b []byte) []byte {
			if h.Name == "trees/0/b" {
				h.Typeflag, h.Linkname = tar.TypeSymlink, "../../.."
			}
			return b
		},
	} {
		dir := t.TempDir()
		_, err := Unpack(t.Context(), bytes.NewReader(s.remade(good, change)), dir)
		var path *fs.PathError // of what cannot even be restored
		if err == nil || holdfast.KindOf(err) != holdfast.KindConflict && holdfast.KindOf(err) != holdfast.KindInternal && !errors.As(err, &path) {
			t.Errorf("%s: %v", what, err)
		}
		if what == "a file" && (err == nil || !strings.Contains(err.Error(), "trees/0/a is not what was packed")) {
			t.Errorf("it is not named: %v", err)
		}
	}
	for n := 0; n < len(good); n += 1 + len(good)/40 {
		if _, err := Unpack(t.Context(), bytes.NewReader(good[:n]), t.TempDir()); err == nil {
			t.Errorf("cut off at %d of %d", n, len(good))
		}
	}
	if _, err := Unpack(t.Context(), io.MultiReader(bytes.NewReader(good), bytes.NewReader(good)), t.TempDir()); err == nil {
		t.Error("two are taken for one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Unpack(ctx, bytes.NewReader(good), t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestArchiveThatIsTooLarge: no file of an archive is written that is longer than its
// manifest says, or that there is no room for.
func TestArchiveThatIsTooLarge(t *testing.T) {
	s := newSite(t)
	s.write("a", "one")
	good := s.packed(s.take())
	// begin is the archive up to the file of that name, which then says of itself what change does.
	begin := func(name string, change func(*tar.Header)) []byte {
		var out bytes.Buffer
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w, done := tar.NewWriter(z), false
		s.eachName(good, func(h *tar.Header, text []byte) {
			if done = done || h.Name == name; h.Name == name {
				change(h)
				err = errors.Join(err, w.WriteHeader(h))
			} else if !done {
				err = errors.Join(err, w.WriteHeader(h))
				_, werr := w.Write(text)
				err = errors.Join(err, werr)
			}
		})
		_, werr := z.Write(make([]byte, 1<<20)) // the first of what it says it is
		if err := errors.Join(err, werr, z.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	size := func(n int64) func(*tar.Header) { return func(h *tar.Header) { h.Size, h.Format = n, tar.FormatPAX } }
	for name, c := range map[string]struct {
		file   string
		change func(*tar.Header)
		why    string
	}{
		"a file longer than its tree": {"trees/0/a", size(4), "more of"},
		"a store without room":        {"store.db", size(1 << 60), "no room"},
	} {
		dir := t.TempDir()
		_, err := Unpack(t.Context(), bytes.NewReader(begin(c.file, c.change)), dir)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(filepath.Join(dir, c.file)); err == nil && info.Size() > 0 {
			t.Errorf("%s: %d bytes of it were written", name, info.Size())
		}
	}
}

// TestArchiveOfMadeUpNumbers: a manifest that says any numbers of its names lets no
// more of them in than a tree may have.
func TestArchiveOfMadeUpNumbers(t *testing.T) {
	s := newSite(t)
	s.write("a", "one")
	good := s.packed(s.take())
	sum := ""
	for name, numbers := range map[string]*strings.Replacer{
		"negative":  strings.NewReplacer(`"files": 1`, `"files": -1`),
		"overflown": strings.NewReplacer(`"files": 1`, `"files": 9223372036854775807`, `"folders": 0`, `"folders": 1`),
	} {
		b := s.remade(good, func(h *tar.Header, text []byte) []byte {
			if h.Name == archiveManifest {
				text = []byte(numbers.Replace(string(text)))
				sum = fmt.Sprintf("%x", sha256.Sum256(text))
			}
			return text
		})
		b = s.remade(b, func(h *tar.Header, text []byte) []byte {
			if h.Name == archiveAbout {
				var a Archive
				if err := json.Unmarshal(text, &a); err != nil {
					t.Fatal(err)
				}
				a.Manifest = sum
				text, _ = json.Marshal(a)
			}
			return text
		})
		if _, err := Unpack(t.Context(), bytes.NewReader(b), t.TempDir()); err == nil || !strings.Contains(err.Error(), "more of") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// brimful takes so many bytes, and no more.
type brimful struct{ left int }

func (b *brimful) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	if b.left -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestArchiveThatCannotBeWritten: git, which has more to give, is let go of.
func TestArchiveThatCannotBeWritten(t *testing.T) {
	s := newSite(t)
	big := make([]byte, 2<<20)
	rand.Read(big)
	s.write("big", string(big))
	m, store := s.take(), filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(store, []byte("a store\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.k.Pack(t.Context(), &brimful{1 << 20}, m, store, "a key"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v", err)
	}
	s.verified(m)
}

// TestArchiveOfADamagedVersion: what cannot be read out of the versions whole makes
// no archive.
func TestArchiveOfADamagedVersion(t *testing.T) {
	s := newSite(t)
	s.write("a", "one")
	m := s.take()
	m.Trees[0].Content = strings.Repeat("0", 64)
	if err := s.k.Pack(t.Context(), io.Discard, m, "/dev/null", "k"); err == nil || !strings.Contains(err.Error(), "not what was kept") {
		t.Errorf("%v", err)
	}
	m.Sum = strings.Repeat("0", 64)
	if err := s.k.Pack(t.Context(), io.Discard, m, "/dev/null", "k"); err == nil || !strings.Contains(err.Error(), "manifest was changed") {
		t.Errorf("%v", err)
	}
}

// TestSumsAreThoseOfSha256sum: who unpacks an archive by hand checks it by hand.
func TestSumsAreThoseOfSha256sum(t *testing.T) {
	if got := sumLine("a\nb\\c", []byte{1, 2}); got != `\0102  a\nb\\c`+"\n" {
		t.Errorf("%q", got)
	}
	if got := sumLine("a b", []byte{1, 2}); got != "0102  a b\n" {
		t.Errorf("%q", got)
	}
}

func folderAt(t *testing.T, path string) *Folder {
	t.Helper()
	f, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

const anArchive = "holdfast-20261123-020000-5f0c1e.tar.zst"

// TestFolderOfArchives: a file has its name only once it is whole and was checked.
func TestFolderOfArchives(t *testing.T) {
	s := newSite(t)
	f := folderAt(t, s.tree.Path)
	look := func(r io.Reader) error {
		if list, err := f.Archives(); err != nil || len(list) != 0 {
			t.Errorf("it has its name already: %v, %v", list, err)
		}
		b, err := io.ReadAll(r)
		if string(b) != "text" {
			t.Errorf("%q, %v", b, err)
		}
		return err
	}
	no := errors.New("it is not whole")
	if err := f.Put(t.Context(), anArchive, strings.NewReader("text"), func(io.Reader) error { return no }); !errors.Is(err, no) {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(s.tree.Path); err != nil || len(list) != 0 {
		t.Fatalf("%v is left, %v", list, err)
	}
	if err := f.Put(t.Context(), anArchive, strings.NewReader("text"), look); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(s.path(anArchive))
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := f.Put(t.Context(), anArchive, strings.NewReader("other"), func(io.Reader) error { return nil }); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it was replaced: %v", err)
	}
	for _, name := range []string{"holdfast-.tar.zst", "x" + anArchive, anArchive + ".old", "holdfast-20261123-020000-5f0c1e.tar"} {
		s.write(name, "a person's")
	}
	s.write("."+anArchive+".tmp", "half")
	s.write(".other.tmp", "a person's")
	if err := f.Sweep(); err != nil {
		t.Fatal(err)
	}
	if list, err := f.Archives(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := os.ReadDir(s.tree.Path); err != nil || len(list) != 6 {
		t.Errorf("%v, %v", list, err)
	}
	// A link is no folder, and no archive.
	if err := os.Symlink(s.tree.Path, s.tree.Path+".link"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(s.tree.Path + ".link"); err == nil {
		t.Error("a link was followed")
	}
	linked := ArchiveName("20261124-020000-5f0c1e")
	if err := os.Symlink("/etc/passwd", s.path(linked)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(linked); err == nil {
		t.Error("a link was followed")
	}
}

// held is what a process reads that is killed while it writes.
type held struct{ sent bool }

func (h *held) Read(b []byte) (int, error) {
	if h.sent {
		os.Stdout.WriteString("half\n")
		select {}
	}
	h.sent = true
	return copy(b, "half"), nil
}

const killedIn = "HOLDFAST_TEST_ARCHIVE_KILLED"

// TestKilledWhileArchiving: nothing half is left under an archive's name, and what is
// left is cleared away.
func TestKilledWhileArchiving(t *testing.T) {
	if dir := os.Getenv(killedIn); dir != "" {
		_ = folderAt(t, dir).Put(t.Context(), anArchive, &held{}, func(io.Reader) error { return nil })
		return
	}
	s := newSite(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestKilledWhileArchiving$", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), killedIn+"="+s.tree.Path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadFull(out, make([]byte, len("half\n")))
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(s.tree.Path)
	if err != nil || len(list) != 1 || list[0].Name() != unfinished(anArchive) {
		t.Fatalf("%v, %v", list, err)
	}
	f := folderAt(t, s.tree.Path)
	if names, err := f.Archives(); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	if err := f.Sweep(); err != nil {
		t.Fatal(err)
	}
	if err := f.Put(t.Context(), anArchive, strings.NewReader("whole"), func(io.Reader) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

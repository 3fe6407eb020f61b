package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies"
)

// little are limits that a test meets quickly.
func little() Limits { return Limits{Bytes: 1 << 20, Names: 40, Depth: 6, Tops: 8, Layers: 4} }

// store is a folder of images as Holdfast has one.
func store(t *testing.T) string { return filepath.Join(t.TempDir(), "state", "container", "images") }

// part is one name of a root.
type part struct {
	name, text, link string
	kind             byte // of tar; a regular file if zero
	mode             int64
}

// good is a root with all that an image may have.
func good() []part {
	return []part{
		{name: "usr", kind: tar.TypeDir, mode: 0o755}, {name: "usr/bin", kind: tar.TypeDir, mode: 0o755},
		{name: "usr/bin/tool", text: "#!/bin/sh\n", mode: 0o755},
		{name: "usr/bin/second", kind: tar.TypeLink, link: "usr/bin/tool", mode: 0o755},
		{name: "usr/bin/su", text: "su", mode: 0o4755},
		{name: "bin", kind: tar.TypeSymlink, link: "usr/bin"},
		{name: "usr/absolute", kind: tar.TypeSymlink, link: "/usr/bin/tool"},
		{name: "usr/bin/up", kind: tar.TypeSymlink, link: "../../usr/bin/tool"},
		{name: "usr/nowhere", kind: tar.TypeSymlink, link: "/etc/none"},
		{name: "etc", kind: tar.TypeDir, mode: 0o555}, {name: "etc/shadow", text: "root", mode: 0o600},
		{name: "tmp", kind: tar.TypeDir, mode: 0o1777}, {name: "tmp/old", text: "left behind"},
	}
}

// folder writes parts into a folder.
func folder(t *testing.T, parts []part) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	for _, p := range parts {
		at := filepath.Join(dir, p.name)
		var err error
		switch p.kind {
		case tar.TypeDir:
			err = os.Mkdir(at, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(p.link, at)
		case tar.TypeLink:
			err = os.Link(filepath.Join(dir, p.link), at)
		default:
			err = os.WriteFile(at, []byte(p.text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range parts {
		if p.kind == 0 || p.kind == tar.TypeDir {
			if err := unix.Chmod(filepath.Join(dir, p.name), uint32(p.mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// archive is parts as a tar file.
func archive(t testing.TB, parts []part) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range parts {
		h := &tar.Header{Name: p.name, Mode: p.mode, Linkname: p.link, Typeflag: p.kind, Size: int64(len(p.text))}
		if p.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, p.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func zstded(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// put writes a file and returns its path.
func put(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// taken opens an image that is good.
func taken(t *testing.T, dir, path, tag string) *Image {
	t.Helper()
	i, err := Open(t.Context(), dir, Source{Name: "tools", Path: path, Tag: tag}, little())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// refused opens an image that is bad, and sees that it is named with what is wrong
// and that nothing of it is left.
func refused(t *testing.T, dir, path, tag, want string) {
	t.Helper()
	i, err := Open(t.Context(), dir, Source{Name: "tools", Path: path, Tag: tag}, little())
	if err == nil {
		i.Close()
		t.Fatal("it is taken")
	}
	if e := (*holdfast.Error)(nil); !errors.As(err, &e) || e.Kind != holdfast.KindMount || e.Hint == "" || !strings.Contains(e.Why, want) || !strings.Contains(e.Why, `the image "tools" (`+path+`)`) {
		t.Errorf("%v, want %q, the image's name and a hint", err, want)
	}
	empty(t, dir)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if path != dir && path != filepath.Join(dir, keys) {
			t.Errorf("%s is left (%v)", path, err)
		}
		return nil
	})
}

// TestImage: a folder, and the same as an archive, packed or not, are one image:
// what of it may be there is there, once.
func TestImage(t *testing.T) {
	tarred := archive(t, good())
	digests := map[string]bool{}
	for name, path := range map[string]string{"folder": folder(t, good()), "tar": put(t, tarred), "gzip": put(t, gzipped(tarred)), "zstd": put(t, zstded(t, tarred))} {
		dir := store(t)
		i := taken(t, dir, path, "")
		digests[i.Digest] = true
		for at, want := range map[string]string{"usr/bin/tool": "#!/bin/sh\n", "usr/bin/second": "#!/bin/sh\n", "bin/up": "#!/bin/sh\n", "etc/shadow": "root"} {
			if got, err := os.ReadFile(filepath.Join(i.Root, at)); err != nil || string(got) != want {
				t.Errorf("%s: %s holds %q, %v", name, at, got, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(i.Root, "tmp")); err == nil {
			t.Errorf("%s: its /tmp is taken", name)
		}
		var st, first unix.Stat_t
		if err := errors.Join(unix.Stat(filepath.Join(i.Root, "usr/bin/su"), &st), unix.Stat(i.Root, &first)); err != nil || st.Mode&0o7777 != 0o755 {
			t.Errorf("%s: a set-user-ID file has the mode %o, %v", name, st.Mode, err)
		}
		if text := strings.Join(i.Notes, "\n"); text != `1 of the image's files lost a set-user-ID or set-group-ID bit, "usr/bin/su" first` {
			t.Errorf("%s: %q", name, text)
		}
		var again unix.Stat_t
		if j := taken(t, dir, path, ""); unix.Stat(j.Root, &again) != nil || again.Ino != first.Ino || j.Digest != i.Digest {
			t.Errorf("%s: it was copied again", name)
		}
	}
	if len(digests) != 1 {
		t.Errorf("the same content has the digests %v", digests)
	}
}

// TestCopyIsPrivate: what changes in the folder later is another image, and the
// first stays as it was for as long as somebody uses it.
func TestCopyIsPrivate(t *testing.T) {
	dir, from := store(t), folder(t, good())
	first := taken(t, dir, from, "")
	if err := os.WriteFile(filepath.Join(from, "usr/bin/tool"), []byte("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	second := taken(t, dir, from, "")
	old, _ := os.ReadFile(filepath.Join(first.Root, "usr/bin/tool"))
	now, _ := os.ReadFile(filepath.Join(second.Root, "usr/bin/tool"))
	if first.Digest == second.Digest || string(old) != "#!/bin/sh\n" || string(now) != "other" {
		t.Errorf("%s %q, %s %q", first.Digest, old, second.Digest, now)
	}
	first.Close()
	third := taken(t, dir, from, "")
	if _, err := os.Stat(first.Root); err == nil || third.Digest != second.Digest {
		t.Error("the first stays though nobody uses it")
	}
	if list, _ := os.ReadDir(filepath.Join(dir, keys)); len(list) != 1 {
		t.Errorf("known are %v", list)
	}
}

// TestCopyIsWhole: a copy that somebody changed, and one that was not finished,
// are not used.
func TestCopyIsWhole(t *testing.T) {
	dir, from := store(t), folder(t, good())
	first := taken(t, dir, from, "")
	if err := os.WriteFile(filepath.Join(first.Root, "usr/bin/tool"), []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, copies.Draft+"dead", rootTree), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, copies.Draft+"dead", "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second := taken(t, dir, from, "")
	if now, err := os.ReadFile(filepath.Join(second.Root, "usr/bin/tool")); string(now) != "#!/bin/sh\n" {
		t.Errorf("%q %v", now, err)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, copies.Draft+"*")); len(list) > 0 {
		t.Errorf("%v are left", list)
	}
}

// TestMakerIsOvertaken: while one makes a copy, another has made the same and a third
// takes away what nobody uses, keys too; the first gets what the second has made, and
// all is whole.
func TestMakerIsOvertaken(t *testing.T) {
	dir, from := store(t), folder(t, good())
	if err := os.MkdirAll(filepath.Join(dir, keys), 0o700); err != nil {
		t.Fatal(err)
	}
	o, err := look(t.Context(), dir, Source{Path: from}, little())
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	fill := o.fill
	var second, third *Image
	o.fill = func(d *draft) error {
		second, third = taken(t, dir, from, ""), taken(t, dir, put(t, archive(t, good()[:3])), "")
		return fill(d)
	}
	c, digest, err := build(t.Context(), dir, o, little())
	if err != nil {
		t.Fatal(err)
	}
	if err := know(t.Context(), dir, o.key, digest); err != nil {
		t.Fatal(err)
	}
	first, err := take(t.Context(), c, digest, little())
	if err != nil || first.Root != second.Root || first.Root == third.Root {
		t.Fatalf("%v: %+v %+v %+v", err, first, second, third)
	}
	defer first.Close()
	second.Close()
	sweep(t.Context(), dir, third)
	if again := taken(t, dir, from, ""); again.Root != first.Root {
		t.Error("what the first has was taken away")
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*")); len(list) != 3 { // two, and keys
		t.Errorf("there is %v", list)
	}
	if list, _ := os.ReadDir(filepath.Join(dir, keys)); len(list) != 2 {
		t.Errorf("known are %v", list)
	}
}

// TestCapabilities: files with capabilities of their own have none in the copy,
// which is said.
func TestCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files capabilities")
	}
	from := folder(t, good())
	cap := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // net_raw, effective
	if err := unix.Setxattr(filepath.Join(from, "usr/bin/tool"), "security.capability", cap, 0); err != nil {
		t.Fatal(err)
	}
	i := taken(t, store(t), from, "")
	if text := strings.Join(i.Notes, "\n"); !strings.Contains(text, `2 of the image's files lost capabilities of their own, "usr/bin/second" first`) && !strings.Contains(text, `lost capabilities of their own, "usr/bin/tool" first`) {
		t.Errorf("%q", text)
	}
	if n, err := unix.Getxattr(filepath.Join(i.Root, "usr/bin/tool"), "security.capability", nil); err == nil {
		t.Errorf("the copy has %d bytes of them", n)
	}
}

// TestBadFolders: each is refused by name, and leaves nothing behind.
func TestBadFolders(t *testing.T) {
	mk := func(change func(dir string) error) func(*testing.T) string {
		return func(t *testing.T) string {
			dir := folder(t, good())
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	link := func(to, at string) func(*testing.T) string {
		return mk(func(dir string) error { return os.Symlink(to, filepath.Join(dir, at)) })
	}
	for name, tc := range map[string]struct {
		path func(*testing.T) string
		want string
	}{
		"missing":            {func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") }, "there is nothing to be read"},
		"device itself":      {func(*testing.T) string { return "/dev/null" }, "it is no folder and no file"},
		"empty":              {func(t *testing.T) string { return t.TempDir() }, "there is nothing in it"},
		"climbing link":      {link("../../../etc/passwd", "usr/climbs"), `the link "usr/climbs" climbs out of it`},
		"climbing at top":    {link("..", "climbs"), `the link "climbs" climbs out of it`},
		"absolute climbs":    {link("/usr/../../etc", "usr/climbs"), `the link "usr/climbs" climbs out of it`},
		"climbs and returns": {link("../../x/../..", "usr/climbs"), "climbs out of it"},
		"fifo":               {mk(func(d string) error { return unix.Mkfifo(filepath.Join(d, "usr/pipe"), 0o600) }), `"usr/pipe" is a FIFO`},
		"many names": {mk(func(d string) (err error) {
			for i := range 50 {
				err = errors.Join(err, os.WriteFile(filepath.Join(d, "usr", fmt.Sprint(i)), nil, 0o600))
			}
			return err
		}), "more than 40 files"},
		"many tops": {mk(func(d string) (err error) {
			for i := range 9 {
				err = errors.Join(err, os.WriteFile(filepath.Join(d, fmt.Sprint(i)), nil, 0o600))
			}
			return err
		}), "more than 8 names at its top"},
		"big":       {mk(func(d string) error { return os.WriteFile(filepath.Join(d, "usr/big"), make([]byte, 1<<20), 0o600) }), "more than 1 MB unpacked"},
		"sparse":    {mk(func(d string) error { return sparse(filepath.Join(d, "usr/holes"), 1<<40) }), "more than 1 MB unpacked"},
		"deep":      {mk(func(d string) error { return os.MkdirAll(filepath.Join(d, "a/b/c/d/e/f/g"), 0o755) }), "more than 6 directories deep"},
		"odd top":   {mk(func(d string) error { return os.Mkdir(filepath.Join(d, "a\nb"), 0o755) }), "no name that a runtime takes"},
		"odd bytes": {mk(func(d string) error { return os.Mkdir(filepath.Join(d, "a\xff"), 0o755) }), "no name that a runtime takes"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { refused(t, store(t), tc.path(t), "", tc.want) })
	}
	t.Run("tag", func(t *testing.T) { refused(t, store(t), folder(t, good()), "1.0", "has no tags") })
	t.Run("socket", func(t *testing.T) {
		dir := folder(t, good())
		l, err := net.Listen("unix", filepath.Join(dir, "usr/s"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		refused(t, store(t), dir, "", `"usr/s" is a socket`)
	})
	t.Run("Holdfast_itself", func(t *testing.T) {
		dir := store(t)
		home := filepath.Dir(filepath.Dir(dir))
		refused(t, dir, home, "", "it is Holdfast's own directory")
		refused(t, dir, filepath.Dir(home), "", `it holds Holdfast's own directory, at "state"`)
	})
	t.Run("device", func(t *testing.T) {
		dir := folder(t, good())
		if err := unix.Mknod(filepath.Join(dir, "usr/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Skip("no device can be made here:", err)
		}
		refused(t, store(t), dir, "", `"usr/null" is a device`)
	})
	t.Run("device_in_dev", func(t *testing.T) {
		dir := folder(t, good())
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "dev"), 0o755), unix.Mkfifo(filepath.Join(dir, "dev/initctl"), 0o600)); err != nil {
			t.Fatal(err)
		}
		taken(t, store(t), dir, "") // a container has its own
	})
	t.Run("mount", func(t *testing.T) {
		dir := folder(t, good())
		at := filepath.Join(dir, "usr/bin")
		if err := unix.Mount("holdfast", at, "tmpfs", 0, "size=4096"); err != nil {
			t.Skip("nothing can be mounted here:", err)
		}
		defer unix.Unmount(at, unix.MNT_DETACH)
		refused(t, store(t), dir, "", "another file system is mounted in it")
	})
}

func sparse(name string, size int64) error {
	return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size))
}

// TestUnreadable: what Holdfast may not read is left out, and said.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		asUser(t, "TestUnreadable")
		return
	}
	parts := append(good(), part{name: "root", kind: tar.TypeDir, mode: 0}, part{name: "usr/secret", text: "x", mode: 0})
	i := taken(t, store(t), folder(t, parts), "")
	if text := strings.Join(i.Notes, "\n"); !strings.Contains(text, `2 of the image's files are not there, because Holdfast may not read them, "root" first`) {
		t.Errorf("%q", text)
	}
	if _, err := os.Lstat(filepath.Join(i.Root, "usr/secret")); err == nil {
		t.Error("it is there")
	}
}

// TestChangesWhileRead: a folder and an archive in which somebody writes between
// the first look and the last are refused.
func TestChangesWhileRead(t *testing.T) {
	for name, tc := range map[string]struct {
		path   func(*testing.T) string
		change func(path string) error
	}{
		"a file's bytes": {func(t *testing.T) string { return folder(t, good()) }, func(p string) error { return os.WriteFile(filepath.Join(p, "usr/bin/su"), []byte("xx"), 0) }},
		"a new file":     {func(t *testing.T) string { return folder(t, good()) }, func(p string) error { return os.WriteFile(filepath.Join(p, "usr/new"), nil, 0o600) }},
		"a file less":    {func(t *testing.T) string { return folder(t, good()) }, func(p string) error { return os.Remove(filepath.Join(p, "usr/bin/su")) }},
		"a link instead": {func(t *testing.T) string { return folder(t, good()) }, func(p string) error {
			f := filepath.Join(p, "usr/bin/su")
			return errors.Join(os.Remove(f), os.Symlink("/etc/passwd", f))
		}},
		"a folder instead": {func(t *testing.T) string { return folder(t, good()) }, func(p string) error {
			f := filepath.Join(p, "usr/bin")
			return errors.Join(os.Rename(f, f+"2"), os.Symlink("/etc", f))
		}},
		"an archive": {func(t *testing.T) string { return put(t, archive(t, good())) }, func(p string) error { return os.Chtimes(p, zero, zero) }},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			dir, path := store(t), tc.path(t)
			if err := os.MkdirAll(filepath.Join(dir, keys), 0o700); err != nil {
				t.Fatal(err)
			}
			o, err := look(t.Context(), dir, Source{Path: path}, little())
			if err != nil {
				t.Fatal(err)
			}
			defer o.close()
			if err := tc.change(path); err != nil {
				t.Fatal(err)
			}
			if _, _, err := build(t.Context(), dir, o, little()); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
				t.Errorf("%v", err)
			}
			empty(t, dir)
		})
	}
}

// TestStopped: who goes away while an image is made leaves nothing.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := store(t)
	for _, path := range []string{folder(t, good()), put(t, archive(t, good()))} {
		if _, err := Open(ctx, dir, Source{Name: "x", Path: path}, little()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		empty(t, dir)
	}
}

// TestFind: programs are found as one inside would find them, and never outside.
func TestFind(t *testing.T) {
	elf := make([]byte, 64)
	copy(elf, "\x7fELF\x02\x01\x01")
	elf[18] = 40 // 32 bits of another maker
	i := taken(t, store(t), folder(t, append(good(), part{name: "usr/bin/alien", text: string(elf), mode: 0o755}, part{name: "usr/sh", kind: tar.TypeSymlink, link: "/bin/sh"}, part{name: "usr/bin/mine", text: "x", mode: 0o700})), "")
	for name, want := range map[string]string{"/bin/tool": "", "/usr/absolute": "", "/usr/sh": "is not there", "/usr/bin": "is no file", "/usr/nowhere": "is not there", "/usr/bin/alien": "another machine", "/usr/bin/mine": "everybody", "/../../bin/sh": "is not there"} {
		got, err := i.Find(name)
		if want == "" && (err != nil || got != name) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
}

package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var zero = time.Unix(0, 0)

// asUser runs a test again as a user who owns nothing.
func asUser(t *testing.T, name string) {
	t.Helper()
	const nobody = 65534
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	self, tmp := filepath.Join(dir, "self"), filepath.Join(dir, "tmp")
	if err := os.WriteFile(self, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+name+"$", "-test.v")
	cmd.Dir, cmd.Env = tmp, []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + tmp, "TMPDIR=" + tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+name)) {
		t.Errorf("%v\n%s", err, out)
	}
}

// hole is an archive of one file of the old GNU format that is all but a byte a
// hole of the size.
func hole(size int64) []byte {
	b := make([]byte, 512)
	copy(b, "usr/holes")
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", 1))
	copy(b[136:], "00000000000\x00")
	b[156] = 'S'
	copy(b[257:], "ustar  \x00")
	copy(b[386:], fmt.Sprintf("%011o\x00%011o\x00", 0, 1))
	copy(b[483:], fmt.Sprintf("%011o\x00", size))
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(append(b, 'x'), make([]byte, 511+1024)...)
}

// badArchives are what an archive must not be, and the words that say so.
func badArchives(t testing.TB) map[string]struct {
	b    []byte
	want string
} {
	of := func(parts ...part) []byte { return archive(t, append(good(), parts...)) }
	var many []part
	for i := range 60 {
		many = append(many, part{name: fmt.Sprintf("usr/d%d", i), kind: tar.TypeDir, mode: 0o755})
	}
	return map[string]struct {
		b    []byte
		want string
	}{
		"climbs":                  {of(part{name: "../evil", text: "x"}), `the name "../evil", which climbs`},
		"climbs inside":           {of(part{name: "usr/../../evil", text: "x"}), "which climbs out of it"},
		"absolute":                {of(part{name: "/evil", text: "x"}), `the absolute name "/evil"`},
		"hard link outside":       {of(part{name: "usr/l", kind: tar.TypeLink, link: "/etc/passwd"}), "which is not in it"},
		"hard link climbs":        {of(part{name: "usr/l", kind: tar.TypeLink, link: "../../etc/passwd"}), "which is not in it"},
		"hard link by a link":     {of(part{name: "usr/l", kind: tar.TypeLink, link: "usr/nowhere"}), "no file in it"},
		"hard link to a folder":   {of(part{name: "usr/l", kind: tar.TypeLink, link: "usr/bin"}), "no file in it"},
		"hard link to nothing":    {of(part{name: "usr/l", kind: tar.TypeLink, link: "usr/none"}), "no file in it"},
		"twice":                   {of(part{name: "usr/bin/tool", text: "other"}), `it has "usr/bin/tool" twice`},
		"twice, spelled":          {of(part{name: "./usr//bin/tool", text: "other"}), `it has "usr/bin/tool" twice`},
		"folder then file":        {of(part{name: "usr/bin", text: "other"}), `it has "usr/bin" twice`},
		"climbing link":           {of(part{name: "usr/l", kind: tar.TypeSymlink, link: "../../etc"}), `the link "usr/l" climbs`},
		"through a link to none":  {of(part{name: "usr/nowhere/x", text: "x"}), "is no directory in it"},
		"through a file":          {of(part{name: "usr/bin/tool/x", text: "x"}), "is no directory in it"},
		"device":                  {of(part{name: "usr/null", kind: tar.TypeChar}), `"usr/null" is a device`},
		"disk":                    {of(part{name: "usr/sda", kind: tar.TypeBlock}), `"usr/sda" is a device`},
		"fifo":                    {of(part{name: "usr/pipe", kind: tar.TypeFifo}), `"usr/pipe" is a FIFO`},
		"odd top":                 {of(part{name: "a\nb", text: "x"}), "no name that a runtime takes"},
		"many names":              {of(many...), "more than 40 files"},
		"many parents":            {of(part{name: strings.Repeat("d/", 60) + "x", text: "x"}), "directories deep"},
		"big":                     {of(part{name: "usr/big", text: strings.Repeat("x", 1<<20)}), "more than 1 MB unpacked"},
		"hole":                    {hole(1 << 32), "more than 1 MB unpacked"},
		"gzip bomb":               {gzipped(of(part{name: "usr/big", text: strings.Repeat("\x00", 4<<20)})), "more than 1 MB unpacked"},
		"bomb behind the end":     {gzipped(append(of(), make([]byte, 4<<20)...)), "far more than 1 MB"},
		"bomb of nothing":         {gzipped(make([]byte, 4<<20)), "far more than 1 MB"},
		"garbage":                 {bytes.Repeat([]byte("garbage!"), 400), "no archive that can be read"},
		"cut":                     {of()[:1300], "no archive that can be read"},
		"cut between two":         {of()[:2048], "it is cut"},
		"cut gzip":                {gzipped(of())[:100], "no archive that can be read"},
		"no tar in gzip":          {gzipped([]byte("hello")), "no archive that can be read"},
		"wrong sum of gzip":       {append(gzipped(of())[:len(gzipped(of()))-8], 0, 0, 0, 0, 0, 0, 0, 0), "no archive that can be read"},
		"nothing":                 {nil, "it is cut"},
		"only what is not taken":  {archive(t, []part{{name: "dev/x", text: "x"}}), "there is nothing in it"},
		"long name":               {of(part{name: strings.Repeat("n", 300), text: "x"}), "more than 255 bytes"},
		"root that is a link":     {archive(t, []part{{name: ".", kind: tar.TypeSymlink, link: "/"}}), "its root is no directory"},
		"deep by a link upon one": {archive(t, deeper()), "directories deep"},
	}
}

// deeper makes folders deeper than names are, by links to the last one.
func deeper() []part {
	list := []part{{name: "a/b/c/d", kind: tar.TypeDir, mode: 0o755}, {name: "l", kind: tar.TypeSymlink, link: "a/b/c/d"}}
	return append(list, part{name: "l/e/f/g", kind: tar.TypeDir, mode: 0o755}, part{name: "m", kind: tar.TypeSymlink, link: "l/e/f/g"}, part{name: "m/h/i", text: "x", mode: 0o644})
}

// TestBadArchives: each is refused by name, and leaves nothing behind.
func TestBadArchives(t *testing.T) {
	for name, tc := range badArchives(t) {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { refused(t, store(t), put(t, tc.b), "", tc.want) })
	}
}

// FuzzArchive: whatever an archive holds, nothing comes to stand beside its root.
func FuzzArchive(f *testing.F) {
	for _, tc := range badArchives(f) {
		if len(tc.b) < 64<<10 {
			f.Add(tc.b, true)
		}
	}
	f.Add(archive(f, []part{{name: "a/.wh..wh..opq"}, {name: ".wh.usr"}, {name: "x", kind: tar.TypeSymlink, link: "../../out"}, {name: "x/y", text: "1"}}), true)
	f.Fuzz(func(t *testing.T, b []byte, layers bool) {
		home := t.TempDir()
		d := &draft{home: home}
		if err := os.Mkdir(d.root(), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "out"), []byte("as it was"), 0o644); err != nil {
			t.Fatal(err)
		}
		u, err := d.unpacker(t.Context(), little())
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(u.root)
		u.layers = layers
		u.apply(bytes.NewReader(b))
		list, _ := os.ReadDir(home)
		got, _ := os.ReadFile(filepath.Join(home, "out"))
		if len(list) != 2 || string(got) != "as it was" {
			t.Errorf("beside the root stand %v, %q", list, got)
		}
	})
}

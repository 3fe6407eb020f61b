package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// made is an OCI image layout that is being written.
type made struct {
	t   *testing.T
	dir string
}

type object = map[string]any

func newLayout(t *testing.T) made {
	t.Helper()
	m := made{t, t.TempDir()}
	m.write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	return m
}

func (m made) write(name string, b []byte) {
	m.t.Helper()
	at := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(at, b, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func digestOf(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}

// blob writes a blob and returns its descriptor.
func (m made) blob(media string, b []byte) object {
	d := digestOf(b)
	m.write("blobs/sha256/"+strings.TrimPrefix(d, "sha256:"), b)
	return object{"mediaType": media, "digest": d, "size": len(b)}
}

func (m made) json(v any) []byte {
	m.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		m.t.Fatal(err)
	}
	return b
}

const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// image writes an image of layers for a machine and returns its manifest's
// descriptor; change sees manifest and configuration before they are written.
func (m made) image(arch string, change func(manifest, config object), layers ...[]byte) object {
	var list []object
	var diffs []string
	for i, l := range layers {
		diffs = append(diffs, digestOf(l))
		switch i % 3 {
		case 0:
			list = append(list, m.blob(ociLayer+"+gzip", gzipped(l)))
		case 1:
			list = append(list, m.blob(ociLayer, l))
		default:
			list = append(list, m.blob(ociLayer+"+zstd", zstded(m.t, l)))
		}
	}
	config := object{"architecture": arch, "os": "linux", "rootfs": object{"type": "layers", "diff_ids": diffs}}
	manifest := object{"schemaVersion": 2, "layers": list}
	if change != nil {
		change(manifest, config)
	}
	manifest["config"] = m.blob("application/vnd.oci.image.config.v1+json", m.json(config))
	return m.blob(ociManifest, m.json(manifest))
}

func (m made) index(list ...object) string {
	m.write("index.json", m.json(object{"schemaVersion": 2, "manifests": list}))
	return m.dir
}

func with(o object, key string, v any) object {
	o = maps.Clone(o)
	o[key] = v
	return o
}

func tagged(o object, tag string) object {
	return with(o, "annotations", map[string]string{refName: tag})
}

func on(o object, arch string) object {
	return with(o, "platform", object{"os": "linux", "architecture": arch})
}

// names are all names of a root, and what files hold.
func names(t *testing.T, root string) string {
	t.Helper()
	var list []string
	filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch b, _ := os.ReadFile(path); {
		case err != nil:
			t.Error(err)
		case rel == "." || e.IsDir():
		case e.Type()&fs.ModeSymlink != 0:
			list = append(list, rel+"@")
		default:
			list = append(list, rel+"="+string(b))
		}
		return nil
	})
	slices.Sort(list)
	return strings.Join(list, " ")
}

// TestLayers: layers lie one over the other, however they are packed, and what one
// takes away is gone.
func TestLayers(t *testing.T) {
	m := newLayout(t)
	first := []part{{name: "a", kind: tar.TypeDir, mode: 0o755}, {name: "a/one", text: "1"}, {name: "a/two", text: "2"}, {name: "b/x", text: "x"}, {name: "b/y", text: "y"}, {name: "c", text: "file"}, {name: "d/e/f", text: "f"}, {name: "usr/lib/z", text: "z"}, {name: "lib", kind: tar.TypeSymlink, link: "/usr/lib"}}
	second := []part{{name: "a/.wh.one"}, {name: "a/two", text: "22"}, {name: "b/new", text: "n"}, {name: "b/.wh..wh..opq"}, {name: "c", kind: tar.TypeDir, mode: 0o755}, {name: "c/in", text: "i"}, {name: "lib/through", text: "t"}, {name: "none/.wh.x"}}
	third := []part{{name: ".wh.d"}, {name: "g", kind: tar.TypeLink, link: "a/two"}, {name: "a/two", text: "222"}}
	d := m.image(goruntime.GOARCH, nil, archive(t, first), archive(t, second), archive(t, third))
	i := taken(t, store(t), m.index(d), "")
	if got, want := names(t, i.Root), "a/two=222 b/new=n c/in=i g=22 lib@ usr/lib/through=t usr/lib/z=z"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if i.Digest != d["digest"] {
		t.Errorf("the digest is %s, and the manifest's %s", i.Digest, d["digest"])
	}
}

// TestUnpackedOnce: a layout's image is unpacked once by its manifest's digest,
// even where its layers are gone.
func TestUnpackedOnce(t *testing.T) {
	m := newLayout(t)
	dir := m.index(m.image(goruntime.GOARCH, func(manifest, _ object) {}, archive(t, good())))
	s := store(t)
	first := taken(t, s, dir, "")
	for _, path := range mustGlob(t, filepath.Join(dir, "blobs/sha256/*")) {
		if info, err := os.Stat(path); err == nil && !strings.HasPrefix(string(mustRead(t, path)), "{") {
			os.Truncate(path, info.Size()-1)
		}
	}
	if again := taken(t, s, dir, ""); again.Root != first.Root {
		t.Error("it was unpacked again")
	}
	refused(t, store(t), dir, "", "bytes and not")
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOneOfSeveral: tag and machine choose; where they do not, what there is is
// named.
func TestOneOfSeveral(t *testing.T) {
	m := newLayout(t)
	a := m.image(goruntime.GOARCH, nil, archive(t, []part{{name: "a", text: "1"}}))
	b := m.image(goruntime.GOARCH, nil, archive(t, []part{{name: "b", text: "1"}}))
	c := m.image("riscv64", nil, archive(t, []part{{name: "c", text: "1"}}))
	many := m.blob(ociIndex, m.json(object{"manifests": []object{on(c, "riscv64"), on(b, goruntime.GOARCH), with(with(c, "platform", object{"os": "unknown", "architecture": "unknown"}), "size", 3)}}))
	dir := m.index(tagged(a, "1.0"), tagged(many, "docker.io/library/tools:2.0"), tagged(on(c, "riscv64"), "3.0"))
	if i := taken(t, store(t), dir, "1.0"); i.Digest != a["digest"] {
		t.Error(i.Digest)
	}
	if i := taken(t, store(t), dir, "2.0"); i.Digest != b["digest"] {
		t.Error(i.Digest)
	}
	refused(t, store(t), dir, "3.0", "it is for linux/riscv64, and this machine is linux/"+goruntime.GOARCH)
	refused(t, store(t), dir, "4.0", `it has no image "4.0", but "1.0", "docker.io/library/tools:2.0", "3.0"`)
	refused(t, store(t), dir, "", `it has 2 images for this machine: "1.0"`)
}

// TestBadLayouts: each is refused by name, and leaves nothing behind.
func TestBadLayouts(t *testing.T) {
	root := archive(t, good())
	one := func(change func(manifest, config object), layers ...[]byte) func(made) string {
		return func(m made) string {
			if layers == nil {
				layers = [][]byte{root}
			}
			return m.index(m.image(goruntime.GOARCH, change, layers...))
		}
	}
	layer := func(manifest object) object { return manifest["layers"].([]object)[0] }
	upon := func(parts ...part) func(made) string { return one(nil, root, archive(t, parts)) }
	other := func() string { return digestOf([]byte("other")) }
	for name, tc := range map[string]struct {
		dir  func(made) string
		want string
	}{
		"no index":             {func(m made) string { return m.dir }, "its index.json cannot be read"},
		"empty index":          {func(m made) string { return m.index() }, "a layout without an image"},
		"index of garbage":     {func(m made) string { m.write("index.json", []byte("[[")); return m.dir }, "is not as the OCI image specification has it"},
		"huge index":           {func(m made) string { m.write("index.json", make([]byte, maxDocument+1)); return m.dir }, "more than 4 MB"},
		"wrong machine":        {func(m made) string { return m.index(m.image("s390x", nil, root)) }, "it is for linux/s390x"},
		"wrong system":         {one(func(_, c object) { c["os"] = "windows" }), "it is for windows/"},
		"no machine":           {one(func(_, c object) { delete(c, "architecture") }), "it is for linux/,"},
		"wrong layer":          {one(func(m, _ object) { l := layer(m); l["digest"] = other(); l["size"] = 5 }), "cannot be read"},
		"changed layer":        {changed2(func(m, _ object, at made) { swap(at, layer(m)) }, root), "is sha256:"},
		"short layer":          {one(func(m, _ object) { layer(m)["size"] = 12 }), "bytes and not 12"},
		"negative layer":       {one(func(m, _ object) { layer(m)["size"] = -1 }), "bytes and not -1"},
		"wrong content":        {one(func(_, c object) { c["rootfs"] = object{"diff_ids": []string{other()}} }), "what it calls"},
		"fewer contents":       {one(func(_, c object) { c["rootfs"] = object{} }), "1 layers and its configuration 0"},
		"foreign layer":        {one(func(m, _ object) { layer(m)["mediaType"] = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip" }), "not here to be unpacked"},
		"many layers":          {one(nil, root, root, root, root, root), "more than 4 layers"},
		"no layers":            {one(func(m, c object) { m["layers"] = []object{}; c["rootfs"] = object{} }), "there is nothing in it"},
		"changed manifest":     {func(m made) string { d := m.image(goruntime.GOARCH, nil, root); swap(m, d); return m.index(d) }, "is sha256:"},
		"missing manifest":     {func(m made) string { return m.index(object{"mediaType": ociManifest, "digest": other(), "size": 5}) }, "cannot be read"},
		"digest that climbs":   {func(m made) string { return m.index(object{"digest": "sha256:../../../../etc/passwd", "size": 5}) }, "no SHA-256 digest"},
		"another digest":       {func(m made) string { return m.index(object{"digest": "md5:abc", "size": 5}) }, "no SHA-256 digest"},
		"capital digest":       {func(m made) string { return m.index(object{"digest": "sha256:" + strings.Repeat("A", 64), "size": 5}) }, "no SHA-256 digest"},
		"another type":         {func(m made) string { return m.index(object{"mediaType": "text/html", "digest": other(), "size": 5}) }, `the type "text/html"`},
		"huge manifest":        {func(m made) string { return m.index(object{"digest": other(), "size": 1 << 30}) }, "cannot be read"},
		"nested":               {nested, "indexes more than 3 deep"},
		"many images":          {func(m made) string { return m.index(slices.Repeat([]object{m.image("s390x", nil, root)}, 300)...) }, "more than 256 images"},
		"linked blob":          {linkedBlob, "is a link"},
		"linked index":         {func(m made) string { os.Symlink("/etc/passwd", filepath.Join(m.dir, "index.json")); return m.dir }, "is a link"},
		"index that is a pipe": {func(m made) string { mkfifo(filepath.Join(m.dir, "index.json")); return m.dir }, "is no regular file"},
		"whiteout of ..":       {upon(part{name: "usr/.wh..."}), `"usr/.wh..." takes away what is no name`},
		"whiteout of .":        {upon(part{name: "usr/.wh.."}), "takes away what is no name"},
		"whiteout of nothing":  {upon(part{name: "usr/.wh."}), "takes away what is no name"},
		"whiteout of its own":  {upon(part{name: "usr/.wh..wh.x"}), "takes away what is no name"},
		"whiteout that climbs": {upon(part{name: "../.wh.state"}), "which climbs out of it"},
		"device as a whiteout": {upon(part{name: "usr/gone", kind: tar.TypeChar}), "is a device"},
		"all layers too big":   {one(nil, archive(t, []part{{name: "a", text: strings.Repeat("x", 600<<10)}}), archive(t, []part{{name: "a", text: strings.Repeat("y", 600<<10)}})), "more than 1 MB unpacked"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { refused(t, store(t), tc.dir(newLayout(t)), "", tc.want) })
	}
}

// changed2 is an image whose parts change sees with the layout.
func changed2(change func(manifest, config object, at made), layers ...[]byte) func(made) string {
	return func(m made) string {
		return m.index(m.image(goruntime.GOARCH, func(a, b object) { change(a, b, m) }, layers...))
	}
}

// swap changes the last byte of a blob.
func swap(m made, d object) {
	name := filepath.Join(m.dir, "blobs/sha256", strings.TrimPrefix(d["digest"].(string), "sha256:"))
	b, err := os.ReadFile(name)
	if err != nil {
		m.t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	m.write("blobs/sha256/"+filepath.Base(name), b)
}

func nested(m made) string {
	d := m.image(goruntime.GOARCH, nil, []byte{})
	for range 5 {
		d = m.blob(ociIndex, m.json(object{"manifests": []object{d}}))
	}
	return m.index(d)
}

func linkedBlob(m made) string {
	d := m.image(goruntime.GOARCH, nil, []byte{})
	name := filepath.Join(m.dir, "blobs/sha256", strings.TrimPrefix(d["digest"].(string), "sha256:"))
	if err := os.Rename(name, name+"x"); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(name)+"x", name); err != nil {
		m.t.Fatal(err)
	}
	return m.index(d)
}

// TestWhiteoutsStayInside: what a layer takes away through links is the image's
// own, and no name of the host.
func TestWhiteoutsStayInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newLayout(t)
	first := []part{{name: "a", text: "1"}, {name: "out", kind: tar.TypeSymlink, link: filepath.Dir(outside)}, {name: "in", kind: tar.TypeSymlink, link: "/usr"}, {name: "usr/x", text: "x"}, {name: "usr/y", text: "y"}}
	second := []part{{name: "out/.wh.kept"}, {name: "out/.wh..wh..opq"}, {name: "in/.wh.x"}}
	i := taken(t, store(t), m.index(m.image(goruntime.GOARCH, nil, archive(t, first), archive(t, second))), "")
	if got, want := names(t, i.Root), "a=1 in@ out@ usr/y=y"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file of the host is gone: %v", err)
	}
}

func mkfifo(name string) { unix.Mkfifo(name, 0o600) }

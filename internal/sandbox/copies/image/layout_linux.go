package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The parts of the OCI image specification (1.1: image-layout.md, image-index.md,
// manifest.md, config.md) that are used.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Platform    *platform         `json:"platform"`
		Annotations map[string]string `json:"annotations"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	imageIndex struct {
		Manifests []descriptor `json:"manifests"`
	}
	manifest struct {
		Config descriptor   `json:"config"`
		Layers []descriptor `json:"layers"`
	}
	imageConfig struct {
		platform
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
)

const (
	layoutMark   = "oci-layout"
	refName      = "org.opencontainers.image.ref.name"
	maxDocument  = 4 << 20 // bytes of one document of a layout
	maxManifests = 256
	maxNested    = 3
)

// layout is an OCI image layout's folder, open.
type layout struct{ dir int }

// chosen is the one image of a layout that is meant.
type chosen struct {
	digest string // of its manifest, in hexadecimal
	manifest
	diffs []string
}

// choose finds the image for this machine that tag means, and reads what it is
// made of; its layers are not read yet.
func (l layout) choose(tag string) (c chosen, err error) {
	b, err := l.document("index.json", -1)
	if err != nil {
		return c, err
	}
	var top imageIndex
	if err := decode("index.json", b, &top); err != nil {
		return c, err
	}
	if tag != "" {
		all := tags(top.Manifests)
		top.Manifests = slices.DeleteFunc(top.Manifests, func(d descriptor) bool {
			r := d.Annotations[refName]
			return r != tag && !strings.HasSuffix(r, ":"+tag)
		})
		if len(top.Manifests) == 0 {
			return c, refuse("write one of its tags behind the name, as NAME:TAG", "it has no image %s, but %s", quoted(tag), all)
		}
	}
	count := maxManifests
	list, others, err := l.flat(top.Manifests, maxNested, &count)
	if err != nil {
		return c, err
	}
	switch {
	case len(list) == 0 && len(others) > 0:
		return c, wrongMachine(strings.Join(others, ", "))
	case len(list) == 0:
		return c, refuse("", "it is a layout without an image")
	case len(list) > 1:
		return c, refuse("write the tag of one behind the name, as NAME:TAG", "it has %d images for this machine: %s", len(list), tags(top.Manifests))
	}
	return l.read(list[0])
}

func wrongMachine(is string) error {
	return refuse("take it for this machine (`skopeo copy --override-arch "+goruntime.GOARCH+"`)", "it is for %s, and this machine is linux/%s", is, goruntime.GOARCH)
}

func tags(list []descriptor) string {
	var names []string
	for _, d := range list {
		if r := d.Annotations[refName]; r != "" && len(names) < 8 {
			names = append(names, quoted(r))
		}
	}
	if len(names) == 0 {
		return "none with a tag"
	}
	return strings.Join(names, ", ")
}

// flat are the manifests of this machine, each once, and for what the others are.
func (l layout) flat(list []descriptor, deep int, count *int) (own []descriptor, others []string, err error) {
	for _, d := range list {
		if *count--; *count < 0 || deep == 0 {
			return nil, nil, refuse("", "it has more than %d images, or indexes more than %d deep", maxManifests, maxNested)
		}
		switch d.MediaType {
		case "application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json":
			b, err := l.blob(d)
			if err != nil {
				return nil, nil, err
			}
			var below imageIndex
			if err := decode(d.Digest, b, &below); err != nil {
				return nil, nil, err
			}
			more, rest, err := l.flat(below.Manifests, deep-1, count)
			if err != nil {
				return nil, nil, err
			}
			own, others = append(own, more...), append(others, rest...)
		case "application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json", "":
			switch p := d.Platform; {
			case p != nil && p.OS == "unknown": // what was said of an image, and none
			case p != nil && *p != here():
				others = append(others, fmt.Sprintf("%.40s/%.40s", p.OS, p.Architecture))
			case !slices.ContainsFunc(own, func(o descriptor) bool { return o.Digest == d.Digest }):
				own = append(own, d)
			}
		default:
			return nil, nil, refuse("", "it has a part of the type %s, which is no image", quoted(d.MediaType))
		}
	}
	return own, others, nil
}

func here() platform { return platform{goruntime.GOARCH, "linux"} }

// read reads a manifest and its configuration.
func (l layout) read(d descriptor) (c chosen, err error) {
	b, err := l.blob(d)
	if err != nil {
		return c, err
	}
	if err := decode(d.Digest, b, &c.manifest); err != nil {
		return c, err
	}
	if b, err = l.blob(c.Config); err != nil {
		return c, err
	}
	var cfg imageConfig
	if err := decode(c.Config.Digest, b, &cfg); err != nil {
		return c, err
	}
	if cfg.platform != here() {
		return c, wrongMachine(fmt.Sprintf("%.40s/%.40s", cfg.OS, cfg.Architecture))
	}
	if len(c.Layers) != len(cfg.RootFS.DiffIDs) {
		return c, refuse("", "its manifest has %d layers and its configuration %d", len(c.Layers), len(cfg.RootFS.DiffIDs))
	}
	c.diffs = cfg.RootFS.DiffIDs
	c.digest = strings.TrimPrefix(d.Digest, "sha256:")
	return c, nil
}

func decode(name string, b []byte, to any) error {
	if err := json.Unmarshal(b, to); err != nil {
		return refuse("", "%s is not as the OCI image specification has it: %.200v", quoted(name), err)
	}
	return nil
}

// blobName is where a digest's bytes stand.
func blobName(digest string) (string, error) {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size || strings.ToLower(sum) != sum {
		return "", refuse("", "%s is no SHA-256 digest", quoted(digest))
	}
	return "blobs/sha256/" + sum, nil
}

// open opens a file of the layout, following nothing.
func (l layout) open(name string) (*os.File, int64, error) {
	fd, err := openBelow(l.dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err == unix.ELOOP {
		return nil, 0, refuse("put the file itself there", "its %s is a link", name)
	}
	if err != nil {
		return nil, 0, refuse("", "its %s cannot be read: %v", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, 0, refuse("", "its %s is no regular file", name)
	}
	return f, info.Size(), nil
}

// document is a small file of the layout; size is what it must have, or -1.
func (l layout) document(name string, size int64) ([]byte, error) {
	f, has, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if has > maxDocument || size > maxDocument {
		return nil, refuse("", "its %s has more than %s", name, amount(maxDocument))
	}
	if size >= 0 && has != size {
		return nil, refuse("", "its %s has %d bytes and not %d", name, has, size)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxDocument))
	return b, err
}

// blob is the document that a descriptor means, which must have its digest.
func (l layout) blob(d descriptor) ([]byte, error) {
	name, err := blobName(d.Digest)
	if err != nil {
		return nil, err
	}
	b, err := l.document(name, d.Size)
	if err != nil {
		return nil, err
	}
	return b, matches(d.Digest, sha256.Sum256(b))
}

func matches(digest string, sum [sha256.Size]byte) error {
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != digest {
		return refuse("get it anew: somebody changed it, or it was cut", "what it calls %s is %s", quoted(digest), got)
	}
	return nil
}

// layers are the media types of layers.
func isLayer(media string) bool {
	media = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(media, "+gzip"), "+zstd"), ".gzip")
	return media == "application/vnd.oci.image.layer.v1.tar" || media == "application/vnd.docker.image.rootfs.diff.tar"
}

// layout unpacks the layers of an image, the lowest first. Their digests are
// judged before the root has its name.
func (d *draft) layout(ctx context.Context, l layout, c chosen, limits Limits) error {
	if len(c.Layers) > limits.Layers {
		return refuse("make it of fewer", "it has more than %d layers", limits.Layers)
	}
	u, err := d.unpacker(ctx, limits)
	if err != nil {
		return err
	}
	defer unix.Close(u.root)
	u.layers = true
	for i, layer := range c.Layers {
		if !isLayer(layer.MediaType) {
			return refuse("", "it has a layer of the type %s, which is not here to be unpacked", quoted(layer.MediaType))
		}
		if err := l.layer(u, layer, c.diffs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l layout) layer(u *unpacker, d descriptor, diff string) error {
	name, err := blobName(d.Digest)
	if err != nil {
		return err
	}
	f, size, err := l.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if size != d.Size {
		return refuse("get it anew: somebody changed it, or it was cut", "its layer %s has %d bytes and not %d", quoted(d.Digest), size, d.Size)
	}
	if size > u.tally.limits.Bytes {
		return refuse("take out of it what programs do not need", "its layer %s takes more than %s", quoted(d.Digest), amount(u.tally.limits.Bytes))
	}
	packed := sha256.New()
	if _, err := io.Copy(packed, io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	if err := matches(d.Digest, sum(packed)); err != nil { // before anything believes its bytes
		return err
	}
	packed.Reset()
	from := io.TeeReader(io.NewSectionReader(f, 0, size), packed)
	u.unpacked = sha256.New()
	if err := u.apply(from); err != nil {
		return fmt.Errorf("its layer %.20s...: %w", d.Digest, err)
	}
	if _, err := io.Copy(io.Discard, from); err != nil {
		return err
	}
	if err := matches(d.Digest, sum(packed)); err != nil {
		return err
	}
	return matches(diff, sum(u.unpacked))
}

func sum(h hash.Hash) (s [sha256.Size]byte) {
	h.Sum(s[:0])
	return s
}

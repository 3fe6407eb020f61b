package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// What an archive is made of, in this order: a tar, packed with zstd, that any
// machine can unpack.
const (
	archiveAbout    = "archive.json"  // an Archive
	archiveManifest = "snapshot.json" // the manifest, byte for byte as the ledger knows it
	archiveStore    = "store.db"      // a copy of the store, and so of the ledger
	archiveTrees    = "trees/"        // each tree of the snapshot under its number
	archiveSums     = "SHA256SUMS"    // the last; of every file, as sha256sum writes it
)

// Archive says what an archive holds, as the first file in it does.
type Archive struct {
	Version int `json:"version"`
	// Snapshot is its id, Manifest the SHA-256 of its manifest.
	Snapshot string    `json:"snapshot"`
	Manifest string    `json:"manifest"`
	At       time.Time `json:"at"`
	// LedgerKey is the public key that verifies the ledger in the store.
	LedgerKey string `json:"ledger_key"`
	// LeftOut are what belongs to the state and is in no archive.
	LeftOut []string `json:"left_out"`
}

// leftOut is what whoever holds an archive does not have by it.
func leftOut() []string {
	return []string{
		"the keys: the operator's, the ledger's, the one that seals results, and the one that signs tokens",
		"the halt latch, the log and the reports",
		"the configuration, its rules and its secrets",
		"the commits of single actions, and other snapshots",
	}
}

const (
	archiveBegin = "holdfast-"
	archiveEnd   = ".tar.zst"
)

// ArchiveName is the name of the file that the archive of a snapshot is.
func ArchiveName(id string) string { return archiveBegin + id + archiveEnd }

// ArchiveID is the snapshot whose archive has that name; ok is false of a name that
// ArchiveName never gives.
func ArchiveID(name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, archiveBegin)
	id, end := strings.CutSuffix(id, archiveEnd)
	return id, ok && end && goodID(id)
}

// Pack writes the archive of a snapshot to w. m is as Read gave it, store the path of
// a copy of the store, key the text of the public key of its ledger. After an error
// w holds no archive.
func (k *Keeper) Pack(ctx context.Context, w io.Writer, m *Manifest, store, key string) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	p := &packing{tar: tar.NewWriter(z), at: m.At.UTC().Truncate(time.Second)}
	if err = p.all(ctx, k, m, store, key); err == nil {
		err = p.tar.Close()
	}
	return full(errors.Join(err, z.Close()))
}

// packing is one archive on its way.
type packing struct {
	tar  *tar.Writer
	at   time.Time // of every name in it
	sums bytes.Buffer
}

func (p *packing) all(ctx context.Context, k *Keeper, m *Manifest, store, key string) error {
	about, err := json.MarshalIndent(Archive{Version: 1, Snapshot: m.ID, Manifest: m.Sum, At: k.opt.Now().UTC(), LedgerKey: key, LeftOut: leftOut()}, "", "  ")
	if err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(k.opt.Dir, m.ID+manifestEnd))
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(manifest); hex.EncodeToString(sum[:]) != m.Sum {
		return damaged("its manifest was changed meanwhile")
	}
	if err := errors.Join(p.text(archiveAbout, append(about, '\n')), p.text(archiveManifest, manifest)); err != nil {
		return err
	}
	if err := p.copy(archiveStore, store); err != nil {
		return err
	}
	for i := range m.Trees {
		if err := p.tree(ctx, k, i, &m.Trees[i]); err != nil {
			return fmt.Errorf("%s: %w", m.Trees[i].Path, err)
		}
	}
	return p.text(archiveSums, p.sums.Bytes())
}

// header writes what a name is.
func (p *packing) header(h tar.Header) error {
	h.ModTime, h.Format = p.at, tar.FormatPAX
	return p.tar.WriteHeader(&h)
}

// file writes one file, which fill gives the content of.
func (p *packing) file(name string, perm uint32, size int64, fill func(io.Writer) error) error {
	if err := p.header(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(perm), Size: size}); err != nil {
		return err
	}
	sum := sha256.New()
	if err := fill(io.MultiWriter(p.tar, sum)); err != nil {
		return err
	}
	p.sums.WriteString(sumLine(name, sum.Sum(nil)))
	return nil
}

func (p *packing) text(name string, b []byte) error {
	return p.file(name, 0o600, int64(len(b)), func(w io.Writer) error { _, err := w.Write(b); return err })
}

func (p *packing) copy(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return p.file(name, 0o600, info.Size(), func(w io.Writer) error { _, err := io.Copy(w, f); return err })
}

// treeTop is the folder of an archive that a tree stands in.
func treeTop(i int) string { return fmt.Sprint(archiveTrees, i) }

// tree writes one tree out of its versions, and not out of the work tree.
func (p *packing) tree(ctx context.Context, k *Keeper, i int, part *Part) (err error) {
	r, err := k.repo(ctx, part.Path)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := k.within(ctx, Tree{Path: part.Path})
	defer cancel()
	list, err := r.list(ctx, part.Commit)
	if err != nil {
		return err
	}
	b, err := r.blobs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := p.header(tar.Header{Typeflag: tar.TypeDir, Name: treeTop(i), Mode: 0o700}); err != nil {
		return err
	}
	for j := range list {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := p.entry(b, treeTop(i)+"/"+list[j].path, &list[j]); err != nil {
			return err
		}
	}
	if content(list) != part.Content {
		return damaged("its content is not what was kept")
	}
	return nil
}

func (p *packing) entry(b *blobs, name string, e *entry) error {
	switch e.kind {
	case folder:
		return p.header(tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: int64(e.perm)})
	case link:
		var to bytes.Buffer
		if err := b.copy(e, &to); err != nil {
			return err
		}
		return p.header(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to.String(), Mode: 0o777})
	}
	return p.file(name, e.perm, e.size, func(w io.Writer) error { return b.copy(e, w) })
}

// sumLine is one line of archiveSums.
func sumLine(name string, sum []byte) string {
	mark := ""
	if strings.ContainsAny(name, "\\\n\r") {
		mark, name = `\`, strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	}
	return fmt.Sprintf("%s%x  %s\n", mark, sum, name)
}

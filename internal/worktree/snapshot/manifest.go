package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
)

// Manifest is one snapshot, as its file beside the versions has it.
type Manifest struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Seq orders snapshots, whatever the clock says.
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Who  string    `json:"who"`
	Note string    `json:"note,omitempty"`
	// Reason is why it was taken.
	Reason Reason `json:"why"`
	// Whole says that every file was read, whatever its times said.
	Whole bool   `json:"whole,omitempty"`
	Trees []Part `json:"trees"`
	// Failed are trees that could not be kept, and why.
	Failed []Left `json:"failed,omitempty"`
	// Ledger is where the record stood.
	Ledger Position `json:"ledger"`
	// Sum is the SHA-256 of the file, as it was read; no part of it.
	Sum string `json:"-"`
}

// Reason is why a snapshot was taken. The words are stored.
type Reason string

// The reasons.
const (
	Daily          Reason = "daily"
	AskedFor       Reason = "asked for"
	BeforeRollback Reason = "before a rollback"
)

// Position is a place in the ledger: how many leaves it had.
type Position struct {
	Size int64  `json:"size"`
	Root string `json:"root,omitempty"`
}

// Part is one tree in a snapshot.
type Part struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Commit  string `json:"commit"`
	Tree    string `json:"tree"`
	Content string `json:"content"` // SHA-256 over names, modes and contents
	Files   int    `json:"files"`
	Links   int    `json:"links"`
	Folders int    `json:"folders"`
	Bytes   int64  `json:"bytes"`
	Changed int    `json:"changed"` // since the version before
	// Ledger is how many leaves the ledger had when it was looked at; 0 is that of the
	// snapshot.
	Ledger int64 `json:"ledger,omitempty"`
	// HardLinks are files with other names, each of which is kept as one of its own.
	HardLinks int     `json:"hard_links,omitempty"`
	LeftOut   LeftOut `json:"left_out"`
	TornCount int     `json:"torn_count,omitempty"`
	Torn      []Left  `json:"torn,omitempty"` // changed while they were read
	// Head is what the tree's own repository had checked out, Middle what it was
	// in the middle of.
	Head   string `json:"head,omitempty"`
	Middle string `json:"middle,omitempty"`
}

// LeftOut counts what is no part of a version, and names the first 200.
type LeftOut struct {
	Names int    `json:"names"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	First []Left `json:"first,omitempty"`
}

func (m *Manifest) message() string {
	at := m.At.Format(time.RFC3339)
	return fmt.Sprintf("snapshot: %s %s\n\nHoldfast-Snapshot: %s\n", words(string(m.Reason)), at, m.ID)
}

const manifestEnd = ".json"

// maxManifest bounds the file of one snapshot.
const maxManifest = 64 << 20

func (m *Manifest) write(dir string) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	sum := sha256.Sum256(b)
	m.Sum = hex.EncodeToString(sum[:])
	return durable.ReplaceFile(filepath.Join(dir, m.ID+manifestEnd), b, 0o600)
}

// goodID says whether a text may be a snapshot's id.
func goodID(id string) bool {
	return len(id) == 22 && strings.Trim(id, "0123456789abcdef-") == ""
}

// Read reads one snapshot's manifest.
func (k *Keeper) Read(id string) (*Manifest, error) {
	if !goodID(id) {
		return nil, refused(holdfast.KindNotFound, "`holdfast snapshot ls` lists them", "there is no snapshot %.100q", id)
	}
	path := filepath.Join(k.opt.Dir, id+manifestEnd)
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, refused(holdfast.KindNotFound, "`holdfast snapshot ls` lists them", "there is no snapshot %s", id)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxManifest {
		return nil, damaged("its manifest is no file of this size")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseManifest(b, id)
}

// parseManifest reads the text of that snapshot's manifest.
func parseManifest(b []byte, id string) (*Manifest, error) {
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil || m.Version != 1 || m.ID != id {
		return nil, damaged("its manifest cannot be read")
	}
	sum := sha256.Sum256(b)
	m.Sum = hex.EncodeToString(sum[:])
	return m, nil
}

// List reads every snapshot's manifest, the newest first. One that cannot be read
// stands with its id alone, and why in Failed.
func (k *Keeper) List() ([]Manifest, error) {
	files, err := os.ReadDir(k.opt.Dir)
	if err != nil {
		return nil, err
	}
	var out []Manifest
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), manifestEnd)
		if !ok || !goodID(id) {
			continue
		}
		m, err := k.Read(id)
		if err != nil {
			m = &Manifest{ID: id, Failed: []Left{{Why: err.Error()}}}
		}
		out = append(out, *m)
	}
	slices.SortStableFunc(out, func(a, b Manifest) int {
		if a.Seq != b.Seq {
			return int(max(-1, min(1, b.Seq-a.Seq)))
		}
		return strings.Compare(b.ID, a.ID)
	})
	return out, nil
}

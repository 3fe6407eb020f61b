package versions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/sys/unix"
)

// archived is what came of one archive, as people and the ledger are told.
type archived struct {
	Archive  string `json:"archive"` // the file's name
	Snapshot string `json:"snapshot"`
	To       string `json:"to"` // archiveFolder or archiveCommand
	// Path is where it is, "" where a command has it.
	Path   string `json:"path,omitempty"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Verified is how: read or given back from where it is, or before it was sent.
	Verified string `json:"verified"`
	// Found says that it was there already, and is whole.
	Found bool   `json:"found,omitempty"`
	Said  string `json:"said,omitempty"` // by the command
}

// Where archives go, and how they were verified.
const (
	archiveFolder  = "folder"
	archiveCommand = "command"
	readBack       = "read back and restored"
	givenBack      = "given back by the command and restored"
	beforeSent     = "restored before it was sent, and nobody can read it back"
)

// Archive archives a snapshot, the newest one where id is empty.
func (s *Service) Archive(ctx context.Context, who, id string) (json.RawMessage, error) {
	a, err := s.archive(ctx, who, id, "asked for")
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func (s *Service) archive(ctx context.Context, who, id, why string) (a *archived, err error) {
	conf := s.current().Archive
	if !conf.isSet() {
		return nil, usage.HintErrorf("name a folder or a command under `snapshots: archive:` in the configuration",
			"archives go nowhere")
	}
	k, err := s.hand()
	if err != nil {
		return nil, err
	}
	if id == "" {
		if id, err = newestOf(k); err != nil {
			return nil, err
		}
	}
	m, _, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	a = &archived{Archive: snapshot.ArchiveName(m.ID), Snapshot: m.ID, To: archiveCommand, Verified: beforeSent}
	switch {
	case conf.Dir != "":
		a.To, a.Verified = archiveFolder, readBack
	case len(conf.Verify) > 0:
		a.Verified = givenBack
	}
	err = s.keep(ctx, ownAct{boundary: snapshotArchive,
		event: eventArchived, who: excerpt.Word(who), payload: map[string]any{"snapshot": m.ID, "to": a.To, "why": why},
		do: func(ctx context.Context) (string, map[string]any, error) {
			if !s.archiving.TryLock() {
				return "", nil, &holdfast.Error{Kind: holdfast.KindConflict, Why: "an archive is being written", Hint: "wait for it; `holdfast ledger tail --events` shows when it is done"}
			}
			defer s.archiving.Unlock()
			err := s.pack(ctx, k, m, &conf, a)
			return m.ID, a.data(m, err), err
		}})
	if err != nil {
		return nil, err // what was cut off may still be at work on a
	}
	if isOfWeek(m, time.Now()) {
		s.fail(ofArchive, "")
	}
	return a, nil
}

func newestOf(k *snapshot.Keeper) (string, error) {
	list, err := k.List()
	if err == nil && len(list) == 0 {
		err = &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no snapshot to archive", Hint: "`holdfast snapshot take` takes one"}
	}
	if err != nil {
		return "", err
	}
	return list[0].ID, nil
}

// data is what the ledger keeps of it: enough to know the file again.
func (a *archived) data(m *snapshot.Manifest, err error) map[string]any {
	data := map[string]any{"archive": a.Archive, "manifest": m.Sum, "to": a.To, "done": err == nil}
	if a.Said != "" {
		data["said"] = excerpt.Of(a.Said, 512)
	}
	if err != nil {
		data["error"] = excerpt.Word(err.Error())
		return data
	}
	data["sha256"], data["bytes"], data["verified"] = a.SHA256, a.Bytes, a.Verified
	if a.Found {
		data["found"] = true
	}
	return data
}

// scratchName begins the folder below the snapshots in which an archive is made.
const scratchName = "archive-"

// scratch makes one, and clears away what a crash left of others. The caller holds
// the lock.
func (s *Service) scratch() (string, error) {
	old, err := filepath.Glob(filepath.Join(s.Dir, scratchName+"*"))
	for _, dir := range old {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(s.Dir, scratchName)
}

// pack makes the archive, verifies it and brings it to where it goes.
func (s *Service) pack(
	ctx context.Context, k *snapshot.Keeper, m *snapshot.Manifest, conf *Archive, a *archived,
) (err error) {
	dir, err := s.scratch()
	if err != nil {
		return noRoom(err)
	}
	defer func() { err = noRoom(errors.Join(err, os.RemoveAll(dir))) }()
	if conf.Dir == "" {
		file, err := s.packInto(ctx, k, m, dir, a)
		if err != nil {
			return err
		}
		if err := s.send(ctx, conf, a, file, dir); err != nil || len(conf.Verify) == 0 {
			return err
		}
		if err := os.Remove(file); err != nil { // its room may be needed
			return err
		}
		return s.fetch(ctx, conf, a, dir)
	}
	f, err := s.openArchives(conf.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sweep(); err != nil {
		return err
	}
	a.Path = f.Path(a.Archive)
	if found, err := s.found(ctx, f, a, m, dir); found || err != nil {
		return err
	}
	file, err := s.packInto(ctx, k, m, dir, a)
	if err != nil {
		return err
	}
	return s.put(ctx, f, a, file, dir)
}

// room is an error where an archive, and what it is restored to, would leave the
// ledger too little.
func (s *Service) room(m *snapshot.Manifest) error {
	var need int64
	for _, p := range m.Trees {
		need += p.Bytes
	}
	for _, name := range []string{s.DB, s.DB + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			need += info.Size()
		}
	}
	return snapshot.Room(s.Dir, 2*need)
}

// packInto makes the archive in dir. Its store holds the record of the snapshot, and
// is signed to its end.
func (s *Service) packInto(
	ctx context.Context, k *snapshot.Keeper, m *snapshot.Manifest, dir string, a *archived,
) (string, error) {
	if err := s.room(m); err != nil {
		return "", err
	}
	if _, err := s.Checkpoint(ctx); err != nil {
		return "", err
	}
	store, file := filepath.Join(dir, "copy.db"), filepath.Join(dir, a.Archive)
	if err := s.Store().Backup(ctx, store); err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	sum := newSummed(f)
	err = k.Pack(ctx, sum, m, store, s.Key().String())
	if err := errors.Join(err, f.Close(), os.Remove(store)); err != nil {
		return "", err
	}
	a.SHA256, a.Bytes = sum.text(), sum.n
	return file, nil
}

// openArchives opens the folder that archives go to, which nobody but root and Holdfast's
// own user may change, and no agent works in.
func (s *Service) openArchives(path string) (*snapshot.Folder, error) {
	var trees []string
	for _, t := range s.current().ListTrees() {
		trees = append(trees, t.Path)
	}
	g, err := guard.New(trees)
	if err != nil {
		return nil, err
	}
	const hint = "mount it or make it, for Holdfast's own user alone; no archive is written meanwhile"
	real, err := g.Resolve(path)
	if err != nil {
		return nil, usage.HintErrorf(hint, "the archives' folder cannot be used: %v", err)
	}
	for _, other := range append(trees, s.State) {
		if real == other || strings.HasPrefix(real, other+"/") {
			return nil, usage.HintErrorf("choose a folder elsewhere, best on another disk or machine", "the archives' folder %s lies within %s", real, other)
		}
	}
	f, err := snapshot.OpenFolder(real)
	if err != nil {
		return nil, usage.HintErrorf(hint, "the archives' folder cannot be used: %v", err)
	}
	return f, nil
}

// found says whether the archive is there already, as one that was written whole
// while its record was cut off is. Another file of its name is an error.
func (s *Service) found(
	ctx context.Context, f *snapshot.Folder, a *archived, m *snapshot.Manifest, dir string,
) (bool, error) {
	file, err := f.Open(a.Archive)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	r, err := readArchive(ctx, file, dir, s.Key())
	if err == nil && r.Manifest.Sum != m.Sum {
		err = errors.New("it is of another snapshot")
	}
	if err != nil {
		return false, &holdfast.Error{Kind: holdfast.KindConflict,
			Why:  a.Path + " is there and is not the archive of this snapshot: " + excerpt.Word(err.Error()),
			Hint: "look at it and move it away, then archive again", Err: err}
	}
	a.SHA256, a.Bytes, a.Found = r.SHA256, r.Bytes, true
	return true, nil
}

// put brings the archive into the folder, where it has its name only once it was
// read back and restored from there.
func (s *Service) put(ctx context.Context, f *snapshot.Folder, a *archived, file, dir string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	return f.Put(ctx, a.Archive, from, func(back io.Reader) error {
		if err := os.Remove(file); err != nil { // its room may be needed
			return err
		}
		return s.verified(ctx, back, a, dir)
	})
}

// verified restores what was written, and compares it.
func (s *Service) verified(ctx context.Context, r io.Reader, a *archived, dir string) error {
	back, err := readArchive(ctx, r, dir, s.Key())
	if err == nil && back.SHA256 != a.SHA256 {
		err = errors.New("it is not what was written")
	}
	if err != nil {
		return fmt.Errorf("the archive was written and does not verify: %w", err)
	}
	return nil
}

// noRoom names the error of a state without room.
func noRoom(err error) error {
	var own *holdfast.Error
	full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || sqlite.IsFull(err)
	if !full || errors.As(err, &own) {
		return err
	}
	return &holdfast.Error{Kind: holdfast.KindInternal, Rule: "disk/full", Why: "there is no room left to make an archive",
		Hint: "make room where the state is: it needs the snapshot and the store twice for a while", Err: err}
}

// summed takes the SHA-256 of what is written through it, and counts it.
type summed struct {
	to  io.Writer
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	n int64
}

func newSummed(to io.Writer) *summed { return &summed{to: to, sum: sha256.New()} }

// Write implements io.Writer.
func (s *summed) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.sum.Write(p[:n]) // a hash takes everything
	s.n += int64(n)
	return n, err
}

func (s *summed) text() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// isArchived says whether the ledger has that a snapshot was archived, and as what
// file.
func (s *Service) isArchived(ctx context.Context, id string) (sums []string, err error) {
	err = s.events(ctx, id, func(e *ledger.Event, data map[string]any) {
		if sum, ok := data["sha256"].(string); ok && e.Name == eventArchived && data["done"] == true {
			sums = append(sums, sum)
		}
	})
	return sums, err
}

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// snapshots is what the daemon does with versions of work trees.
type snapshots struct {
	d *Daemon

	mu      sync.Mutex
	keeper  *snapshot.Keeper   // guarded by mu; nil until it is first needed
	trouble map[trouble]string // guarded by mu; why
	changed bool               // guarded by mu; the configuration has, since the last look

	moved map[trouble]string // guarded by mu; the troubles of trees whose paths lead elsewhere

	behind following
	ending ending

	archiving sync.Mutex // one archive is written at a time
}

// The events that tell of versions.
const (
	eventTaken    = "snapshot_taken"
	eventKept     = "work_committed"
	eventRolled   = "rolled_back"
	eventBack     = "version_put_back" // what a rollback made of a tree, of the snapshot from before it
	eventAsked    = "rollback_asked"
	eventVerified = "snapshot_verified"
	eventDropped  = "snapshot_dropped"
	eventCutOff   = "snapshot_cut_off"
	eventArchived = "snapshot_archived"
	eventCleared  = "archive_dropped"
)

func (d *Daemon) snapshotDir() string { return d.Paths.snapshots() }

func (p Paths) snapshots() string { return filepath.Join(p.Dir, "snapshots") }

// hand is the keeper, opened.
func (s *snapshots) hand() (*snapshot.Keeper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keeper != nil {
		return s.keeper, nil
	}
	k, err := snapshot.Open(snapshot.Options{Dir: s.d.snapshotDir(), Own: func() []string { return s.d.Kernel.Policy().Own }, Before: s.recordBefore, After: s.recordAfter, Ledger: s.position})
	if err == nil {
		s.keeper = k
	}
	return k, err
}

// resume carries rollbacks to their end that Holdfast was killed in. One that cannot be
// carried there waits for a person: at a later start somebody may have worked on the tree.
func (s *snapshots) resume(ctx context.Context) error {
	if _, err := os.Lstat(s.d.snapshotDir()); missing(err) {
		return nil
	}
	k, err := s.hand()
	if err != nil {
		return err
	}
	begun, unread := snapshot.BegunIn(s.d.snapshotDir())
	for _, b := range begun {
		if err := s.finish(ctx, k, b); err != nil {
			s.fail(ofRollbackIn(b.Tree.Path), reason(err))
		}
	}
	stopped, more := snapshot.StoppedIn(s.d.snapshotDir())
	for _, b := range stopped {
		s.fail(ofRollbackIn(b.Tree.Path), stoppedTold(s.d.snapshotDir(), &b))
	}
	if err := errors.Join(unread, more); err != nil {
		s.fail(ofRollback, unreadTold(err))
	}
	return nil
}

// HalfWay says of a state's work trees which are half way back to a version. Those that
// are on their way now are only where nobody owns the state.
func HalfWay(p Paths, owned bool) (out []string) {
	dir := p.snapshots()
	stopped, err := snapshot.StoppedIn(dir)
	for _, b := range stopped {
		out = append(out, ofRollbackIn(b.Tree.Path).String()+": "+stoppedTold(dir, &b))
	}
	if !owned {
		begun, unread := snapshot.BegunIn(dir)
		for _, b := range begun {
			out = append(out, "a rollback was cut off in "+b.Tree.Path+": it goes on to its end when Holdfast starts")
		}
		err = errors.Join(err, unread)
	}
	if err != nil {
		out = append(out, ofRollback.String()+": "+unreadTold(err))
	}
	return out
}

func unreadTold(err error) string {
	return reason(err) + "; look at the work trees, then remove it and restart"
}

// stoppedTold is what people are told of a tree that is half way, until it went back.
func stoppedTold(dir string, b *snapshot.Stopped) string {
	again := "roll it back again"
	if id := b.To.Snapshot(); id != "" {
		again = fmt.Sprintf("`holdfast rollback %s --tree %s` goes on", id, b.Tree.Path)
	}
	return fmt.Sprintf("at %s, on its way to %s: %s; what was there before is in the snapshot %s; %s (with --mid-merge in the middle of a merge), or, where it is to stay as it is, remove %s and restart",
		b.Since.UTC().Format(time.RFC3339), b.To.Name(), b.Why, b.Before, again, snapshot.StoppedFile(dir, b.Tree.Path))
}

// finish carries one to its end.
func (s *snapshots) finish(ctx context.Context, k *snapshot.Keeper, b snapshot.Begun) error {
	tried := false
	s.d.log.Warn("a rollback was cut off, and is carried to its end", "tree", b.Tree.Path, "who", b.Who)
	err := s.d.keep(ctx, ownAct{boundary: snapshotRollback, event: eventRolled, who: b.Who, whole: true, payload: map[string]any{"tree": b.Tree.Path, "why": "it was cut off"},
		do: func(ctx context.Context) (string, map[string]any, error) {
			tried = true
			out, err := k.Finish(ctx, b)
			return "", rolledData(out, map[string]any{"tree": b.Tree.Path, "resumed": true}, err), err
		}})
	if err != nil && !tried && ctx.Err() == nil {
		err = errors.Join(err, k.Stop(b, err))
	}
	return err
}

// troubleKind is a kind of work on versions that can fail.
type troubleKind int

const (
	troubleDay troubleKind = iota
	troubleAction
	troubleRollback
	troubleArchive
	troubleMoved
)

// trouble is one thing that can be in trouble.
type trouble struct {
	kind troubleKind
	tree string // the work tree's path; empty of troubleDay, troubleArchive and all trees
}

// The troubles that are of no one tree.
var (
	ofDay      = trouble{kind: troubleDay}
	ofArchive  = trouble{kind: troubleArchive}
	ofRollback = trouble{kind: troubleRollback}
)

// String returns the trouble's name for people.
func (t trouble) String() string {
	name, joint := "", " in "
	switch t.kind {
	case troubleDay:
		name = "the snapshot of the day is missing"
	case troubleAction:
		name = "an action's change could not be kept"
	case troubleRollback:
		name = "a rollback that was cut off could not be carried to its end"
	case troubleArchive:
		name = "the archive of the week is missing"
	case troubleMoved:
		name, joint = "the path of a work tree leads elsewhere", ": "
	}
	if t.tree == "" {
		return name
	}
	return name + joint + t.tree
}

// compareName orders troubles by their names.
func (t trouble) compareName(other trouble) int { return strings.Compare(t.String(), other.String()) }

// ofRollbackIn is the trouble of one tree.
func ofRollbackIn(tree string) trouble { return trouble{troubleRollback, tree} }

// fail notes what status tells, and sets the condition that people are told of; an
// empty why clears it.
func (s *snapshots) fail(what trouble, why string) {
	s.mu.Lock()
	was := s.trouble[what]
	if s.trouble == nil {
		s.trouble = map[trouble]string{}
	}
	if s.trouble[what] = why; why == "" {
		delete(s.trouble, what)
	}
	any := len(s.trouble) > 0
	s.mu.Unlock()
	if why == was {
		return
	}
	if why != "" {
		s.d.log.Error(what.String(), "why", why)
		why = what.String() + ": " + why
	}
	s.d.condition(holdfast.Local, "", watch.SnapshotMissing, any, why)
}

// reason is what people are told of an error: room enough for a path and what is wrong
// with it.
func reason(err error) string { return excerpt.Of(err.Error(), 512) }

// troubled says whether something is in trouble.
func (s *snapshots) troubled(what trouble) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble[what] != ""
}

// problems are what status tells.
func (s *snapshots) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, what := range slices.SortedFunc(maps.Keys(s.trouble), trouble.compareName) {
		out = append(out, what.String()+": "+s.trouble[what])
	}
	return out
}

// position is where the ledger stands.
func (s *snapshots) position(ctx context.Context) (at snapshot.Position, err error) {
	err = s.d.store.View(ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		for _, h := range heads {
			if h.Tenant == holdfast.Local {
				at = snapshot.Position{Size: h.Size, Root: fmt.Sprintf("%x", h.Root[:])}
			}
		}
		return err
	})
	return at, err
}

// Take takes a snapshot of every tracked tree.
func (s *snapshots) Take(ctx context.Context, who, note string) (json.RawMessage, error) {
	m, err := s.take(ctx, snapshot.Manifest{Who: who, Note: note, Reason: snapshot.AskedFor})
	if m == nil {
		return nil, err
	}
	b, merr := json.Marshal(m)
	return b, errors.Join(err, merr)
}

func (s *snapshots) take(ctx context.Context, m snapshot.Manifest) (taken *snapshot.Manifest, err error) {
	k, err := s.hand()
	if err != nil {
		return nil, err
	}
	m.Note, m.Who = s.d.maskText(excerpt.Word(m.Note)), excerpt.Word(m.Who)
	if m.Ledger, err = s.position(ctx); err != nil {
		return nil, err
	}
	conf := s.d.config().Snapshots
	err = s.d.keep(ctx, ownAct{boundary: snapshotTake, event: eventTaken, who: m.Who, payload: map[string]any{"why": m.Reason, "note": m.Note, "trees": len(conf.Trees)},
		do: func(ctx context.Context) (string, map[string]any, error) {
			var err error
			taken, err = k.Take(ctx, conf.ListTrees(), m)
			s.tidied(k)
			if taken == nil {
				return "", nil, err
			}
			at, perr := s.position(ctx)
			return taken.ID, takenData(taken, at), errors.Join(err, perr)
		}})
	return taken, err
}

// tidied tells of versions that a crash cut off.
func (s *snapshots) tidied(k *snapshot.Keeper) {
	for _, path := range k.Unfinished() {
		s.d.log.Warn("a version was cut off by a crash, and what it left was cleared away", "tree", path)
		if err := s.d.Kernel.Record(
			kernel.Event{Tenant: holdfast.Local, Name: eventCutOff, Who: keeperAgent, Subject: excerpt.Word(path)},
		); err != nil {
			s.d.log.Error("a version that was cut off could not be recorded", "err", err)
		}
	}
}

// takenData is what the ledger keeps of a snapshot: enough to find that somebody
// changed it, and where the ledger stood once it was whole.
func takenData(m *snapshot.Manifest, at snapshot.Position) map[string]any {
	files, bytes := 0, int64(0)
	for _, p := range m.Trees {
		files, bytes = files+p.Files, bytes+p.Bytes
	}
	return map[string]any{"snapshot": m.ID, "manifest": m.Sum, "why": m.Reason, "trees": len(m.Trees), "failed": len(m.Failed), "files": files, "bytes": bytes, "ledger": at.Size}
}

// List lists every snapshot, the newest first.
func (s *snapshots) List(context.Context) (json.RawMessage, error) {
	k, err := s.hand()
	if err != nil {
		return nil, err
	}
	list, err := k.List()
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []snapshot.Manifest{}
	}
	return json.Marshal(list)
}

// Shown is a snapshot, and what the ledger knows of it.
type shownSnapshot struct {
	snapshot.Manifest
	// Recorded says that the manifest is the one that the ledger has.
	Recorded bool `json:"recorded"`
	restored
}

// restored is what came of restoring a snapshot elsewhere, the last time.
type restored struct {
	// Verified is when it was found whole, "" if never or if it no longer was.
	Verified string `json:"verified,omitempty"`
	// Damaged is when it was found not to be what was kept, "" if it was whole.
	Damaged string `json:"damaged,omitempty"`
}

func restoredAt(at time.Time, ok bool) restored {
	is := at.UTC().Format(time.RFC3339)
	if ok {
		return restored{Verified: is}
	}
	return restored{Damaged: is}
}

// Show says what is in one.
func (s *snapshots) Show(ctx context.Context, id string) (json.RawMessage, error) {
	m, is, err := s.read(ctx, id)
	var own *holdfast.Error
	recorded := !(errors.As(err, &own) && own.Rule == "snapshot/unrecorded")
	if err != nil && recorded {
		return nil, err
	}
	return json.Marshal(shownSnapshot{Manifest: *m, Recorded: recorded, restored: is})
}

// read reads a manifest, and compares it with what the ledger has of it. One that
// differs is returned with the error snapshot/unrecorded.
func (s *snapshots) read(ctx context.Context, id string) (m *snapshot.Manifest, is restored, err error) {
	k, err := s.hand()
	if err != nil {
		return nil, is, err
	}
	if m, err = k.Read(id); err != nil {
		return nil, is, err
	}
	sum := ""
	err = s.events(ctx, id, func(e *ledger.Event, data map[string]any) {
		switch e.Name {
		case eventTaken, eventRolled:
			if v, ok := data["manifest"].(string); ok && sum == "" {
				sum = v
			}
		case eventVerified:
			is = restoredAt(e.Timestamp, data["ok"] == true)
		}
	})
	if err != nil {
		return nil, is, err
	}
	if sum != m.Sum {
		return m, is, &holdfast.Error{Kind: holdfast.KindConflict, Rule: "snapshot/unrecorded", Why: "the snapshot " + m.ID + " is not the one that the ledger has: somebody changed it, or it was cut off",
			Hint: "take another one from `holdfast snapshot ls`, or from the archive"}
	}
	return m, is, nil
}

// events calls f for the events about a snapshot or a crossing. More of them than
// are read is an error: each is of a person's word or of the day.
func (s *snapshots) events(ctx context.Context, id string, f func(*ledger.Event, map[string]any)) error {
	const most = 10_000
	return s.d.store.View(ctx, func(tx kernel.Tx) error {
		list, err := tx.Events(holdfast.Local, id, most)
		if err != nil {
			return err
		}
		if len(list) == most {
			return fmt.Errorf("the ledger has %d events or more about %s", most, id)
		}
		for i := range list {
			e, err := ledger.ParseEvent(list[i].Record)
			if err != nil {
				return err
			}
			var data map[string]any
			if len(e.Data) > 0 {
				if err := json.Unmarshal(e.Data, &data); err != nil {
					return err
				}
			}
			f(e, data)
		}
		return nil
	})
}

// Verify restores a snapshot elsewhere and compares it.
func (s *snapshots) Verify(ctx context.Context, id string) (json.RawMessage, error) {
	out, err := s.verify(ctx, id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (s *snapshots) verify(ctx context.Context, id string) ([]snapshot.Verified, error) {
	m, _, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	out, err := s.keeper.Verify(ctx, m)
	if err != nil {
		return nil, err
	}
	ok := true
	for _, v := range out {
		ok = ok && v.OK
	}
	err = s.d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Crossing: m.ID, Name: eventVerified, Who: person(), Subject: m.ID, Data: map[string]any{"ok": ok, "trees": len(out)}})
	return out, err
}

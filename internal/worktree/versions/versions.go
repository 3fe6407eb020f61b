// Package versions is the service that keeps versions of work trees: after acts, once a day, in archives once a
// week; and puts them back on a person's word or after an act that failed.
package versions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Options are what a Service is made of. What is a function returns what exists only later, or may change.
type Options struct {
	Dir   string // of the versions
	State string // the state directory
	DB    string // the file of the store
	// Store is nil until it is open.
	Store func() Store
	Key   func() *ledger.Verifier
	// Own returns the paths that are Holdfast's own, of which no versions are kept.
	Own func() []string
	// Checkpoint signs the ledger.
	Checkpoint func(context.Context) (int, error)
	// Token returns a token of Holdfast's own agent, which has Role.
	Token func(now time.Time) (holdfast.Secret, error)
	// Halted reports whether a crossing would be denied because everything is halted.
	Halted func() bool
	// Condition receives whether something is in trouble, and why.
	Condition func(holds bool, why string)
	// Committed receives the number of files that an act has changed.
	Committed func(a kernel.Acting, files int)
	Run       func(context.Context, command.Command) (string, error)
	Mask      func(string) string
	Person    string // the user of this process
	Log       func() *slog.Logger
}

// Store is the open store.
type Store interface {
	kernel.Store
	Backup(ctx context.Context, file string) error
	// Poisoned returns why nothing more can be written, or nil.
	Poisoned() error
}

// Service keeps versions of work trees, and puts them back.
type Service struct {
	Options

	host kernel.Host // nil until a kernel is made

	mu       sync.Mutex
	settings Settings           // guarded by mu
	keeper   *snapshot.Keeper   // guarded by mu; nil until it is first needed
	trouble  map[trouble]string // guarded by mu; why
	changed  bool               // guarded by mu; the configuration has, since the last look

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

// New returns a service that uses no settings yet.
func New(o Options) *Service {
	return &Service{Options: o, behind: following{wake: make(chan struct{}, 1)}}
}

// Spec implements kernel.Feature. No role grants the boundaries to others, because what the
// ledger contains about versions must have happened.
func (s *Service) Spec() kernel.Spec {
	return kernel.Spec{Name: "versions", Boundaries: []kernel.Reserved{{Prefix: snapshot.BoundaryPrefix,
		Why:  "only Holdfast itself keeps versions and puts them back",
		Hint: "a person may, with `holdfast snapshot take` and `holdfast rollback`"}}}
}

// Bind implements kernel.Versions.
func (s *Service) Bind(h kernel.Host) { s.host = h }

// recordTime bounds how long an event waits for the ledger.
const recordTime = 30 * time.Second

// recordEvent writes one event, durably.
func (s *Service) recordEvent(e kernel.Event) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	return s.host.Commit(ctx, func(tx kernel.FeatureTx) error { return tx.Event(e) })
}

// Set makes settings active, whose trees Hold has resolved.
func (s *Service) Set(c *Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = *c
}

// current returns the active settings.
func (s *Service) current() *Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.settings
	return &c
}

// hand is the keeper, opened.
func (s *Service) hand() (*snapshot.Keeper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keeper != nil {
		return s.keeper, nil
	}
	k, err := snapshot.Open(snapshot.Options{Dir: s.Dir, Own: s.Own,
		Before: s.recordBefore, After: s.recordAfter, Ledger: s.position})
	if err == nil {
		s.keeper = k
	}
	return k, err
}

// Resume carries rollbacks to their end that Holdfast was killed in. One that cannot be
// carried there waits for a person: at a later start somebody may have worked on the tree.
func (s *Service) Resume(ctx context.Context) error {
	if _, err := os.Lstat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	k, err := s.hand()
	if err != nil {
		return err
	}
	begun, unread := snapshot.BegunIn(s.Dir)
	for _, b := range begun {
		if err := s.finish(ctx, k, b); err != nil {
			s.fail(ofRollbackIn(b.Tree.Path), reason(err))
		}
	}
	stopped, more := snapshot.StoppedIn(s.Dir)
	for _, b := range stopped {
		s.fail(ofRollbackIn(b.Tree.Path), stoppedTold(s.Dir, &b))
	}
	if err := errors.Join(unread, more); err != nil {
		s.fail(ofRollback, unreadTold(err))
	}
	return nil
}

// HalfWay returns a sentence for each work tree that is half way back to one of the versions in dir. Those whose
// rollback was interrupted are such only if the state has no owner.
func HalfWay(dir string, owned bool) (out []string) {
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
func (s *Service) finish(ctx context.Context, k *snapshot.Keeper, b snapshot.Begun) error {
	tried := false
	s.Log().Warn("a rollback was cut off, and is carried to its end", "tree", b.Tree.Path, "who", b.Who)
	err := s.keep(ctx, ownAct{boundary: snapshotRollback, event: eventRolled,
		who: b.Who, whole: true, payload: map[string]any{"tree": b.Tree.Path, "why": "it was cut off"},
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
func (s *Service) fail(what trouble, why string) {
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
		s.Log().Error(what.String(), "why", why)
		why = what.String() + ": " + why
	}
	s.Condition(any, why)
}

// reason is what people are told of an error: room enough for a path and what is wrong
// with it.
func reason(err error) string { return excerpt.Of(err.Error(), 512) }

// troubled says whether something is in trouble.
func (s *Service) troubled(what trouble) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble[what] != ""
}

// Problems are what status tells.
func (s *Service) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, what := range slices.SortedFunc(maps.Keys(s.trouble), trouble.compareName) {
		out = append(out, what.String()+": "+s.trouble[what])
	}
	return out
}

// position is where the ledger stands.
func (s *Service) position(ctx context.Context) (at snapshot.Position, err error) {
	err = s.Store().View(ctx, func(tx kernel.Tx) error {
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
func (s *Service) Take(ctx context.Context, who, note string) (json.RawMessage, error) {
	m, err := s.take(ctx, snapshot.Manifest{Who: who, Note: note, Reason: snapshot.AskedFor})
	if m == nil {
		return nil, err
	}
	b, merr := json.Marshal(m)
	return b, errors.Join(err, merr)
}

func (s *Service) take(ctx context.Context, m snapshot.Manifest) (taken *snapshot.Manifest, err error) {
	k, err := s.hand()
	if err != nil {
		return nil, err
	}
	m.Note, m.Who = s.Mask(excerpt.Word(m.Note)), excerpt.Word(m.Who)
	if m.Ledger, err = s.position(ctx); err != nil {
		return nil, err
	}
	conf := s.current()
	err = s.keep(ctx, ownAct{boundary: snapshotTake, event: eventTaken,
		who: m.Who, payload: map[string]any{"why": m.Reason, "note": m.Note, "trees": len(conf.Trees)},
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
func (s *Service) tidied(k *snapshot.Keeper) {
	for _, path := range k.Unfinished() {
		s.Log().Warn("a version was cut off by a crash, and what it left was cleared away", "tree", path)
		if err := s.recordEvent(
			kernel.Event{Tenant: holdfast.Local, Name: eventCutOff, Who: keeperAgent, Subject: excerpt.Word(path)},
		); err != nil {
			s.Log().Error("a version that was cut off could not be recorded", "err", err)
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
func (s *Service) List(context.Context) (json.RawMessage, error) {
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
func (s *Service) Show(ctx context.Context, id string) (json.RawMessage, error) {
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
func (s *Service) read(ctx context.Context, id string) (m *snapshot.Manifest, is restored, err error) {
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
func (s *Service) events(ctx context.Context, id string, f func(*ledger.Event, map[string]any)) error {
	const most = 10_000
	return s.Store().View(ctx, func(tx kernel.Tx) error {
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
func (s *Service) Verify(ctx context.Context, id string) (json.RawMessage, error) {
	out, err := s.verify(ctx, id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (s *Service) verify(ctx context.Context, id string) ([]snapshot.Verified, error) {
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
	err = s.recordEvent(kernel.Event{Tenant: holdfast.Local, Crossing: m.ID,
		Name: eventVerified, Who: s.Person, Subject: m.ID, Data: map[string]any{"ok": ok, "trees": len(out)}})
	return out, err
}

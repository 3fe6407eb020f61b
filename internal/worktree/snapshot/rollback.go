package snapshot

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
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Target is the version that a tree goes back to.
type Target struct {
	Commit  string `json:"commit"`
	Content string `json:"content"` // SHA-256, as the ledger has it
	// From is what it is known by: a snapshot, the crossing whose commit it is, or the
	// word before and one.
	From string `json:"from,omitempty"`
	// MidMerge goes there though the tree's repository is in the middle of a merge or
	// the like: a person said so, for whoever works in the tree can make it look so.
	MidMerge bool `json:"mid_merge,omitempty"`
}

// Snapshot is the id of the snapshot that it is of, "" if it is of none.
func (t Target) Snapshot() string {
	if goodID(t.From) {
		return t.From
	}
	return ""
}

// Name says which version it is, for people.
func (t Target) Name() string {
	crossing, before := strings.CutPrefix(t.From, BeforeIt)
	switch {
	case crossing == "":
		return "the version " + t.Commit
	case before:
		return "what was there before the crossing " + crossing
	case t.Snapshot() != "":
		return "the snapshot " + t.From
	}
	return "what the crossing " + crossing + " left"
}

// Rolled is what a rollback did, or would do.
type Rolled struct {
	Tree string `json:"tree"`
	// To is the version that it went back to.
	To Target `json:"to"`
	// Before is the snapshot of what was there, to which one can go back.
	Before *Manifest `json:"before,omitempty"`
	// After is the version that the tree then was, which is known by what it went back to.
	After Target `json:"after,omitzero"`
	// Removed and Written are how many names were taken away and put back.
	Removed int `json:"removed"`
	Written int `json:"written"`
	// First are the first 200 of them, with a - or a + in front.
	First []string `json:"first,omitempty"`
	// Stays is what a snapshot leaves out, which was not touched.
	Stays LeftOut `json:"stays"`
	// Aside are the first of those that no version holds and that stood where one of the
	// version's names belongs: each was moved beside it, whole, and is now what is said.
	Aside []string `json:"aside,omitempty"`
	// Middle is what the tree's repository was in the middle of, and still is: it was
	// passed over. "" is nothing.
	Middle string `json:"middle,omitempty"`
	// Failed is why the tree did not go back, "" where it did; Hint what to do.
	Failed string `json:"failed,omitempty"`
	Hint   string `json:"hint,omitempty"`

	begun  bool // the tree may have been changed
	untold bool // what it then was could not be told
}

// Begun is a rollback that has begun. Its file is there until it is done, or has
// failed and whoever asked was told: so that only one that Holdfast was killed in
// is gone on with.
type Begun struct {
	Tree   Tree      `json:"tree"`
	To     Target    `json:"to"`
	Before string    `json:"before"` // the snapshot of what was there
	Who    string    `json:"who"`
	At     time.Time `json:"at"`
	Word   bool      `json:"word,omitempty"` // on a person's word, and not because an act failed
}

// Stopped is a rollback that Holdfast was killed in and that could not be carried to its
// end. The tree is half way since then, and somebody may have worked on it: it waits for
// a person, who rolls the tree back, or removes its file.
type Stopped struct {
	Begun
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

const begunEnd, stoppedEnd = ".begun", ".stopped"

// begunFile is of one tree: others may be on their way back meanwhile.
func (k *Keeper) begunFile(tree string) string {
	return filepath.Join(k.opt.Dir, repoName(tree)+begunEnd)
}

// StoppedFile is where it stands that a rollback of the tree was stopped. dir is
// Options.Dir.
func StoppedFile(dir, tree string) string { return filepath.Join(dir, repoName(tree)+stoppedEnd) }

// rounds is how often a rollback begins again because an agent changed the tree
// under it.
const rounds = 4

// Rollback puts a tree back to a version: files that are not in it are taken away,
// but those alone that a snapshot holds, which it takes first. git's own folder in
// the tree is not touched, so that no history is rewritten. Errors: ConflictError
// in the middle of a merge and the like, or where the tree does not hold still.
// After an error nothing goes on by itself, unless ctx was canceled: then Finish
// does.
func (k *Keeper) Rollback(ctx context.Context, t Tree, to Target, who string) (*Rolled, error) {
	return k.back(ctx, t, to, nil, who)
}

// back puts a tree back to a version, or to a mark where there is one.
func (k *Keeper) back(ctx context.Context, t Tree, to Target, m *Mark, who string) (*Rolled, error) {
	return k.rollback(ctx, Begun{Tree: t, To: to, Who: who, Word: m == nil}, m, func(err error, began bool) error {
		switch {
		case err == nil && m == nil:
			return k.wentBack(t.Path)
		case err == nil || began && ctx.Err() == nil:
			return ignoreMissing(os.Remove(k.begunFile(t.Path)))
		}
		return nil
	})
}

// wentBack takes away that a rollback of the tree has begun, and that one was stopped.
func (k *Keeper) wentBack(tree string) error {
	return errors.Join(ignoreMissing(os.Remove(k.begunFile(tree))), ignoreMissing(os.Remove(StoppedFile(k.opt.Dir, tree))))
}

// rollback puts the tree of j back to where it is to go, or to a mark where there is one.
// ended is told of the error, and whether the tree began to change, before another
// rollback of the tree begins.
func (k *Keeper) rollback(ctx context.Context, j Begun, m *Mark, ended func(err error, began bool) error) (_ *Rolled, err error) {
	ctx, r, done, err := k.use(ctx, j.Tree)
	if err != nil {
		return nil, errors.Join(err, ended(err, false))
	}
	defer done()
	out := &Rolled{Tree: j.Tree.Path}
	defer func() {
		if !out.untold {
			err = errors.Join(err, ended(err, out.begun))
		}
	}()
	if !j.Word && k.asked(j.Tree.Path) {
		return nil, &holdfast.Error{Kind: holdfast.KindConflict, Rule: "tree/half way", Why: "a person's rollback of " + j.Tree.Path + " was cut off, and is not at its end",
			Hint: "`holdfast status` says more"}
	}
	if m != nil {
		j.To = m.Target()
	}
	want, middle, err := r.ready(ctx, j.Tree, j.To, k.opt.Own())
	if err != nil {
		return nil, err
	}
	out.To, out.Middle = j.To, middle
	for range rounds {
		done, err := k.round(ctx, r, &j, want, out)
		if done && err == nil {
			r.marks.wentBack(j.To, m)
			if k.opt.After != nil {
				err = k.opt.After(out, j.Who)
				out.untold = err != nil
			}
		}
		if done || err != nil {
			return out, err
		}
	}
	return out, &holdfast.Error{Kind: holdfast.KindConflict, Rule: "tree/restless", Why: "something goes on changing " + j.Tree.Path + " while it is put back",
		Hint: "stop it first, with `holdfast halt` or `holdfast agent pause`, then roll back again; all that was there is in " + out.before()}
}

func (o *Rolled) before() string {
	if o.Before == nil {
		return "no snapshot"
	}
	return "the snapshot " + o.Before.ID
}

// Look says what a rollback would do, and does nothing.
func (k *Keeper) Look(ctx context.Context, t Tree, to Target) (*Rolled, error) {
	ctx, r, done, err := k.use(ctx, t)
	if err != nil {
		return nil, err
	}
	defer done()
	want, middle, err := r.ready(ctx, t, to, k.opt.Own())
	if err != nil {
		return nil, err
	}
	v, err := r.keep(ctx, t, k.limits, k.opt.Own(), k.opt.Now(), ask{ref: "refs/holdfast/looked", message: "look\n", always: true, extra: pathsOf(want), room: true})
	if err != nil {
		return nil, err
	}
	out := &Rolled{Tree: t.Path, To: to, Middle: middle}
	out.tell(planOf(v.entries, want), v)
	return out, nil
}

// ready reads the version, and refuses what cannot be rolled back now. middle is what
// the tree's repository is in the middle of, where that is passed over.
func (r *repo) ready(ctx context.Context, t Tree, to Target, own []string) (want []entry, middle string, err error) {
	root, err := openTree(t.Path)
	if err != nil {
		return nil, "", unfound(t, err)
	}
	defer unix.Close(root)
	if middle, _ = between(root); middle != "" && !to.MidMerge {
		return nil, "", inMiddle(t, middle)
	}
	if want, err = r.list(ctx, to.Commit); err != nil {
		return nil, "", err
	}
	return want, middle, notOwn(t, want, own)
}

// notOwn refuses a version that holds what has become Holdfast's own since: to put it
// back would be to write the latch, a limit or the configuration (D40).
func notOwn(t Tree, want []entry, own []string) error {
	for _, p := range own {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		rel, below := strings.CutPrefix(p, t.Path+"/")
		for i := range want {
			if below && (want[i].path == rel && want[i].kind != folder || strings.HasPrefix(want[i].path, rel+"/")) {
				return ownNow(want[i].path)
			}
		}
	}
	return nil
}

func ownNow(path string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "tree/own", Why: "the version holds " + shown(path) + ", which is Holdfast's own now",
		Hint: "no rollback touches that (D40); move the state or the configuration out of the work tree"}
}

func pathsOf(entries []entry) map[string]bool {
	out := make(map[string]bool, len(entries))
	for i := range entries {
		out[entries[i].path] = true
	}
	return out
}

func (o *Rolled) tell(p plan, v *version) {
	o.Removed, o.Written = o.Removed+len(p.remove), o.Written+len(p.write)
	for _, l := range v.left {
		o.Stays.Names++
		o.Stays.Files += l.Files
		o.Stays.Bytes += l.Bytes
	}
	o.Stays.First = v.left[:min(len(v.left), maxLeft)]
	add := func(sign string, e *entry) {
		if len(o.First) < maxLeft {
			o.First = append(o.First, sign+" "+shown(e.path))
		}
	}
	for i := range p.remove {
		add("-", &p.remove[i])
	}
	for i := range p.write {
		add("+", &p.write[i])
	}
}

// round keeps what is there, puts the version in its place, and says whether the
// tree then is that version.
func (k *Keeper) round(ctx context.Context, r *repo, j *Begun, want []entry, out *Rolled) (bool, error) {
	m := &Manifest{Who: j.Who, Reason: BeforeRollback, Note: "to " + j.To.Name()}
	v, err := k.before(ctx, r, j.Tree, m, pathsOf(want))
	if err != nil {
		return false, err
	}
	if len(v.torn) > 0 {
		// What could not be read well is not taken away; the next round reads it again.
		return false, k.restless(v)
	}
	out.Stays = LeftOut{}
	if out.Before == nil {
		out.Before = m
	}
	p := planOf(v.entries, want)
	out.tell(p, v)
	staged, err := r.fetch(ctx, want, v, p, j.To)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(staged) // again, where that is not reached
	out.begun = true
	if err := k.begin(j, m.ID); err != nil {
		return false, full(err)
	}
	aside, err := r.put(ctx, j.Tree, staged, v, p)
	if rerr := os.RemoveAll(staged); rerr != nil { // its room is needed
		return false, errors.Join(err, rerr)
	}
	out.Aside = append(out.Aside, aside[:min(len(aside), maxLeft-len(out.Aside))]...)
	if err != nil && !errors.Is(err, errChanged) {
		return false, &holdfast.Error{Kind: holdfast.KindInternal, Rule: "rollback/cut off", Why: "the rollback of " + j.Tree.Path + " came to a stop: " + err.Error(),
			Hint: "say it again once that is mended: it goes on where it stopped; all that was there is in " + out.before(), Err: err}
	}
	at, err := k.ledger(ctx)
	if err != nil {
		return false, err
	}
	parent, err := r.tip(ctx, rolledRef)
	if err != nil {
		return false, err
	}
	after, err := r.keep(ctx, j.Tree, k.limits, k.opt.Own(), k.opt.Now(), ask{ref: rolledRef, parent: parent, always: true, extra: pathsOf(want), room: true, there: want, known: true,
		message: fmt.Sprintf("rollback: to %s\n\nHoldfast-Crossing: %s\nHoldfast-Ledger: %d\n", j.To.Commit, out.Before.ID, at.Size)})
	if err != nil {
		return false, err
	}
	out.After = Target{Commit: after.commit, Content: after.content, From: j.To.From}
	return content(after.without(want)) == j.To.Content, nil
}

// rolledRef is the line of what rollbacks made of the tree, which are versions like those
// of actions. In place of a crossing each names the snapshot from before it.
const rolledRef = "refs/heads/rolled"

// without is what the version holds but for folders that are not wanted and stay all the
// same, for something is in them that no version holds.
func (v *version) without(want []entry) []entry {
	stays := maps.Clone(v.stays)
	for i := range want {
		delete(stays, want[i].path)
	}
	if len(stays) == 0 {
		return v.entries
	}
	return slices.DeleteFunc(slices.Clone(v.entries), func(e entry) bool { return e.kind == folder && stays[e.path] })
}

// restless refuses where a file cannot be kept at all.
func (k *Keeper) restless(v *version) error {
	for _, l := range v.torn {
		if l.unreadable {
			return refused(holdfast.KindConflict, "make it readable, or move it away", "%s: %s, so that nothing there is put back", l.Path, l.Why)
		}
	}
	return nil
}

// before takes the snapshot of what is there.
func (k *Keeper) before(ctx context.Context, r *repo, t Tree, m *Manifest, extra map[string]bool) (*version, error) {
	m.Version, m.At = 1, k.opt.Now().UTC()
	m.ID = newID(m.At)
	var err error
	if m.Ledger, err = k.ledger(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.seq++
	m.Seq = k.seq
	k.mu.Unlock()
	v, err := r.keep(ctx, t, k.limits, k.opt.Own(), k.opt.Now(), ask{ref: "refs/snapshots/" + m.ID, message: m.message(), always: true, extra: extra, room: true, known: true})
	if err != nil {
		return nil, err
	}
	m.Trees = []Part{*k.part(r, v)}
	if err := m.write(k.opt.Dir); err != nil || k.opt.Before == nil {
		return v, full(err)
	}
	return v, k.opt.Before(m)
}

// fetch brings what is to be written out of the repository, after all of the
// version was found to be what the ledger says it is.
func (r *repo) fetch(ctx context.Context, want []entry, v *version, p plan, to Target) (string, error) {
	have := make(map[[20]byte][32]byte, len(v.entries))
	for i := range v.entries {
		have[v.entries[i].blob] = v.entries[i].sum
	}
	for i := range p.write {
		delete(have, p.write[i].blob)
	}
	// What is packed may come to many times what it takes.
	var need int64
	known := maps.Clone(have)
	for i := range want {
		if _, ok := known[want[i].blob]; !ok && want[i].kind != folder {
			need += want[i].size
			known[want[i].blob] = want[i].sum
		}
	}
	if err := Room(r.dir, need); err != nil {
		return "", err
	}
	staged, err := os.MkdirTemp(r.dir, "staged-*")
	if err != nil {
		return "", full(err)
	}
	err = r.stage(ctx, want, have, staged)
	if err == nil && content(want) != to.Content {
		err = damaged("its content is not what the ledger says")
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(staged))
	}
	return staged, nil
}

// begin notes that a rollback has begun. before is the snapshot of what is there.
func (k *Keeper) begin(j *Begun, before string) error {
	if j.Before == "" {
		j.Before, j.At = before, k.opt.Now().UTC()
	}
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return durable.ReplaceFile(k.begunFile(j.Tree.Path), b, 0o600)
}

// asked says that a rollback of the tree has begun on a person's word.
func (k *Keeper) asked(tree string) bool {
	b, err := os.ReadFile(k.begunFile(tree))
	var j Begun
	return err == nil && json.Unmarshal(b, &j) == nil && j.Word
}

// put carries out the plan in the tree, and says what it moved aside for that.
func (r *repo) put(ctx context.Context, t Tree, staged string, v *version, p plan) (aside []string, err error) {
	root, err := openTree(t.Path)
	if err != nil {
		return nil, unfound(t, err)
	}
	defer unix.Close(root)
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return nil, err
	}
	w := &writing{r: r, dirs: folders{root: root}, uid: int(st.Uid), gid: int(st.Gid), staged: staged, was: map[string]*entry{}, stays: v.stays, never: v.own}
	for i := range v.entries {
		w.was[v.entries[i].path] = &v.entries[i]
	}
	defer w.dirs.close()
	err = w.apply(ctx, p)
	return w.aside, err
}

// BegunIn are the rollbacks that Holdfast was killed in, in Options.Dir: Finish goes on
// with them. An error names the files that cannot be read; the others are there all the
// same.
func BegunIn(dir string) ([]Begun, error) {
	return records(dir, begunEnd, func(j *Begun) string { return j.Tree.Path })
}

// StoppedIn are the rollbacks that wait for a person. The error is as BegunIn's.
func StoppedIn(dir string) ([]Stopped, error) {
	return records(dir, stoppedEnd, func(j *Stopped) string { return j.Tree.Path })
}

// records reads the files of a folder that end so, each of which is of one tree.
func records[T any](dir, end string, tree func(*T) string) (out []T, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+end))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range files {
		var j T
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &j)
		}
		if err == nil && filepath.Base(path) != repoName(tree(&j))+end {
			err = errors.New("it is another tree's")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be read: %w", path, err))
			continue
		}
		out = append(out, j)
	}
	return out, errors.Join(errs...)
}

// Finish carries a rollback to its end that Holdfast was killed in. Where that fails,
// other than because ctx was canceled, it stands as stopped.
func (k *Keeper) Finish(ctx context.Context, j Begun) (*Rolled, error) {
	return k.rollback(ctx, j, nil, func(err error, _ bool) error {
		switch {
		case err == nil && j.Word:
			return k.wentBack(j.Tree.Path)
		case err == nil:
			return ignoreMissing(os.Remove(k.begunFile(j.Tree.Path)))
		case ctx.Err() != nil:
			return nil
		}
		return k.Stop(j, err)
	})
}

// Stop lets a rollback that has begun wait for a person. One that a person asked for and
// that waits already is not displaced by one for an act.
func (k *Keeper) Stop(j Begun, why error) error {
	if _, err := os.Lstat(StoppedFile(k.opt.Dir, j.Tree.Path)); err == nil && !j.Word {
		return ignoreMissing(os.Remove(k.begunFile(j.Tree.Path)))
	}
	b, err := json.Marshal(Stopped{Begun: j, Since: k.opt.Now().UTC(), Why: excerpt.Of(why.Error(), maxStopped)})
	if err == nil {
		err = durable.ReplaceFile(StoppedFile(k.opt.Dir, j.Tree.Path), b, 0o600)
	}
	if err != nil {
		return err
	}
	return ignoreMissing(os.Remove(k.begunFile(j.Tree.Path)))
}

// maxStopped bounds the reason that a rollback stands stopped for, in bytes.
const maxStopped = 512

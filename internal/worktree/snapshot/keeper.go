package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
)

// Keeper keeps versions of work trees in a directory of its own, of which one
// process is the owner (D48). It may be used by many goroutines.
type Keeper struct {
	opt    Options
	limits Limits

	mu    sync.Mutex
	repos map[string]*repo // guarded by mu; by the tree's path
	swept map[string]bool  // guarded by mu; repositories that a crash left unfinished
	seq   int64            // guarded by mu; of the newest manifest
}

// Open opens the directory, and makes it where it is missing. git is not asked
// before a version is kept.
func Open(opt Options) (*Keeper, error) {
	if opt.Git == "" {
		opt.Git = "git"
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Own == nil {
		opt.Own = func() []string { return nil }
	}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(opt.Dir)
	if err != nil {
		return nil, err
	}
	opt.Dir = dir
	if _, err := sweep(dir, durable.TempPattern); err != nil {
		return nil, err
	}
	k := &Keeper{opt: opt, limits: opt.Limits.orDefault(), repos: map[string]*repo{}, swept: map[string]bool{}}
	list, err := k.List()
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		k.seq = max(k.seq, m.Seq)
	}
	return k, nil
}

// repo is the open repository of a tree.
func (k *Keeper) repo(ctx context.Context, path string) (*repo, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.repos[path]; r != nil {
		return r, nil
	}
	if _, err := Git(ctx, k.opt.Git); err != nil {
		return nil, err
	}
	dir := filepath.Join(k.opt.Dir, "trees", repoName(path))
	r := &repo{path: path, dir: dir, git: git{program: k.opt.Git, dir: filepath.Join(dir, "git")}}
	left, err := r.open(ctx)
	if err != nil {
		return nil, full(err)
	}
	k.swept[path] = k.swept[path] || left
	k.repos[path] = r
	return r, nil
}

// within bounds what is done with one tree.
func (k *Keeper) within(ctx context.Context, t Tree) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, k.limits.Time, refused(holdfast.KindTimeout, "track the folders below that matter",
		"%s was not done with within %v", t.Path, k.limits.Time))
}

// use is the repository of a tree for one use, until done: its time begins once those
// that came before it have ended, of which packing alone may take longer.
func (k *Keeper) use(ctx context.Context, t Tree) (_ context.Context, r *repo, done func(), err error) {
	if r, err = k.repo(ctx, t.Path); err != nil {
		return nil, nil, nil, err
	}
	r.mu.Lock()
	ctx, cancel := k.within(ctx, t)
	return ctx, r, func() { cancel(); r.mu.Unlock() }, nil
}

// newID names a snapshot: when it was taken, and something that no other has.
func newID(now time.Time) string {
	var b [3]byte
	rand.Read(b[:])
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// Take keeps every tree as it is now. What a person should know of it is in the
// manifest, which is durable when Take returns. Trees that cannot be kept are
// named in the error; without any that could there is no snapshot.
func (k *Keeper) Take(ctx context.Context, trees []Tree, m Manifest) (*Manifest, error) {
	m.Version, m.At = 1, k.opt.Now().UTC()
	m.ID = newID(m.At)
	m.Trees = nil
	k.mu.Lock()
	k.seq++
	m.Seq = k.seq
	k.mu.Unlock()
	if len(trees) == 0 {
		return nil, refused(holdfast.KindUsage, "name them under `snapshots: trees:` in the configuration", "no tree is tracked")
	}
	var errs []error
	for _, t := range trees {
		p, err := k.take(ctx, t, &m)
		if err != nil {
			errs = append(errs, err)
			m.Failed = append(m.Failed, Left{Path: t.Path, Why: err.Error()})
			continue
		}
		m.Trees = append(m.Trees, *p)
	}
	if len(m.Trees) == 0 {
		return nil, errors.Join(errs...)
	}
	if err := m.write(k.opt.Dir); err != nil {
		return nil, full(err)
	}
	return &m, errors.Join(errs...)
}

func (k *Keeper) take(ctx context.Context, t Tree, m *Manifest) (*Part, error) {
	ctx, r, done, err := k.use(ctx, t)
	if err != nil {
		return nil, err
	}
	defer done()
	at, err := k.ledger(ctx)
	if err != nil {
		return nil, err
	}
	v, err := r.keep(ctx, t, k.limits, k.opt.Own(), k.opt.Now(), ask{ref: "refs/snapshots/" + m.ID, message: m.message(), always: true, whole: m.Whole, room: true, known: true})
	if err != nil {
		return nil, err
	}
	p := k.part(r, v)
	p.Ledger = at.Size
	return p, nil
}

// ledger is where the record stands.
func (k *Keeper) ledger(ctx context.Context) (Position, error) {
	if k.opt.Ledger == nil {
		return Position{}, nil
	}
	return k.opt.Ledger(ctx)
}

// part is what a manifest says of a version.
func (k *Keeper) part(r *repo, v *version) *Part {
	p := &Part{Path: r.tree.Path, Kind: r.tree.Kind, Commit: v.commit, Tree: v.tree, Content: v.content, Changed: v.changed, HardLinks: v.links}
	for i := range v.entries {
		switch e := &v.entries[i]; e.kind {
		case folder:
			p.Folders++
		case link:
			p.Links++
		default:
			p.Files++
			p.Bytes += e.size
		}
	}
	for _, l := range v.left {
		p.LeftOut.Names++
		p.LeftOut.Files += l.Files
		p.LeftOut.Bytes += l.Bytes
	}
	p.LeftOut.First = v.left[:min(len(v.left), maxLeft)]
	p.TornCount, p.Torn = len(v.torn), v.torn[:min(len(v.torn), maxLeft)]
	if root, err := openTree(r.tree.Path); err == nil {
		middle, head := between(root)
		unix.Close(root)
		p.Middle, p.Head = middle, shown(head)
	}
	return p
}

// Message is how a commit in a tree is worded.
type Message struct {
	Agent, Action, Crossing, Session string
	At                               time.Time
	// Ledger is how many leaves the ledger had when the version was looked at; of a
	// commit Options.Ledger says so, where it is set.
	Ledger int64
}

// text is the document's form: `state: [agent] [action] [timestamp]`, or `feat:
// [ticket] [description]`, with the crossing and who in trailers.
func (m Message) text(kind string) string {
	first := fmt.Sprintf("state: %s %s %s", words(m.Agent), words(m.Action), m.At.UTC().Format(time.RFC3339))
	if kind == "code" {
		first = fmt.Sprintf("feat: %s %s", words(m.Crossing), words(m.Action))
	}
	text := fmt.Sprintf("%s\n\nHoldfast-Crossing: %s\nHoldfast-Ledger: %d\nHoldfast-Agent: %s\n", first, words(m.Crossing), m.Ledger, words(m.Agent))
	if m.Session != "" {
		text += "Holdfast-Session: " + words(m.Session) + "\n"
	}
	return text
}

// words is one line of text without anything that a terminal or git would take for
// more.
func words(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
	s = strings.ToValidUTF8(s, "?")
	if s == "" {
		return "-"
	}
	return fmt.Sprintf("%.200s", s)
}

// Commit is one version that was kept after an action.
type Commit struct {
	Tree    string // the work tree
	Commit  string
	Content string
	Changed int
	First   bool // nothing was kept of the tree before: all of it is new
	LeftOut int  // names that are no part of it
}

// Commit keeps a tree after an action on the agent's own line of versions, where
// something changed; nil where nothing did.
func (k *Keeper) Commit(ctx context.Context, t Tree, m Message) (*Commit, error) {
	ctx, r, done, err := k.use(ctx, t)
	if err != nil {
		return nil, err
	}
	defer done()
	ref := "refs/heads/" + refName(m.Agent)
	parent, err := r.tip(ctx, ref)
	if err != nil {
		return nil, err
	}
	if k.opt.Ledger != nil { // what came before it had the tree is in the version
		at, err := k.ledger(ctx)
		if err != nil {
			return nil, err
		}
		m.Ledger = at.Size
	}
	v, err := r.keep(ctx, t, k.limits, k.opt.Own(), k.opt.Now(), ask{ref: ref, parent: parent, message: m.text(t.Kind), room: true, known: true})
	if err != nil || v.commit == "" {
		return nil, err
	}
	if v.since != "" { // where that is gone, what changed since the last look is known
		if n, err := r.differ(ctx, v.since, v.tree); err == nil {
			v.changed = n
		}
	}
	return &Commit{Tree: t.Path, Commit: v.commit, Content: v.content, Changed: v.changed, First: v.first, LeftOut: len(v.left)}, nil
}

// refName makes a branch of an agent's name.
func refName(agent string) string {
	var b strings.Builder
	for _, c := range []byte(agent) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return fmt.Sprintf("agent/%.200s", b.String())
}

// tip is the commit of a ref, or "".
func (r *repo) tip(ctx context.Context, ref string) (string, error) {
	b, err := r.git.run(ctx, nil, 4096, "for-each-ref", "--format=%(objectname)", ref)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(string(b), "\n")
	if name != "" && !isName(name) {
		return "", damaged("a branch is no commit")
	}
	return name, nil
}

// Unfinished names the trees of which a version was being kept when Holdfast was
// killed: that version does not exist, and what it left was cleared away.
func (k *Keeper) Unfinished() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for path, left := range k.swept {
		if left {
			out = append(out, path)
		}
	}
	clear(k.swept)
	slices.Sort(out)
	return out
}

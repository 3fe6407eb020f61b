package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
)

// repo is Holdfast's own repository of one tree, below the state.
type repo struct {
	path string // of the work tree
	tree Tree   // guarded by mu; as it is kept now
	dir  string // with the repository in git, and the index beside it
	git  git
	mu   sync.Mutex // one use at a time

	about int // guarded by mu; of how many names room is made for before they are read
	marks marks
}

// lastRef keeps what the index names.
const lastRef = "refs/holdfast/last"

// repoName is where the versions of a tree are, by its path.
func repoName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// open makes the repository where it is missing, and clears away what a crash
// left in it. left says whether there was something.
func (r *repo) open(ctx context.Context) (left bool, err error) {
	if err := os.MkdirAll(r.git.dir, 0o700); err != nil {
		return false, err
	}
	if _, err := os.Lstat(filepath.Join(r.git.dir, "HEAD")); errors.Is(err, os.ErrNotExist) {
		g := git{program: r.git.program, dir: r.git.dir}
		if _, err := g.run(ctx, nil, 1<<16, "init", "--quiet", "--bare", "--template=", "--object-format=sha1", r.git.dir); err != nil {
			return false, err
		}
		if err := os.WriteFile(filepath.Join(r.dir, "path"), []byte(r.path+"\n"), 0o600); err != nil {
			return false, err
		}
		return false, durable.SyncDir(r.dir)
	} else if err != nil {
		return false, err
	}
	return r.tidy()
}

// tidy removes what git and we leave behind when we are killed. Nothing else runs on
// the repository: the state has one owner (D48).
func (r *repo) tidy() (bool, error) {
	found, err := sweep(r.dir, durable.TempPattern, "names-index", "staged-*", "git/fast_import_crash_*", "git/*.lock", "git/objects/tmp_*", "git/objects/pack/tmp_*", "git/objects/??/tmp_obj_*")
	if err != nil {
		return found, err
	}
	err = filepath.WalkDir(filepath.Join(r.git.dir, "refs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasSuffix(path, ".lock") || broken(path) {
			found = true
			return os.Remove(path)
		}
		return nil
	})
	return found, err
}

// broken says whether a power cut left a name of our own without a version in it: git
// would neither read nor write it again, and each is written anew with the next version.
// A name that is the only one of what it holds is left alone.
func broken(path string) bool {
	if !strings.Contains(path, "/refs/holdfast/") {
		return false
	}
	b, err := os.ReadFile(path)
	return err == nil && !isName(strings.TrimSuffix(string(b), "\n"))
}

// sweep removes what is in dir under names like these, and says whether there was any.
func sweep(dir string, patterns ...string) (bool, error) {
	found := false
	for _, pattern := range patterns {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return found, err
		}
		for _, path := range list {
			found = true
			if err := os.RemoveAll(path); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

func (r *repo) indexFile() string { return filepath.Join(r.dir, "index") }

// ask is what is kept, and under which name.
type ask struct {
	ref     string // of the commit
	message string
	parent  string          // of the commit; "" is none
	extra   map[string]bool // paths that are kept though they are ignored
	whole   bool            // read everything, whatever the index says
	always  bool            // make a commit though nothing changed
	there   []entry         // what the repository has, and the tree was just made of
	room    bool            // refuse where what is written would leave the ledger too little
	known   bool            // the ledger comes to know of it, so that it can be gone back to
}

// version is one commit.
type version struct {
	commit, tree string
	content      string // SHA-256 over all of it
	entries      []entry
	changed      int    // files and links that are not as they were in the version before
	since        string // git's tree of the newest version that the ledger knows, where that is another
	first        bool
	left         []Left
	stays        map[string]bool // as the scan has them
	own          map[place]bool
	links        int
	torn         []Left // changed while they were read
	began        time.Time
}

// keep looks at the tree and keeps it. Where nothing changed and a commit is not
// always asked for, version.commit is empty.
func (r *repo) keep(ctx context.Context, t Tree, l Limits, own []string, now time.Time, a ask) (*version, error) {
	r.tree = t
	root, err := openTree(r.tree.Path)
	if err != nil {
		return nil, unfound(r.tree, err)
	}
	defer unix.Close(root)
	index := sync.OnceValue(func() *index { return loadIndex(r.indexFile()) })
	go index()
	s, err := r.look(ctx, root, l, own, index, a.extra)
	if err != nil {
		return nil, err
	}
	last := index()
	believed := last
	if a.whole {
		believed = nil
	}
	if a.known && last != nil && last.known != last.tree {
		a.always = true // what was only looked at since is in no version that can be gone back to
	}
	k := &keeping{r: r, s: s, root: folders{root: root}, last: last, limits: l, now: now, a: a}
	defer k.root.close()
	v, err := k.keep(ctx, believed)
	var gone *lostError
	if errors.As(err, &gone) && last != nil {
		// The repository does not have what the index names.
		k.last, k.s.entries = nil, s.entries
		v, err = k.keep(ctx, nil)
	}
	return v, err
}

func unfound(t Tree, err error) error {
	cause := err
	if named := (*treeError)(nil); errors.As(err, &named) {
		cause = named.err
	}
	why, hint := "the tree "+t.Path+" cannot be opened: "+cause.Error(), "is it there, a folder, and no link?"
	k := holdfast.KindInternal
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		k = holdfast.KindNotFound
	}
	return &holdfast.Error{Kind: k, Rule: "tree/unfound", Why: why, Hint: hint, Err: err}
}

// look walks the tree, and asks git meanwhile what is ignored. last is what was kept last,
// which is being read.
func (r *repo) look(ctx context.Context, root int, l Limits, own []string, last func() *index, extra map[string]bool) (*scan, error) {
	type answer struct {
		names map[string]bool
		err   error
	}
	ch := make(chan answer, 1)
	if r.tree.KeepIgnored {
		ch <- answer{}
	} else {
		go func() {
			limited, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			n, err := r.ignored(limited, root)
			ch <- answer{n, err}
		}()
	}
	s, err := walk(ctx, root, r.tree, l, own, r.about)
	a := <-ch
	switch {
	case err != nil:
		return nil, err
	case a.err != nil && holdfast.KindOf(a.err) != holdfast.KindTimeout:
		return nil, a.err
	case a.err != nil && ctx.Err() != nil:
		return nil, a.err
	case a.err != nil:
		s.left = append(s.left, Left{Path: ".gitignore", Why: "it cannot be judged in 30 s; nothing is left out for it"})
	}
	r.about = len(s.entries) + len(s.entries)/64
	s.drop(a.names, func(path string) bool {
		if extra[path] {
			return true
		}
		x := last()
		return x != nil && x.find(path) != nil
	})
	return s, nil
}

// lostError says that the repository lacks what the index names.
type lostError struct{ err error }

func (e *lostError) Error() string { return "what was kept last is gone: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// commitTime is the time in a commit; git takes none before 1970.
func commitTime(t time.Time) int64 { return max(t.Unix(), 1) }

func quotePath(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

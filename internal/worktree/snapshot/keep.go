package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// keeping is one version on its way into the repository.
type keeping struct {
	r      *repo
	s      *scan
	root   folders
	last   *index
	limits Limits
	now    time.Time
	a      ask

	w     *bufio.Writer // to git
	v     *version
	bytes int64
	need  int64 // bytes that room was asked for
	still bool  // every name is what the index has, which needs not be written again
}

// keep reads what changed and hands it to git.
func (k *keeping) keep(ctx context.Context, believed *index) (*version, error) {
	k.v, k.bytes = &version{left: k.s.left, stays: k.s.stays, own: k.s.own, links: k.s.links, first: k.last == nil, began: k.now}, 0
	if k.last != nil && k.last.known != k.last.tree {
		k.v.since = k.last.known
	}
	var fresh []int
	files := 0
	for i := range k.s.entries {
		e := &k.s.entries[i]
		k.bytes += e.size
		if e.read = e.kind == folder; e.read {
			continue
		}
		if files++; !believed.same(e) {
			fresh = append(fresh, i)
		}
	}
	if k.bytes > k.limits.Bytes {
		return nil, refused(holdfast.KindBounds, "track the folders below that matter", "%s holds %d bytes, more than %d", k.r.tree.Path, k.bytes, k.limits.Bytes)
	}
	gone := k.gone(files - len(fresh))
	k.still = k.last != nil && len(fresh)+len(gone) == 0 && len(k.s.entries) == len(k.last.entries)
	if k.last != nil && !k.a.always && len(gone) == 0 {
		var err error
		if fresh, err = k.touched(ctx, fresh); err != nil {
			return nil, err
		}
		if len(fresh) == 0 && blobOf(meta(k.s.entries)) == k.last.meta {
			k.v.tree, k.v.entries, k.v.content = k.last.tree, k.s.entries, content(k.s.entries)
			return k.v, k.index()
		}
	}
	return k.changed(ctx, fresh, gone)
}

// gone are the files and links of the version before that are none any more. resting is
// how many of it are what they were.
func (k *keeping) gone(resting int) (gone []string) {
	if k.last == nil || resting == k.last.files {
		return nil
	}
	now := make(map[string]bool, len(k.s.entries))
	for i := range k.s.entries {
		if e := &k.s.entries[i]; e.kind != folder {
			now[e.path] = true
		}
	}
	for i := range k.last.entries {
		if e := &k.last.entries[i]; e.kind != folder && !now[e.path] {
			gone = append(gone, e.path)
		}
	}
	return gone
}

// touched leaves out those that hold what they held, though they were touched, or
// not long enough ago to tell by their times.
func (k *keeping) touched(ctx context.Context, fresh []int) ([]int, error) {
	out, v, w := fresh[:0], k.v, k.w
	for n, i := range fresh {
		e := k.s.entries[i]
		old := k.last.find(e.path)
		if old == nil || old.kind != e.kind || old.size != e.size || len(out) > 0 {
			return append(out, fresh[n:]...), nil // there is something new
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if err := k.sum(&e); err == nil && e.blob == old.blob && len(k.v.torn) == 0 {
			k.s.entries[i] = e
		} else {
			out = append(out, i)
		}
		k.v, k.w = v, w
	}
	k.v, k.w = v, w
	return out, nil
}

// index keeps what the version holds, for the next one. One that is as it was stays,
// with its instant: who rested before that rests now.
func (k *keeping) index() error {
	known := k.v.tree
	if !k.a.known {
		if known = ""; k.last != nil {
			known = k.last.known
		}
	}
	if k.still && k.v.tree == k.last.tree && blobOf(meta(k.v.entries)) == k.last.meta && known == k.last.known {
		return nil
	}
	x := &index{tree: k.v.tree, known: known, meta: blobOf(meta(k.v.entries)), at: k.now, entries: k.v.entries}
	return full(x.save(k.r.indexFile()))
}

func blobOf(text []byte) [20]byte {
	if text == nil {
		return [20]byte{}
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(text))
	h.Write(text)
	return [20]byte(h.Sum(nil))
}

// changed writes the commit as a stream that git reads.
func (k *keeping) changed(ctx context.Context, fresh []int, gone []string) (_ *version, err error) {
	if err := k.room(fresh); err != nil {
		return nil, err
	}
	cmd := k.r.git.command(ctx, "-c", "fastimport.unpackLimit="+k.loose(fresh), "fast-import", "--quiet", "--force", "--done", "--cat-blob-fd=1", "--big-file-threshold=64m")
	said := excerpt.NewFirst(saidMost)
	var answer bytes.Buffer
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = &bounded{left: 4096}, said
	out := cmd.Stdout.(*bounded)
	if err := cmd.Start(); err != nil {
		return nil, k.r.git.failure(ctx, "fast-import", err, "")
	}
	k.w = bufio.NewWriterSize(in, 1<<18)
	werr := k.stream(ctx, fresh, gone)
	if werr == nil {
		werr = k.w.Flush()
	}
	if werr != nil {
		_ = cmd.Cancel() // what git has so far is no version
	}
	werr = errors.Join(werr, in.Close())
	err = cmd.Wait()
	answer.Write(out.b.Bytes())
	if err != nil {
		if _, terr := k.r.tidy(); terr != nil {
			return nil, terr
		}
		return nil, k.why(ctx, werr, err, said.String())
	}
	if werr != nil && !errors.Is(werr, os.ErrClosed) {
		return nil, werr
	}
	return k.v, k.answered(answer.String())
}

// loose is how many objects git keeps as files of their own, and not in a pack. Packs of
// little, one for each action of a day, would be looked into one by one by each action
// after them, until they are packed together; what is large would be written twice.
func (k *keeping) loose(fresh []int) string {
	bytes := int64(0)
	for _, i := range fresh {
		if bytes += k.s.entries[i].size; bytes > looseBytes {
			return "1"
		}
	}
	return "100"
}

// looseBytes is how much a version may bring that is not worth a pack.
const looseBytes = 4 << 20

// why is the error of a stream that did not get through.
func (k *keeping) why(ctx context.Context, werr, err error, said string) error {
	var own *holdfast.Error
	if errors.As(werr, &own) {
		return own
	}
	if strings.Contains(said, "not a valid object") || strings.Contains(said, "Not a valid") || strings.Contains(said, "missing") || strings.Contains(said, "Can't load tree") ||
		strings.Contains(said, "not found") {
		return &lostError{errors.New(strings.TrimSpace(said))}
	}
	if said == "" && werr != nil && !errors.Is(werr, unix.EPIPE) && ctx.Err() == nil {
		return werr
	}
	return k.r.git.failure(ctx, "fast-import", err, said)
}

// answered reads git's names of the tree and the commit, and keeps the index.
func (k *keeping) answered(text string) error {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 {
		return refused(holdfast.KindInternal, "", "git answered %.200q to a version", text)
	}
	tree, ok := strings.CutPrefix(lines[0], "040000 tree ")
	tree, _, _ = strings.Cut(tree, "\t")
	if !ok && strings.HasPrefix(lines[0], "missing") {
		tree, ok = emptyTree, true
	}
	if !ok || !isName(tree) || !isName(lines[1]) {
		return refused(holdfast.KindInternal, "", "git answered %.200q to a version", text)
	}
	k.v.tree, k.v.commit = tree, lines[1]
	return k.index()
}

// emptyTree is git's name of a folder without anything.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func isName(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// stream writes everything that makes the commit.
func (k *keeping) stream(ctx context.Context, fresh []int, gone []string) error {
	fmt.Fprintf(k.w, "feature done\n")
	fmt.Fprintf(k.w, "commit %s\nmark :1\ncommitter Holdfast <holdfast@localhost> %d +0000\n", k.a.ref, commitTime(k.now))
	fmt.Fprintf(k.w, "data %d\n%s\n", len(k.a.message), k.a.message)
	if k.a.parent != "" {
		fmt.Fprintf(k.w, "from %s\n", k.a.parent)
	}
	switch {
	case k.last != nil && k.last.tree != emptyTree:
		fmt.Fprintf(k.w, "M 040000 %s \"\"\n", k.last.tree)
	case k.a.parent != "":
		fmt.Fprintf(k.w, "deleteall\n")
	}
	for _, path := range gone {
		fmt.Fprintf(k.w, "D %s\n", quotePath(path))
	}
	k.v.changed = len(gone)
	dead := map[int]bool{}
	for _, i := range fresh {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		there, err := k.give(&k.s.entries[i])
		if err != nil {
			return err
		}
		if !there {
			dead[i] = true
		}
	}
	k.v.entries = k.s.entries
	if len(dead) > 0 {
		k.v.entries = make([]entry, 0, len(k.s.entries))
		for i := range k.s.entries {
			if !dead[i] {
				k.v.entries = append(k.v.entries, k.s.entries[i])
			}
		}
	}
	if text := meta(k.v.entries); text != nil {
		if k.last == nil || blobOf(text) != k.last.meta {
			k.blob("100644", metaName, text)
		}
	} else if k.last != nil && k.last.meta != [20]byte{} {
		fmt.Fprintf(k.w, "D %s\n", quotePath(metaName))
	}
	k.v.content = content(k.v.entries)
	_, err := fmt.Fprintf(k.w, "ls \"\"\n\nget-mark :1\nreset %s\nfrom :1\n\ndone\n", lastRef)
	return err
}

func (k *keeping) blob(mode, path string, b []byte) {
	fmt.Fprintf(k.w, "M %s inline %s\ndata %d\n", mode, quotePath(path), len(b))
	k.w.Write(b) // an error stays with the writer, and Flush returns it
	k.w.WriteByte('\n')
}

// give reads one entry as it is now and gives it to git. It says false of one that
// is not there any more, or is something else.
func (k *keeping) give(e *entry) (bool, error) {
	dir, name := split(e.path)
	fd, err := k.root.at(dir, nil)
	if err == nil && e.kind == link {
		return k.link(fd, name, e)
	}
	var f int
	if err == nil {
		f, err = openAt(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY)
	}
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return k.loseUnreadable(e, "it cannot be read")
	case err != nil:
		return k.lost(e, "it was changed or replaced while it was read")
	}
	own := os.NewFile(uintptr(f), name)
	defer own.Close()
	return k.file(own, e)
}

// loseUnreadable is lost of an entry that no further try can read.
func (k *keeping) loseUnreadable(e *entry, why string) (bool, error) {
	k.takeOut(e, Left{Path: shown(e.path), Why: why, Files: 1, Bytes: e.size, unreadable: true})
	return false, nil
}

// lost takes an entry out of the version, where it was in the one before too.
func (k *keeping) lost(e *entry, why string) (bool, error) {
	k.takeOut(e, Left{Path: shown(e.path), Why: why, Files: 1, Bytes: e.size})
	return false, nil
}

func (k *keeping) takeOut(e *entry, as Left) {
	if k.last != nil {
		if old := k.last.find(e.path); old != nil && old.kind != folder {
			fmt.Fprintf(k.w, "D %s\n", quotePath(e.path))
			k.v.changed++
		}
	}
	k.v.torn = append(k.v.torn, as)
}

// note counts what is not as it was, once its content is known.
func (k *keeping) note(e *entry) {
	if k.last != nil {
		if old := k.last.find(e.path); old != nil && old.kind == e.kind && old.blob == e.blob {
			return
		}
	}
	k.v.changed++
}

func (k *keeping) link(dir int, name string, e *entry) (bool, error) {
	b := make([]byte, 4096)
	n, err := unix.Readlinkat(dir, name, b)
	if err != nil || n == len(b) {
		return k.lost(e, "it was changed or replaced while it was read")
	}
	e.blob, e.sum, e.size, e.read = blobOf(b[:n]), sha256.Sum256(b[:n]), int64(n), true
	k.note(e)
	k.blob("120000", e.path, b[:n])
	return true, nil
}

// inMemory is how long a file may be that is read at once; a longer one is copied
// first, so that its length is known before git is told.
const inMemory = 8 << 20

// file reads a file until it holds still, three times at most.
func (k *keeping) file(f *os.File, e *entry) (bool, error) {
	for try := 1; ; try++ {
		var before, after unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &before); err != nil {
			return k.loseUnreadable(e, "it cannot be looked at")
		}
		if uint32(before.Mode)&unix.S_IFMT != unix.S_IFREG || uint64(before.Dev) != k.s.dev {
			return k.lost(e, "it was replaced while it was read")
		}
		if why := k.s.unfit(&before); why != "" {
			return k.lost(e, why)
		}
		c, err := k.copy(f)
		if err != nil {
			return false, err
		}
		if err := unix.Fstat(int(f.Fd()), &after); err != nil {
			c.close()
			return k.loseUnreadable(e, "it cannot be looked at")
		}
		still := c.err == nil && stampOf(&before) == stampOf(&after) && after.Size == c.size
		if !still && try < 3 {
			c.close()
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return k.loseUnreadable(e, "it cannot be read")
			}
			continue
		}
		defer c.close()
		switch {
		case c.unreadable:
			return k.loseUnreadable(e, c.err.Error())
		case c.err != nil:
			return k.lost(e, c.err.Error())
		}
		if err := k.grown(c.size - e.size); err != nil {
			return false, err
		}
		if !still {
			k.v.torn = append(k.v.torn, Left{Path: shown(e.path), Why: "it was written to while it was read; it is kept as it was read", Files: 1, Bytes: c.size})
		}
		e.size, e.seen, e.perm, e.read = c.size, stampOf(&before), uint32(before.Mode)&0o777, true
		if e.kind = file; e.perm&0o100 != 0 {
			e.kind = program
		}
		e.blob, e.sum = c.blob, c.sum
		k.note(e)
		return true, k.send(e, c)
	}
}

func (k *keeping) send(e *entry, c *copied) error {
	mode := "100644"
	if e.kind == program {
		mode = "100755"
	}
	if c.staged == nil {
		k.blob(mode, e.path, c.b)
		return nil
	}
	fmt.Fprintf(k.w, "M %s inline %s\ndata %d\n", mode, quotePath(e.path), c.size)
	n, err := io.Copy(k.w, c.staged)
	if err == nil && n != c.size {
		err = io.ErrUnexpectedEOF
	}
	k.w.WriteByte('\n')
	return err
}

// sum reads one entry and fills in what its content is, without keeping it.
func (k *keeping) sum(e *entry) error {
	k.w, k.v = bufio.NewWriter(io.Discard), &version{}
	if e.read = e.kind == folder; e.read {
		return nil
	}
	there, err := k.give(e)
	if err == nil && !there {
		err = fmt.Errorf("%s: %s", shown(e.path), k.v.torn[0].Why)
	}
	return err
}

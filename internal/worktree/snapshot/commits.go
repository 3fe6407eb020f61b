package snapshot

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Kept is one commit of an action, as its trailers tell of it. They are no proof:
// the ledger has one.
type Kept struct {
	Commit, Crossing string
	At               int64 // how many leaves the ledger had when it was kept
}

// maxCommits bounds how many Commits returns, and maxCommitsRead how many it reads.
const (
	maxCommits     = 10_000
	maxCommitsRead = 5_000_000
)

// Commits are the newest commits of a tree, of every agent, that were kept when the
// ledger had at most so many leaves, the newest first: 10,000 at most, however many came
// after those, and whatever their clocks said.
func (k *Keeper) Commits(ctx context.Context, t Tree, most int64) ([]Kept, error) {
	r, err := k.repo(ctx, t.Path)
	if err != nil {
		return nil, err
	}
	list := keptList{most: most}
	err = r.git.into(ctx, nil, &list, "log", "--branches",
		"--format=%H %(trailers:key=Holdfast-Ledger,valueonly,separator=%x20) %(trailers:key=Holdfast-Crossing,valueonly,separator=%x20)")
	if err != nil && list.lines < maxCommitsRead {
		return nil, err
	}
	list.cut()
	return list.kept, nil
}

// keptList reads the lines of git's log and keeps the newest of those that are asked
// for. An error ends git.
type keptList struct {
	most  int64
	kept  []Kept
	lines int
	part  []byte // of a line, until its end comes
}

// cut leaves the newest.
func (l *keptList) cut() {
	slices.SortStableFunc(l.kept, func(a, b Kept) int { return cmp.Compare(b.At, a.At) })
	l.kept = l.kept[:min(len(l.kept), maxCommits)]
}

func (l *keptList) Write(p []byte) (n int, err error) {
	for line := range bytes.Lines(p) {
		if l.lines >= maxCommitsRead {
			return n, io.ErrShortWrite
		}
		n += len(line)
		if l.part = append(l.part, line...); len(l.part) > maxKeptLine {
			return n, bufio.ErrTooLong
		}
		if line[len(line)-1] == '\n' {
			l.lines++
			l.add(string(l.part))
			l.part = l.part[:0]
		}
	}
	return n, nil
}

// maxKeptLine bounds one line, in bytes: a commit's name, a number and a crossing's id.
const maxKeptLine = 64 << 10

func (l *keptList) add(line string) {
	f := strings.Fields(line)
	if len(f) != 3 || !isName(f[0]) {
		return
	}
	if at, err := strconv.ParseInt(f[1], 10, 64); err == nil && at <= l.most {
		if len(l.kept) >= 2*maxCommits {
			l.cut()
		}
		l.kept = append(l.kept, Kept{Commit: f[0], Crossing: f[2], At: at})
	}
}

// differ is how many files and links differ between two trees of git's.
func (r *repo) differ(ctx context.Context, a, b string) (n int, err error) {
	out, err := r.git.run(ctx, nil, maxNamesRead, "diff-tree", "-r", "--no-renames", "--name-only", "-z", a, b)
	if err != nil {
		return 0, err
	}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 && string(name) != metaName {
			n++
		}
	}
	return n, nil
}

package snapshot

import (
	"cmp"
	"context"
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

// maxCommits bounds how far back Commits looks.
const maxCommits = 10_000

// Commits are the commits of a tree, of every agent, that were kept when the ledger
// had at most so many leaves, the newest first.
func (k *Keeper) Commits(ctx context.Context, t Tree, most int64) ([]Kept, error) {
	r, err := k.repo(ctx, t.Path)
	if err != nil {
		return nil, err
	}
	b, err := r.git.run(ctx, nil, maxNamesRead, "log", "--branches", "--date-order", "-n", strconv.Itoa(maxCommits),
		"--format=%H %(trailers:key=Holdfast-Ledger,valueonly,separator=%x20) %(trailers:key=Holdfast-Crossing,valueonly,separator=%x20)")
	if err != nil {
		return nil, err
	}
	var out []Kept
	for line := range strings.SplitSeq(string(b), "\n") {
		f := strings.Fields(line)
		if len(f) != 3 || !isName(f[0]) {
			continue
		}
		at, err := strconv.ParseInt(f[1], 10, 64)
		if err == nil && at <= most {
			out = append(out, Kept{Commit: f[0], Crossing: f[2], At: at})
		}
	}
	slices.SortStableFunc(out, func(a, b Kept) int { return cmp.Compare(b.At, a.At) })
	return out, nil
}

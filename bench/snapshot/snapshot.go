// Package snapshot measures versions of a work tree, beside git's own.
package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// The tree that snapshots are measured on, and how much of it changes.
const (
	snapshotFiles   = 10_000
	snapshotChanged = 100
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	list := []measure.Measurement{{Name: "tree", Do: measureTree}}
	return &measure.Subject{Name: "snapshot", About: "versions of a work tree, beside git's own", Measurements: list, Help: `
Measure a snapshot of a work tree of 10 000 files on this machine, in turns with
"git add --all" and "git commit" in the same tree: the first one, one of 100 files
that changed, and one of none. It takes about half a minute, uses a folder of its
own that it takes away again, and never touches your state.

    go run -C bench . snapshot [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the rounds, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . snapshot
`}
}

// snapshotTree is the tree, and git's own repository in it.
type snapshotTree struct {
	b      *measure.Run
	dir    string
	keeper *snapshot.Keeper
	serial int
}

// measureTree measures them in turns with git.
func measureTree(b *measure.Run) ([]measure.Figure, error) {
	dir, err := filepath.EvalSymlinks(b.Dir)
	if err != nil {
		return nil, err
	}
	t := &snapshotTree{b: b, dir: filepath.Join(dir, "tree")}
	if t.keeper, err = snapshot.Open(snapshot.Options{Dir: filepath.Join(dir, "kept")}); err != nil {
		return nil, err
	}
	if err := t.fill(); err != nil {
		return nil, err
	}
	var figures []measure.Figure
	for _, m := range []struct {
		name            string
		changed, rounds int
	}{{"the first snapshot of 10 000 files", 0, 1}, {"a snapshot of 10 000 files, 100 changed, p50", snapshotChanged, b.Rounds(20)}, {"a snapshot of 10 000 files, none changed, p50", 0, b.Rounds(20)}} {
		if m.rounds > 1 && m.changed == 0 {
			if err := t.rest(); err != nil {
				return nil, err
			}
		}
		var ours, theirs []time.Duration
		for i := range m.rounds {
			o, g, err := t.turn(m.changed, i%2 == 0)
			if err != nil {
				return nil, err
			}
			ours, theirs = append(ours, o), append(theirs, g)
		}
		f := measure.Figure{Name: m.name, Measured: measure.Millis(measure.Percentile(ours, 50)), Unit: "ms", Target: "<= 1.5 x"}.RatioTo(measure.Millis(measure.Percentile(theirs, 50)), "git commit")
		f.Met = f.Ratio > 0 && f.Ratio <= 1.5
		figures = append(figures, f)
	}
	return figures, nil
}

// fill makes the files: 100 folders of 100, of 1 to 4 KB.
func (t *snapshotTree) fill() error {
	for i := range snapshotFiles {
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Join(t.dir, fmt.Sprintf("d%02d", i/100)), 0o755); err != nil {
				return err
			}
		}
		if err := t.write(i); err != nil {
			return err
		}
	}
	return t.git("init", "-q")
}

func (t *snapshotTree) write(i int) error {
	var b []byte
	for n := 0; len(b) < 1024+i%3072; n++ {
		b = fmt.Appendf(b, "line %d of file %d, version %d: %x\n", n, i, t.serial, (i+1)*(n+7)*(t.serial+3)*2654435761)
	}
	return os.WriteFile(filepath.Join(t.dir, fmt.Sprintf("d%02d/f%04d.txt", i/100, i)), b, 0o644)
}

func (t *snapshotTree) git(args ...string) error {
	cmd := exec.CommandContext(t.b.Ctx, "git", append([]string{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgSign=false", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = t.dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %v: %w: %s", args, err, excerpt.Printable(string(said)))
	}
	return nil
}

// rest lets what was written rest until both take its times for it, as it does where
// nobody acts: what is younger than a second is read again by both.
func (t *snapshotTree) rest() error {
	select {
	case <-t.b.Ctx.Done():
		return t.b.Ctx.Err()
	case <-time.After(1500 * time.Millisecond):
	}
	_, _, err := t.turn(0, true)
	return err
}

// turn changes files and keeps the tree both ways.
func (t *snapshotTree) turn(changed int, first bool) (ours, theirs time.Duration, err error) {
	t.serial++
	for i := range changed {
		if err := t.write(i * (snapshotFiles / changed)); err != nil {
			return 0, 0, err
		}
	}
	keep := func() error {
		from := time.Now()
		_, err := t.keeper.Take(t.b.Ctx, []snapshot.Tree{{Path: t.dir, Kind: "code"}}, snapshot.Manifest{Who: "bench", Reason: "asked for"})
		ours = time.Since(from)
		return err
	}
	commit := func() error {
		from := time.Now()
		err := t.git("add", "--all")
		if err == nil {
			err = t.git("commit", "-q", "--allow-empty", "-m", "bench")
		}
		theirs = time.Since(from)
		return err
	}
	one, two := keep, commit
	if !first {
		one, two = commit, keep
	}
	if err = one(); err == nil {
		err = two()
	}
	return ours, theirs, err
}

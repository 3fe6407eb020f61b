package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

func snapshotCommand() command {
	return command{name: "snapshot", about: "keep versions of agents' work trees", help: `
Keep versions of the work trees under "snapshots: trees:" in the configuration.
A daemon takes one a day. You take one now, with a note of yours if you like:

    holdfast snapshot take [NOTE]

Never part of one are git's own folders, Holdfast's own files, and, unless the
configuration says "ignored: keep", what .gitignore leaves out; all of it but the
tree's own .git is counted and named. "holdfast rollback" goes back to one.

    $ holdfast snapshot take 'before the migration'
    $ holdfast snapshot ls
`, sub: []command{
		{name: "take", about: "take one of every tracked work tree, now", run: snapshotTake, help: `
Take a snapshot of every tracked work tree. It prints the snapshot's id.

    holdfast snapshot take [NOTE]

    $ holdfast snapshot take 'before the migration'
`},
		{name: "ls", about: "list them, the newest first", run: snapshotList, help: `
List snapshots, the newest first.

    $ holdfast snapshot ls
`},
		{name: "show", about: "say what is in one, and what is not", run: snapshotShow, help: `
Say what a snapshot holds: its trees, files and bytes, what was left out and why,
where the ledger stood, and whether it is the one that the ledger has.

    holdfast snapshot show ID

    $ holdfast snapshot show 20261123-020000-5f0c1e
`},
		{name: "verify", about: "restore one elsewhere and compare it", run: snapshotVerify, help: `
Restore a snapshot into a folder of its own and compare names, modes, links and
contents with what was kept. It exits 1 where one tree is not what it was.

    holdfast snapshot verify ID
    holdfast snapshot verify FILE [--key KEY]

    FILE                an archive, which needs neither a state nor git: every hash
                        is compared, and the ledger in it verified from its first
                        record
    --key KEY           what ` + "`ledger key`" + ` prints, or a file that holds it; the one
                        that the archive names if absent

    $ holdfast snapshot verify 20261123-020000-5f0c1e
`},
		snapshotArchiveCommand(),
	}}
}

func snapshotTake(a *app, args []string) error {
	rest, err := a.parse(a.flags("snapshot take"), args, 0, 1)
	if err != nil {
		return err
	}
	note := ""
	if len(rest) == 1 {
		note = rest[0]
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		b, err := c.TakeSnapshot(a.ctx, a.who(""), note)
		if err != nil {
			return err
		}
		var m snapshot.Manifest
		if err := json.Unmarshal(b, &m); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(m)
		}
		_, err = fmt.Fprintln(a.out, m.ID)
		return err
	})
}

func snapshotList(a *app, args []string) error {
	if _, err := a.parse(a.flags("snapshot ls"), args, 0, 0); err != nil {
		return err
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		b, err := c.Snapshots(a.ctx)
		if err != nil {
			return err
		}
		var list []snapshot.Manifest
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(list)
		}
		var rows [][]string
		for _, m := range list {
			files, bytes := 0, int64(0)
			for _, p := range m.Trees {
				files, bytes = files+p.Files, bytes+p.Bytes
			}
			about := string(m.Reason)
			if len(m.Failed) > 0 {
				about += ", " + strconv.Itoa(len(m.Failed)) + " failed"
			}
			if m.Note != "" {
				about += ": " + m.Note
			}
			rows = append(rows, []string{m.ID, m.At.Local().Format("2006-01-02 15:04"), story.Count(len(m.Trees), "tree", "trees"), story.Count(files, "file", "files"), bytesOf(bytes), about})
		}
		table(a.out, rows)
		return nil
	})
}

// shownSnapshot is what the owner says of one.
type shownSnapshot struct {
	snapshot.Manifest
	Recorded bool   `json:"recorded"`
	Verified string `json:"verified,omitempty"`
	Damaged  string `json:"damaged,omitempty"`
}

func snapshotShow(a *app, args []string) error {
	rest, err := a.parse(a.flags("snapshot show"), args, 1, 1)
	if err != nil {
		return err
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		b, err := c.Snapshot(a.ctx, rest[0])
		if err != nil {
			return err
		}
		var m shownSnapshot
		if err := json.Unmarshal(b, &m); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(m)
		}
		_, err = fmt.Fprint(a.out, told(&m))
		return err
	})
}

// told is a snapshot for people.
func told(m *shownSnapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "snapshot %s, %s, by %s\n", m.ID, m.At.Local().Format(time.RFC1123), clean(m.Who))
	if m.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", clean(m.Note))
	}
	switch {
	case !m.Recorded:
		fmt.Fprintln(&b, "CHANGED: it is not the one that the ledger has")
	case m.Damaged != "":
		fmt.Fprintln(&b, "DAMAGED: restored at "+m.Damaged+", and it was not what was kept: `holdfast snapshot verify "+m.ID+"` says where")
	case m.Verified == "":
		fmt.Fprintln(&b, "it is the one that the ledger has; nobody restored it yet: `holdfast snapshot verify "+m.ID+"`")
	default:
		fmt.Fprintln(&b, "it is the one that the ledger has; restored and found whole at "+m.Verified)
	}
	fmt.Fprintf(&b, "the ledger then had %d records\n", m.Ledger.Size)
	for i := range m.Trees {
		partTold(&b, &m.Trees[i])
	}
	for _, f := range m.Failed {
		fmt.Fprintf(&b, "\n%s was not kept: %s\n", clean(f.Path), clean(f.Why))
	}
	return b.String()
}

func partTold(b *strings.Builder, p *snapshot.Part) {
	fmt.Fprintf(b, "\n%s (%s)\n  version %s, %d files of %s, %d links, %d folders; %d changed since the version before\n", clean(p.Path), p.Kind, p.Commit[:min(12, len(p.Commit))], p.Files, bytesOf(p.Bytes), p.Links, p.Folders, p.Changed)
	if p.Middle != "" {
		fmt.Fprintf(b, "  its repository was in the middle of a %s\n", p.Middle)
	}
	if p.HardLinks > 0 {
		fmt.Fprintf(b, "  %d files had other names too (hard links), and are kept as files of their own\n", p.HardLinks)
	}
	leftTold(b, &p.LeftOut)
	for _, t := range p.Torn {
		fmt.Fprintf(b, "  not still: %s: %s\n", clean(t.Path), clean(t.Why))
	}
}

func leftTold(b *strings.Builder, l *snapshot.LeftOut) {
	if l.Names == 0 {
		return
	}
	fmt.Fprintf(b, "  left out: %d files of %s\n", l.Files, bytesOf(l.Bytes))
	const most = 20
	for i, x := range l.First {
		if i == most {
			fmt.Fprintf(b, "    and %d more (--json has 200)\n", l.Names-most)
			break
		}
		fmt.Fprintf(b, "    %s: %s\n", clean(x.Path), clean(x.Why))
	}
}

func snapshotVerify(a *app, args []string) error {
	fs := a.flags("snapshot verify")
	key := fs.String("key", "", "")
	rest, err := a.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	switch {
	case isArchive(rest[0]):
		return a.verifyArchive(rest[0], *key)
	case *key != "":
		return usage("a snapshot is verified by its own state", "--key is for an archive's file")
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		b, err := c.VerifySnapshot(a.ctx, rest[0])
		if err != nil {
			return err
		}
		var list []snapshot.Verified
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(list); err != nil {
				return err
			}
		}
		bad := ""
		for _, v := range list {
			if !v.OK {
				bad = v.Path + ": " + v.Why
			}
			if !a.json {
				fmt.Fprintf(a.out, "%s  %s%s\n", map[bool]string{true: "whole", false: "DAMAGED"}[v.OK], clean(v.Path), prefixIf(v.Why, ": ")+clean(v.Why))
			}
		}
		if bad != "" {
			return damagedSnapshot(bad)
		}
		return nil
	})
}

// seeSnapshots looks for git, where it is needed, and for trees that are half way back.
func (a *app) seeSnapshots(p daemon.Paths) finding {
	if list := daemon.HalfWay(p, true); len(list) > 0 {
		return warn("`holdfast status` says more", "%s", clean(excerpt.Of(strings.Join(list, "; "), 256)))
	}
	_, l, err := a.loads()
	if err != nil {
		return warn("mend the configuration first", "not asked: the configuration does not load")
	}
	n := len(l.Config.Snapshots.Trees)
	if n == 0 {
		return okay("no work tree is tracked, so that no versions are kept")
	}
	v, err := snapshot.Git(a.ctx, "")
	if err != nil {
		return bad(err)
	}
	for _, t := range l.Config.Snapshots.Trees {
		if info, err := os.Stat(t.Path); err != nil || !info.IsDir() {
			return warn("make it, or write another path under snapshots: trees:", "the work tree %s is not there, or is no folder, so that no version of it is kept", clean(t.Path))
		}
	}
	return okay("%s tracked, with git %s", story.Count(n, "work tree", "work trees"), v)
}

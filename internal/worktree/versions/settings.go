package versions

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// Settings are which work trees' versions are kept, when, and how long (spec 001, layer 3).
type Settings struct {
	Trees    []Tree
	DailyAt  time.Duration // the time of day (UTC) from which on a day's snapshot is taken
	KeepDays int
	Archive  Archive
}

// Tree is one work tree.
type Tree struct {
	snapshot.Tree
	Agents []string // that work in it; * is every agent
	Named  string   // Path, absolute, before links in it were followed
	Found  bool     // they could be
}

// Archive is where archives go; one of a directory and a command, or neither.
type Archive struct {
	Dir     string
	Command []string
	Verify  []string
	Env     []string      // names of variables that both are given
	Timeout time.Duration // of each of them; 10m if zero
}

// isSet reports whether archives go anywhere.
func (c *Archive) isSet() bool { return c.Dir != "" || len(c.Command) > 0 }

// ListTrees returns all work trees.
func (c *Settings) ListTrees() []snapshot.Tree {
	var out []snapshot.Tree
	for i := range c.Trees {
		out = append(out, c.Trees[i].Tree)
	}
	return out
}

// TreesOf returns those that an agent works in.
func (c *Settings) TreesOf(agent string) []snapshot.Tree {
	var out []snapshot.Tree
	for i := range c.Trees {
		if slices.Contains(c.Trees[i].Agents, agent) || slices.Contains(c.Trees[i].Agents, "*") {
			out = append(out, c.Trees[i].Tree)
		}
	}
	return out
}

// environment is what each of its commands is given, for the archive of that name.
func (c *Archive) environment(name string) []string {
	return append(slices.Clone(c.Env), "HOLDFAST_ARCHIVE="+name)
}

// archiveTime bounds a command of archives that has no limit of its own.
const archiveTime = 10 * time.Minute

// limit returns the time that a command has.
func (c *Archive) limit() time.Duration { return cmp.Or(c.Timeout, archiveTime) }

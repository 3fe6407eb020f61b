package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// SnapshotsConfig is which work trees' versions are kept, when, and how long (spec
// 001, layer 3).
type SnapshotsConfig struct {
	Trees    []TreeConfig `yaml:"trees" doc:"work trees of agents whose versions are kept"`
	DailyAt  string       `yaml:"daily_at" doc:"HH:MM, UTC, from which on a day's snapshot is taken; 03:00 if absent"`
	KeepDays int          `yaml:"keep_days" min:"1" max:"36500" doc:"how many days snapshots are kept; 30 if absent, and fewer is a weakening"`

	Archive ArchiveConfig `yaml:"archive" doc:"where a snapshot and a copy of the store go once a week, away from this state: a folder or a command; nowhere if absent"`
}

// ArchiveConfig is where archives go; one of folder and command, or neither.
type ArchiveConfig struct {
	Folder  string   `yaml:"folder" doc:"a folder that exists, relative to this file; archives in it are kept for a year"`
	Command []string `yaml:"command" doc:"program and arguments: it gets each archive on its standard input, and the file's name in HOLDFAST_ARCHIVE"`
	Verify  []string `yaml:"verify" doc:"program and arguments that give an archive back on their standard output, by the file's name in HOLDFAST_ARCHIVE: each archive is verified by restoring what they give, once the command has it; only before it is sent if absent"`
	Env     []string `yaml:"env" doc:"names of environment variables that command and verify are given beside the plain ones; no values stand here"`
	Timeout Duration `yaml:"timeout" doc:"bounds each of command and verify; 10m if absent, at most 1h"`
}

// TreeConfig is one work tree.
type TreeConfig struct {
	Path    string   `yaml:"path" need:"yes" doc:"its folder, relative to this file"`
	Kind    string   `yaml:"kind" enum:"code,state" doc:"how commits in it are worded: code, feat: CROSSING ACTION; state, state: AGENT ACTION TIME; code if absent"`
	Agents  []string `yaml:"agents" doc:"agents that work in it: each of their actions that changed it is kept as a commit; * is every agent"`
	Ignored string   `yaml:"ignored" enum:"drop,keep" doc:"drop: what .gitignore files leave out is no part of a snapshot, but counted and named in it; keep: it is; drop if absent"`
	At      string   `yaml:"-"`
	Named   string   `yaml:"-"` // Path, absolute, before links in it were followed
	Found   bool     `yaml:"-"` // they could be
}

// What is kept where nothing else is said (spec 001, "Retention Policy").
const (
	dailyAt  = "03:00"
	keepDays = 30
	maxTrees = 64

	archiveLongest = time.Hour
)

// IsSet says whether archives go anywhere.
func (c *ArchiveConfig) IsSet() bool { return c.Folder != "" || len(c.Command) > 0 }

func (c *SnapshotsConfig) withDefaults() {
	c.DailyAt = cmp.Or(c.DailyAt, dailyAt)
	c.KeepDays = cmp.Or(c.KeepDays, keepDays)
	for i := range c.Trees {
		c.Trees[i].Kind = cmp.Or(c.Trees[i].Kind, "code")
		c.Trees[i].Ignored = cmp.Or(c.Trees[i].Ignored, "drop")
	}
}

// tree is it as the hand wants it.
func (t *TreeConfig) tree() snapshot.Tree {
	return snapshot.Tree{Path: t.Path, Kind: t.Kind, KeepIgnored: t.Ignored == "keep"}
}

// ListTrees returns all work trees.
func (c *SnapshotsConfig) ListTrees() []snapshot.Tree {
	var out []snapshot.Tree
	for i := range c.Trees {
		out = append(out, c.Trees[i].tree())
	}
	return out
}

// Weakened names what is kept for less than the specification asks.
func (c *SnapshotsConfig) Weakened() []string {
	if len(c.Trees) == 0 || c.KeepDays >= keepDays {
		return nil
	}
	return []string{fmt.Sprintf("snapshots.keep_days: snapshots are kept for %d days, not %d", c.KeepDays, keepDays)}
}

// TimeOfDay is the time of day from which on a day's snapshot is due.
func (c *SnapshotsConfig) TimeOfDay() (time.Duration, error) { return timeOfDay(c.DailyAt) }

// timeOfDay reads HH:MM.
func timeOfDay(s string) (time.Duration, error) {
	t, err := time.Parse("15:04", s)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err
}

// treePaths makes the trees' paths absolute and without links. One that is not there
// is left as it is: the snapshot then says so.
func (r *reading) treePaths(c *SnapshotsConfig) {
	for i := range c.Trees {
		t := &c.Trees[i]
		if t.Path == "" {
			continue
		}
		t.Named = r.abs(t.Path)
		t.Path = t.Named
		if real, err := filepath.EvalSymlinks(t.Path); err == nil {
			t.Path, t.Found = real, true
		}
	}
	if c.Archive.Folder != "" {
		c.Archive.Folder = r.abs(c.Archive.Folder)
	}
}

func (k *checker) snapshots(c *Config) {
	s := &c.Snapshots
	if _, err := s.TimeOfDay(); err != nil {
		k.fail(k.at(
			"snapshots.daily_at",
		), "write HH:MM, such as 03:00; it is UTC", "snapshots.daily_at: %q is no time of day", excerpt.Word(s.DailyAt))
	}
	if len(s.Trees) > maxTrees {
		k.fail(k.at("snapshots.trees"), "", "more than %d work trees are tracked", maxTrees)
	}
	for i := range s.Trees {
		t := &s.Trees[i]
		switch {
		case t.Path == "" || strings.ContainsRune(t.Path, 0):
			k.fail(t.At, "", "a work tree has no path")
			continue
		case t.Path == "/":
			k.fail(t.At, "name the folder that agents work in", "the whole machine is no work tree")
			continue
		}
		if info, err := os.Stat(t.Path); err == nil && !info.IsDir() {
			k.fail(t.At, "", "%s is no folder", excerpt.Word(t.Path))
		}
		for j := range i {
			if o := s.Trees[j].Path; snapshot.PathsOverlap(o, t.Path) {
				k.fail(t.At, "track the outer one alone", "%s and %s lie within each other", excerpt.Word(o),
					excerpt.Word(t.Path))
			}
		}
		for _, a := range t.Agents {
			if a != "*" && !plainName(a) {
				k.fail(t.At, "", "%q is no name for an agent", excerpt.Word(a))
			}
		}
	}
	k.archive(s)
	for i := range c.Boundaries {
		if b := &c.Boundaries[i]; strings.HasPrefix(b.Boundary, snapshot.BoundaryPrefix) {
			k.fail(b.At, "leave it out", "the boundaries %s* are Holdfast's own", snapshot.BoundaryPrefix)
		}
	}
}

// archive checks where archives go. Whether the folder is there is asked when one is
// written: a disk that is not mounted must not keep agents from being guarded.
func (k *checker) archive(s *SnapshotsConfig) {
	a, where := &s.Archive, k.at("snapshots.archive")
	switch {
	case a.Folder != "" && len(a.Command) > 0:
		k.fail(where, "keep one of the two", "snapshots.archive names a folder and a command")
		return
	case !a.IsSet() && (len(a.Env) > 0 || len(a.Verify) > 0 || a.Timeout != 0):
		k.fail(where, "name a folder, or a command", "snapshots.archive names neither a folder nor a command")
		return
	case !a.IsSet():
		return
	case len(s.Trees) == 0:
		k.fail(where, "name them under snapshots.trees", "snapshots.archive is set, and no work tree is tracked")
	case a.Folder != "" && (len(a.Env) > 0 || len(a.Verify) > 0 || a.Timeout != 0):
		k.fail(where, "leave verify, env and timeout out", "snapshots.archive: verify, env and timeout are a command's")
	}
	if len(a.Command) > 0 {
		k.command(where, a.Command)
	}
	if a.Verify != nil {
		k.command(where, a.Verify)
	}
	if a.Timeout < 0 || time.Duration(a.Timeout) > archiveLongest {
		k.fail(where, "", "snapshots.archive.timeout must be between 0 and %s", archiveLongest)
	}
	k.variables(where, a.Env)
	if a.Folder == "" {
		return
	}
	if strings.ContainsRune(a.Folder, 0) || a.Folder == "/" {
		k.fail(where, "name a folder of its own", "snapshots.archive.folder cannot be %q", excerpt.Word(a.Folder))
	}
	for i := range s.Trees {
		if t := s.Trees[i].Path; t != "" && snapshot.PathsOverlap(t, a.Folder) {
			k.fail(where, "choose a folder that no agent works in", "the archive's folder %s and the work tree %s lie within each other", excerpt.Word(a.Folder), excerpt.Word(t))
		}
	}
}

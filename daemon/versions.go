package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/internal/worktree/versions"
	"github.com/holdfast-dev/holdfast/ledger"
)

// HalfWay returns a sentence for each work tree of a state that is half way back to a version.
func HalfWay(p Paths, owned bool) []string { return versions.HalfWay(p.Snapshots, owned) }

// newVersions returns what keeps versions of work trees.
func (d *Daemon) newVersions() *versions.Service {
	return versions.New(versions.Options{
		Dir: d.Paths.Snapshots, State: d.Paths.Dir, DB: d.Paths.DB, Mask: d.maskText, Person: person(),
		Store: func() versions.Store {
			if d.store == nil {
				return nil
			}
			return d.store
		},
		Own:        func() []string { return d.Kernel.Policy().Own },
		Key:        func() *ledger.Verifier { return d.signer.Verifier() },
		Checkpoint: func(ctx context.Context) (int, error) { return d.witness.Checkpoint(ctx) },
		Token: func(now time.Time) (holdfast.Secret, error) {
			tok, _, err := d.minter.Mint(holdfast.Identity{
				Tenant: holdfast.Local,
				Roles:  []string{versions.Role}, Agent: snapshot.Agent, Principal: snapshot.Agent,
				Session: sessionOf(snapshot.Agent, now),
			}, localTTL, now)
			return tok, err
		},
		Halted: func() bool { return d.latch.Halted() || d.disabled() != "" },
		Condition: func(holds bool, why string) {
			d.condition(holdfast.Local, "", watch.SnapshotMissing, holds, why)
		},
		Committed: func(a kernel.Acting, files int) {
			d.watching.Take(d.watching.Watch.Committed(a.Tenant, a.Agent, a.Crossing, files, time.Now()))
		},
		Run: func(ctx context.Context, c command.Command) (string, error) { return d.runner().Run(ctx, c) },
		Log: func() *slog.Logger { return d.log },
	})
}

// versionSettings converts the section snapshots of a configuration, which was checked.
func versionSettings(c *config.SnapshotsConfig) *versions.Settings {
	at, _ := c.TimeOfDay() // it was read when the configuration was checked
	s := &versions.Settings{
		DailyAt: at, KeepDays: c.KeepDays,
		Archive: versions.Archive{
			Dir: c.Archive.Folder, Command: c.Archive.Command, Verify: c.Archive.Verify, Env: c.Archive.Env,
			Timeout: time.Duration(c.Archive.Timeout),
		},
	}
	trees := c.ListTrees()
	for i, t := range c.Trees {
		s.Trees = append(s.Trees, versions.Tree{Tree: trees[i], Agents: t.Agents, Named: t.Named, Found: t.Found})
	}
	return s
}

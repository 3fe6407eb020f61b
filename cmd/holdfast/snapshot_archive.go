package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/internal/worktree/versions"
	"github.com/holdfast-dev/holdfast/ledger"
)

func snapshotArchiveCommand() command {
	return command{name: "archive", about: "write one away from this state, with the ledger", run: snapshotArchive, help: `
Write a snapshot and a copy of the store, with the ledger, into one file in the
folder, or through the command, that "snapshots: archive:" names. A daemon does so
once a week. Without ID it is the newest snapshot. The file is read back and
restored before it has its name; what goes to a command is restored before it is
sent, and again as "verify:" gives it back. No key is in it.

    holdfast snapshot archive [ID]

    $ holdfast snapshot archive
    $ holdfast snapshot verify /mnt/backup/holdfast-20261123-020000-5f0c1e.tar.zst
`}
}

func snapshotArchive(a *app, args []string) error {
	rest, err := a.parse(a.flags("snapshot archive"), args, 0, 1)
	if err != nil {
		return err
	}
	id := ""
	if len(rest) == 1 {
		id = rest[0]
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		b, err := c.ArchiveSnapshot(a.ctx, a.who(""), id)
		if err != nil {
			return err
		}
		var out struct {
			Archive, Path, SHA256, Verified, Said string
			Bytes                                 int64
			Found                                 bool
		}
		if err := json.Unmarshal(b, &out); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(json.RawMessage(b))
		}
		where := out.Path
		if where == "" {
			where = out.Archive + ", sent"
		}
		already := ""
		if out.Found {
			already = "it was there already; "
		}
		_, err = fmt.Fprintf(a.out, "%s\n  %s, SHA-256 %s\n  %s%s\n", clean(where), bytesOf(out.Bytes), clean(out.SHA256), already, clean(out.Verified))
		if err == nil && out.Said != "" {
			a.say("the command said: %s", clean(out.Said))
		}
		return err
	})
}

// isArchive says whether what is to be verified is a file, and no snapshot's id.
func isArchive(name string) bool {
	return strings.Contains(name, string(os.PathSeparator)) || strings.HasSuffix(name, snapshot.ArchiveName("")[len("holdfast-"):])
}

// verifyArchive verifies an archive standing alone: it needs no state.
func (a *app) verifyArchive(file, keyText string) error {
	var key *ledger.Verifier
	if keyText != "" {
		var err error
		if key, err = a.verifier(keyText); err != nil {
			return err
		}
	}
	r, err := versions.VerifyArchive(a.ctx, file, "", key)
	if err != nil {
		return tampered(err)
	}
	if a.json {
		return a.printJSON(r)
	}
	m := r.Manifest
	fmt.Fprintf(a.out, "whole  %s\n  %s of %s, SHA-256 %s\n", clean(file), story.Count(r.Files, "file", "files"), bytesOf(r.Bytes), r.SHA256)
	fmt.Fprintf(a.out, "  the snapshot %s of %s, with %s of the ledger\n", m.ID, m.At.Local().Format(time.RFC1123), story.Count(r.Leaves, "record", "records"))
	for _, p := range m.Trees {
		fmt.Fprintf(a.out, "  %s: %s of %s\n", clean(p.Path), story.Count(p.Files, "file", "files"), bytesOf(p.Bytes))
	}
	if r.OwnKey {
		a.say("the ledger was verified with the key that the archive itself names")
		a.hint("give the key that you kept with --key: it shows whose archive this is")
	}
	return nil
}

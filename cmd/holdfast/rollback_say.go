package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// rolled tells what a rollback did, or would do.
func (a *app) rolled(b []byte, dry bool) error {
	var list []snapshot.Rolled
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(list); err != nil {
			return err
		}
	}
	failed, hint := 0, ""
	for i := range list {
		r := &list[i]
		if r.Failed != "" {
			failed, hint = failed+1, r.Hint
		}
		if a.json {
			continue
		}
		if _, err := fmt.Fprint(a.out, rolledTold(r, dry)); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fail(hint, "%d of %d work trees did not go back", failed, len(list))
	}
	return nil
}

func rolledTold(r *snapshot.Rolled, dry bool) string {
	var b strings.Builder
	if r.Failed != "" {
		fmt.Fprintf(&b, "%s: it did not go back: %s\n", clean(r.Tree), clean(r.Failed))
		if r.Before != nil {
			fmt.Fprintf(&b, "  what was there is in the snapshot %s\n", r.Before.ID)
		}
		return b.String()
	}
	would := ""
	if dry {
		would = "would be "
	}
	fmt.Fprintf(&b, "%s: %d %staken away, %d %sput back\n", clean(r.Tree), r.Removed, would, r.Written, would)
	fmt.Fprintf(&b, "  to %s\n", clean(r.To.Name()))
	for _, line := range r.First {
		fmt.Fprintln(&b, "  "+clean(line))
	}
	if more := r.Removed + r.Written - len(r.First); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	if r.Middle != "" {
		fmt.Fprintf(&b, "  its repository is in the middle of a %s, which was passed over: see `git status` there\n", clean(r.Middle))
	}
	for _, line := range r.Aside {
		fmt.Fprintf(&b, "  moved aside, for no snapshot holds it: %s\n", clean(line))
	}
	if r.Stays.Names > 0 {
		fmt.Fprintf(&b, "  untouched, for no snapshot holds it: %d files of %s\n", r.Stays.Files, bytesOf(r.Stays.Bytes))
		const most = 10
		for _, l := range r.Stays.First[:min(len(r.Stays.First), most)] {
			fmt.Fprintf(&b, "    %s: %s\n", clean(l.Path), clean(l.Why))
		}
		if more := r.Stays.Names - min(len(r.Stays.First), most); more > 0 {
			fmt.Fprintf(&b, "    and %d more, with --json\n", more)
		}
	}
	if r.Before != nil {
		fmt.Fprintf(&b, "  what was there is in the snapshot %s\n", r.Before.ID)
	}
	return b.String()
}

func damagedSnapshot(why string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Why: "the snapshot is not what was kept: " + why, Hint: "do not go back to it; `holdfast snapshot ls` lists others"}
}

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/bystander"
)

// tried is the share that Find tries the limits with.
func tried() sandbox.Share {
	return sandbox.Share{Memory: 64 << 20, Period: 100 * time.Millisecond, Quota: 50 * time.Millisecond, Pids: 4}
}

// try makes a group in each branch, sets each limit, moves a process in and
// takes it all away. What fails is dropped.
func (c *Groups) try(proc string) {
	for _, b := range c.branches {
		if len(b.controllers) > 0 {
			c.drop(b, b.try(proc))
		}
	}
	holds := func(b *branch) bool {
		return slices.ContainsFunc(b.controllers, func(ctl string) bool { return ctl != ctlAcct })
	}
	some := slices.ContainsFunc(c.branches, holds) // without a wall nothing is worth measuring
	c.branches = slices.DeleteFunc(c.branches, func(b *branch) bool {
		keep := some && len(b.controllers) > 0
		if !keep {
			b.close()
		}
		return !keep
	})
}

// try returns what went wrong with each controller of one branch. A
// process gets into the group as runs do: there is no other way for them.
func (b *branch) try(proc string) map[string]error {
	failed := map[string]error{}
	all := func(err error) map[string]error {
		for _, ctl := range b.controllers {
			failed[ctl] = err
		}
		return failed
	}
	g := &Group{id: "probe", dir: -1}
	defer g.Remove()
	if err := g.grow(b, 0); err != nil {
		return all(err)
	}
	at := g.at[0]
	for _, ctl := range b.controllers {
		if err := at.set(ctl, tried()); err != nil {
			failed[ctl] = err
		}
	}
	if err := g.letLauncherIn(); err != nil {
		return all(err)
	}
	p, err := bystander.Start(g.dir, g.doors)
	if err != nil {
		return all(err)
	}
	defer p.End()
	if !isIn(proc, p.PID, b, at.d) {
		return all(fmt.Errorf("a process that was put into %s is not in it", at.d.path))
	}
	for _, ctl := range b.controllers {
		var u Usage
		read := readV1
		if b.v2 {
			read = readV2
		}
		if err := read(at.d, ctl, &u); err != nil && failed[ctl] == nil {
			failed[ctl] = err
		}
	}
	return failed
}

// isIn says whether the process is in the group d, by what the kernel says of
// the process.
func isIn(proc string, pid int, b *branch, d ctlDir) bool {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false
	}
	ctl := ""
	if !b.v2 {
		ctl = b.controllers[0]
	}
	m, ok := memberOf(parseMemberships(string(text)), ctl)
	return ok && strings.HasSuffix(m.path, "/"+b.name+"/"+strings.TrimSuffix(d.sub, "/"))
}

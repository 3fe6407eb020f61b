package main

import (
	"fmt"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/cli/early/buildinfo"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

func (a *app) seeState(p daemon.Paths) finding {
	if !there(p.Dir) {
		return warn("`holdfast init` makes it", "%s is not there yet", p.Dir)
	}
	real, err := statedir.OpenState(p.Dir)
	if err != nil {
		return bad(err)
	}
	return okay("%s is yours alone", real.Dir)
}

// loads finds the configuration and loads it as a daemon would that starts here.
func (a *app) loads() (string, *config.Loaded, error) {
	path, err := config.FindPath(a.config, a.lookup)
	if err != nil {
		return "", nil, err
	}
	l, err := config.LoadHere(path)
	return path, l, err
}

func (a *app) seeConfig(daemon.Paths) finding {
	path, l, err := a.loads()
	if err != nil {
		return bad(err)
	}
	note := noteDefaultRequests(l)
	if note != "" {
		note = "; " + note
	}
	if all := l.Policy.Weakened; len(all) > 0 {
		return warn("take back unintended ones, under `unsafe` or where the boundary or the host is listed",
			"weakened: %s%s", strings.Join(all, "; "), note)
	}
	if len(l.Deprecated) > 0 {
		return warn("leave out what has no effect", "%s%s", strings.Join(l.Deprecated, "; "), note)
	}
	if path == "" {
		return okay("none, the safe defaults govern")
	}
	return okay("%s loads, and only you can change it%s", path, note)
}

func (a *app) seeLatch(p daemon.Paths) finding {
	if enabled, set := a.lookup("HOLDFAST_ENABLED"); !latch.Enabled(enabled, set) {
		return warn("unset it", "HOLDFAST_ENABLED is %q, so everything started here is halted", enabled)
	}
	if !there(p.Dir) {
		return okay("not set")
	}
	latch, err := latch.New(p.Halt)
	if err != nil {
		return bad(err)
	}
	s, err := latch.Read()
	switch {
	case err != nil:
		return finding{How: "FAIL", Why: "it cannot be read, so everything is halted: " + err.Error(), Hint: "look at " + p.Halt}
	case s.Halted:
		return warn("`holdfast resume` lifts it", "everything is halted by %s: %s", or(s.Who, "somebody"), s.Why)
	}
	return okay("readable, and not set")
}

func (a *app) seeOperator(p daemon.Paths) finding {
	if !there(p.OperatorPub) {
		return warn("make one with `holdfast init`", "there is none: nobody can approve or resume")
	}
	keys, err := operatorKeys(p)
	if err != nil {
		return bad(err)
	}
	if len(keys) == 0 {
		return bad(fail("make one with `holdfast init`", "%s holds no key", p.OperatorPub))
	}
	var who []string
	for _, k := range keys {
		who = append(who, k.ID()+prefix(" ", k.Name()))
	}
	all := strings.Join(who, ", ")
	if _, err := readPrivate(p.OperatorKey, operator.MaxSealed); err != nil {
		return warn("it may be kept elsewhere on purpose", "%s, and the sealed key is not beside it: %v", all, err)
	}
	return okay("%s", all)
}

// leastDisk is how much room there should be, in bytes.
const leastDisk = 256 << 20

func (a *app) seeDisk(p daemon.Paths) finding {
	dir := p.Dir
	if !there(dir) {
		return okay("nothing is stored yet")
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return bad(err)
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	if free < leastDisk {
		return warn("make room: on a full disk everything is refused", "only %s free", bytesOf(free))
	}
	return okay("%s free", bytesOf(free))
}

// seeClock compares the clock with the program's own age and the newest record.
func (a *app) seeClock(daemon.Paths) finding {
	now := time.Now()
	if built, err := time.Parse(time.RFC3339, buildinfo.Read().Time); err == nil && now.Before(built.Add(-24*time.Hour)) {
		return finding{How: "FAIL", Why: fmt.Sprintf("it says %s, before this program was built", now.UTC().Format(time.RFC3339)), Hint: "set the clock: tokens and windows depend on it"}
	}
	var newest time.Time
	err := a.read(func(_ daemon.Paths, s kernel.Store) error {
		trees, err := a.trees(s)
		if err != nil {
			return err
		}
		return a.view(s, func(tx kernel.Tx) error {
			for _, t := range trees {
				if t.Head.Size == 0 {
					continue
				}
				l, err := tx.Leaf(t.Head.Tenant, t.Head.Size-1)
				if err != nil {
					return err
				}
				if l.At.After(newest) {
					newest = l.At
				}
			}
			return nil
		})
	})
	if err != nil && !isNoState(err) {
		return warn("", "the newest record cannot be read: %s", bad(err).Why)
	}
	if newest.After(now.Add(time.Minute)) {
		return finding{How: "FAIL", Why: fmt.Sprintf("the newest record is %s ahead of it", story.Short(newest.Sub(now))), Hint: "set the clock: tokens and windows depend on it"}
	}
	return okay("%s, not before the newest record", now.UTC().Format(time.RFC3339))
}

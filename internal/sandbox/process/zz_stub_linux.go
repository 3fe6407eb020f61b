package process

import (
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"time"
)

type share struct {
	memory        int64
	period, quota time.Duration
	pids          int
}
type groupUsage struct {
	peak         int64
	user, system time.Duration
	oomKills     int64
	majorFaults  int64
	throttled    time.Duration
}
type cgroups struct{}
type group struct{}

func findGroups() *cgroups      { return &cgroups{} }
func (c *cgroups) mode() string { return "none" }
func (c *cgroups) walls() (up []sandbox.Wall, down map[sandbox.Wall]string) {
	return nil, map[sandbox.Wall]string{}
}
func (c *cgroups) create(id string, s share) (*group, error) { return nil, nil }
func (c *cgroups) sweep() int                                { return 0 }
func (g *group) place(pid int) error                         { return nil }
func (g *group) usage() (groupUsage, error)                  { return groupUsage{}, nil }
func (g *group) remove() error                               { return nil }

type language struct {
	exact    string
	codeName string
	profile  *profile
	pids     int
}

func languages(ctx interface{}) ([]language, map[string]string) {
	return []language{{exact: "python3.11", codeName: "main.py", profile: newProfile(threads), pids: 34}}, nil
}
func (l language) matches(a string) bool { return a == "python3" || a == l.exact }
func (l language) argv() []string {
	return []string{"/usr/bin/python3.11", "-I", "-S", "/code/main.py"}
}
func (l language) root(ctx interface{}, dir string, note func(string)) (string, error) {
	return dir, nil
}
func (p *profile) without(n []string) (*profile, error) { return p, nil }

func (g *group) limit(s share) error { return nil }
func seatName() string               { return "seat" }

const maxPids = 64

package container

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox/heir"
)

// heirName is what a tier's heir is started as.
const heirName = "holdfast-container-heir"

// will is what an heir takes away: what the tier called Name left in Dir.
type will struct {
	Name, Dir string
	// Runtime is an OCI runtime's path, and State where it keeps what it knows.
	Runtime, State string
	// Engine is the socket of a Docker engine; empty is an OCI runtime's tier.
	Engine  string
	Grouped bool
}

// Launcher turns this process into the heir of a tier, and does not return, if it
// was started as one. A program that opens a tier calls it first thing in main.
func Launcher() {
	heir.Become(heirName, func(text []byte) bool {
		var w will
		return json.Unmarshal(text, &w) != nil || w.settle()
	})
}

// settle takes away what is left, and says that nothing was.
func (w will) settle() bool {
	if w.Engine != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		e, _, err := reach(ctx, w.Engine)
		if err != nil {
			return false // it may be back in a moment
		}
		defer e.close()
		found, err := engineEstate{e, w.Dir, findGroups(""), w.Grouped}.sweep(ctx, of(w.Name))
		return !found && err == nil
	}
	found, err := estate{w.Dir, runtime{path: w.Runtime, state: w.State}, findGroups("")}.sweep(of(w.Name))
	return !found && err == nil
}

// heirRights are what it takes to kill a container's processes, who are somebody
// else, and to remove groups: nobody may write to where they lie but by this right.
func heirRights(more ...uintptr) []uintptr {
	return append(more, unix.CAP_KILL, unix.CAP_DAC_OVERRIDE)
}

// bequeath sees that somebody ends the tier's containers where Holdfast is killed.
func (t *Tier) bequeath() {
	t.trouble(t.line.Ensure(heirName, will{Name: t.name, Dir: t.cfg.Dir, Runtime: t.runtime.path, State: t.runtime.state}, heirRights()...))
}

func (d *Docker) bequeath() {
	// An engine's runs lie in mounts that both see.
	d.trouble(d.line.Ensure(heirName, will{Name: d.name, Dir: d.cfg.Dir, Engine: d.engine.socket, Grouped: d.grouped}, heirRights(unix.CAP_SYS_ADMIN)...))
}

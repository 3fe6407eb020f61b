package sandboxtest

import (
	"testing"
	"time"
)

// slow is how long a program may take in a container that runs beside others: to fill
// its memory takes some machines half a minute.
const slow = 2 * time.Minute

// Container runs the same attempts in containers, where the program is the first
// process of its namespace, finds its scratch in /workspace and a /proc of its
// own. Each has to come to what it comes to in the process tier, or to what the
// table of exceptions says by its name. That the attempts get through where there
// is no wall, Suite shows.
func Container(t *testing.T, part Part, open func(t *testing.T) Runner) {
	s := &suite{alone: true, part: part, patience: slow}
	s.others(t, containerExceptions(), nil, func(t *testing.T, _ string) Runner { return open(t) })
}

// Rootless is Container for an ordinary user's runtime.
func Rootless(t *testing.T, part Part, open func(t *testing.T) Runner) {
	s := &suite{alone: true, part: part, patience: slow}
	s.others(t, containerExceptions(), rootlessExceptions(), func(t *testing.T, _ string) Runner { return open(t) })
}

// Docker is Container behind a Docker engine, which hands no listener of a filter
// out: what is a violation or an escape elsewhere ends the program unnamed.
// A container costs the engine a third of a second of a processor.
func Docker(t *testing.T, part Part, open func(t *testing.T) Runner) {
	s := &suite{alone: true, part: part, patience: slow}
	s.others(t, containerExceptions(), dockerExceptions(), func(t *testing.T, _ string) Runner { return open(t) })
}

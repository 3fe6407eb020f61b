// Package gateway measures an MCP server behind the gates.
package gateway

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/bench/internal/barerows"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	list := []measure.Measurement{{Name: "calls", Do: measureCalls}, {Name: "cut", Do: measureCut}}
	return &measure.Subject{Name: "gateway", About: "an MCP server behind the gates", Measurements: list, Help: `
Measure the MCP gateway on this machine, with a client, a daemon and a server
that are processes of their own, beside the same client and server without it.
It takes about half a minute, uses a state directory of its own that it takes
away again, and never touches yours.

    go run -C bench . gateway [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . gateway --only calls
`}
}

// ServerRole is the role in which this program is the measured MCP server: the file of
// its record follows.
const ServerRole = "mcp-server"

// serverCommand is the command of the measured server, and throughCommand the same
// behind the gates.
func serverCommand(g *programs.Daemon) []string {
	return programs.RoleCommand(ServerRole, g.Record)
}

func throughCommand(g *programs.Daemon) []string {
	return append([]string{g.Program, "mcp", "--state", g.State, "--config", g.Config, "--name", "bench", "--"}, serverCommand(g)...)
}

// measureCalls measures one tool call after another over stdio, straight to the server
// and through the gateway to the same server, with bare commits of what the
// ledger wrote of each, in turns.
func measureCalls(b *measure.Run) (_ []measure.Figure, err error) {
	g, err := programs.StartDaemon(b, "calls")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	direct, err := inflighttest.StartClient(b.Ctx, serverCommand(g))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	through, err := inflighttest.StartClient(b.Ctx, throughCommand(g))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, through.Close()) }()
	bare, err := barerows.Open(filepath.Join(b.Dir, "calls-bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	call := `"method":"tools/call","params":{"name":"echo","arguments":` + string(fixture.NewPayload()) + `}`
	if _, err := through.Ask(call); err != nil {
		return nil, err
	}
	records, err := barerows.ReadNewest(b, filepath.Join(g.State, "holdfast.db"))
	if err != nil {
		return nil, err
	}
	var took [3][]time.Duration
	for round := range b.Rounds(25) {
		for i := range 3 {
			which := (round + i) % 3
			do := func() error { _, err := direct.Ask(call); return err }
			switch which {
			case 1:
				do = func() error { _, err := through.Ask(call); return err }
			case 2:
				do = func() error { return bare.Put(1, 1, uuid.Must(uuid.NewV7()).String(), records[round%2]) }
			}
			for range 40 {
				from := time.Now()
				if err := do(); err != nil {
					return nil, err
				}
				took[which] = append(took[which], time.Since(from))
			}
		}
	}
	return callFigures(took[0], took[1], took[2]), nil
}

// callFigures holds what the gateway adds at the median against two commits and
// half a millisecond.
func callFigures(direct, through, commit []time.Duration) []measure.Figure {
	added, allowed := measure.Millis(measure.Percentile(through, 50)-measure.Percentile(direct, 50)), 2*measure.Millis(measure.Percentile(commit, 50))+0.5
	f := measure.Figure{Name: "added to a tool call over stdio, p50", Measured: added, Unit: "ms", Target: "<= 2 bare commits + 0.5 ms", Met: added <= allowed}
	f = f.RatioTo(2*measure.Millis(measure.Percentile(commit, 50)), "two bare commits")
	f.Note = fmt.Sprintf("p50 %s ms through the gateway, %s straight; a bare commit %s; p99 %s, %s and %s; %d calls each, in turns",
		measure.Number(measure.Millis(measure.Percentile(through, 50))), measure.Number(measure.Millis(measure.Percentile(direct, 50))), measure.Number(measure.Millis(measure.Percentile(commit, 50))),
		measure.Number(measure.Millis(measure.Percentile(through, 99))), measure.Number(measure.Millis(measure.Percentile(direct, 99))), measure.Number(measure.Millis(measure.Percentile(commit, 99))), len(through))
	tail := measure.Figure{Name: "  a tool call through the gateway, p99", Measured: measure.Millis(measure.Percentile(through, 99)), Unit: "ms"}
	return []measure.Figure{f, tail.RatioTo(2*measure.Millis(measure.Percentile(commit, 99)), "two bare commits")}
}

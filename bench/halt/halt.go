// Package halt measures how soon everything stops.
package halt

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/gateway"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	list := []measure.Measurement{{Name: "hands", Do: measureHands}}
	return &measure.Subject{Name: "halt", About: "how soon everything stops", Measurements: list, Help: `
Measure how soon everything has stopped after ` + "`holdfast halt`" + ` was started: tool
calls over stdio and over HTTP, a call that waits for a person, code in each tier of
the sandbox that works here (a guest's kernel is the one of your configuration,
sandbox: vm, or Debian's in /boot) and over gRPC, a program of ` + "`holdfast run`" + `, a
download, a tunnel, a WebSocket and a model's answer, all in flight at once, to the
last effect that each has where it does something; what does not work here is named.
Beside stands the same command with nothing in flight. That nothing takes effect
once the halt is acknowledged is checked, not measured. It takes about a minute,
uses a state directory of its own that it takes away again, and never touches yours.

    go run -C bench . halt [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

    $ go run -C bench . halt --short
`}
}

// measureHands measures how long after a person asked for it everything has stopped
// that can be in flight: from the start of `holdfast halt` to the last effect that
// each has where it does something, all of them being in flight at once. Beside
// stands the same command with nothing in flight, to its end; it contains a
// program's start, the latch, the record and the answer.
func measureHands(b *measure.Run) (_ []measure.Figure, err error) {
	program, err := programs.FindHoldfast(b)
	if err != nil {
		return nil, err
	}
	w, err := inflighttest.OpenWorld(b.Ctx, inflighttest.Programs{Holdfast: program, Server: programs.RoleCommand(gateway.ServerRole)}, b.Dir,
		inflighttest.Config{Watch: inflighttest.WatchesNothing, VM: fixture.LoadSandboxConfig(b.Config).VM})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	alone, latched, err := measureAlone(b, w)
	if err != nil {
		return nil, err
	}
	hands, missing, err := w.Possible(b.Say)
	if err != nil {
		return nil, err
	}
	took, told := make([][]time.Duration, len(hands)), []time.Duration{}
	for range b.Rounds(20) {
		ends, to, err := w.HaltAll(hands)
		if err != nil {
			return nil, err
		}
		for i := range hands {
			took[i] = append(took[i], ends[i])
		}
		told = append(told, to)
	}
	floor := measure.Millis(measure.Percentile(alone, 50))
	out := []measure.Figure{measure.Figure{Name: "the latch alone, p50", Measured: measure.Millis(measure.Percentile(latched, 50)), Unit: "ms",
		Note: "write, sync, name, sync of the directory; p99 " + measure.Number(measure.Millis(measure.Percentile(latched, 99))) + " ms"}.RatioTo(floor, "halt, nothing in flight"),
		{Name: "holdfast halt, nothing in flight, p50", Measured: floor, Unit: "ms", Note: "p99 " + measure.Number(measure.Millis(measure.Percentile(alone, 99))) + " ms"},
		measure.Figure{Name: fmt.Sprintf("holdfast halt, %d in flight, to its answer, p50", len(hands)), Measured: measure.Millis(measure.Percentile(told, 50)), Unit: "ms",
			Note: "p99 " + measure.Number(measure.Millis(measure.Percentile(told, 99))) + " ms"}.RatioTo(floor, "halt, nothing in flight")}
	for i, h := range hands {
		out = append(out, measure.Figure{Name: "  " + h.Name + ", last effect, p50", Measured: measure.Millis(measure.Percentile(took[i], 50)), Unit: "ms",
			Note: fmt.Sprintf("p95 %s ms, slowest %s, %d halts", measure.Number(measure.Millis(measure.Percentile(took[i], 95))), measure.Number(measure.Millis(measure.Percentile(took[i], 100))), len(took[i]))}.RatioTo(floor, "halt, nothing in flight"))
	}
	for _, m := range missing {
		out = append(out, measure.Figure{Name: "  " + m.Name, Note: m.Why})
	}
	return out, nil
}

// measureAlone measures the floor: the latch's own writing on this disk, and the whole
// command where nothing is in flight.
func measureAlone(b *measure.Run, w *inflighttest.World) (alone, latched []time.Duration, err error) {
	l, err := latch.New(filepath.Join(b.Dir, "HALT"))
	if err != nil {
		return nil, nil, err
	}
	for range b.Rounds(20) {
		from := time.Now()
		if err := l.Set("bench", "to be measured", from); err != nil {
			return nil, nil, err
		}
		latched = append(latched, time.Since(from))
		if err := l.Clear(); err != nil {
			return nil, nil, err
		}
		from, to, _, err := w.Halt()
		if err == nil {
			err = w.Resume()
		}
		if err != nil {
			return nil, nil, err
		}
		alone = append(alone, to.Sub(from))
	}
	return alone, latched, nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/halt"
)

// haltMeasurements are what is measured of a halt; guests are made as vm says.
func haltMeasurements(vm daemon.VMConfig) []measurement {
	return []measurement{{"hands", func(b *bench) ([]figure, error) { return b.haltHands(vm) }}}
}

func benchHalt(a *app, args []string) error {
	vm := daemon.VMConfig{}
	if _, l, err := a.loads(); err == nil {
		vm = l.Config.Sandbox.VM
	}
	return a.measure(a.flags("bench halt"), args, haltMeasurements(vm), func() (bool, error) { return false, nil })
}

// haltHands measures how long after a person asked for it everything has stopped
// that can be in flight: from the start of `holdfast halt` to the last effect that
// each has where it does something, all of them being in flight at once. Beside
// stands the same command with nothing in flight, to its end; it contains a
// program's start, the latch, the record and the answer.
func (b *bench) haltHands(vm daemon.VMConfig) (_ []figure, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w, err := openHaltWorld(b.ctx, self, b.dir, haltConfig{watch: watchesNothing, vm: vm})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	alone, latch, err := b.haltAlone(w)
	if err != nil {
		return nil, err
	}
	hands, missing, err := w.possible(b)
	if err != nil {
		return nil, err
	}
	took, told := make([][]time.Duration, len(hands)), []time.Duration{}
	for range b.rounds(20) {
		ends, to, err := w.haltAll(hands)
		if err != nil {
			return nil, err
		}
		for i := range hands {
			took[i] = append(took[i], ends[i])
		}
		told = append(told, to)
	}
	floor := millis(at(alone, 50))
	out := []figure{figure{Name: "the latch alone, p50", Measured: millis(at(latch, 50)), Unit: "ms",
		Note: "write, sync, name, sync of the directory; p99 " + number(millis(at(latch, 99))) + " ms"}.ratioTo(floor, "halt, nothing in flight"),
		{Name: "holdfast halt, nothing in flight, p50", Measured: floor, Unit: "ms", Note: "p99 " + number(millis(at(alone, 99))) + " ms"},
		figure{Name: fmt.Sprintf("holdfast halt, %d in flight, to its answer, p50", len(hands)), Measured: millis(at(told, 50)), Unit: "ms",
			Note: "p99 " + number(millis(at(told, 99))) + " ms"}.ratioTo(floor, "halt, nothing in flight")}
	for i, h := range hands {
		out = append(out, figure{Name: "  " + h.name + ", last effect, p50", Measured: millis(at(took[i], 50)), Unit: "ms",
			Note: fmt.Sprintf("p95 %s ms, slowest %s, %d halts", number(millis(at(took[i], 95))), number(millis(at(took[i], 100))), len(took[i]))}.ratioTo(floor, "halt, nothing in flight"))
	}
	return append(out, missing...), nil
}

// haltAlone measures the floor: the latch's own writing on this disk, and the whole
// command where nothing is in flight.
func (b *bench) haltAlone(w *haltWorld) (alone, latch []time.Duration, err error) {
	l, err := halt.New(filepath.Join(b.dir, "HALT"))
	if err != nil {
		return nil, nil, err
	}
	for range b.rounds(20) {
		from := time.Now()
		if err := l.Set("bench", "to be measured", from); err != nil {
			return nil, nil, err
		}
		latch = append(latch, time.Since(from))
		if err := l.Clear(); err != nil {
			return nil, nil, err
		}
		from, to, _, err := w.halt()
		if err == nil {
			err = w.resume()
		}
		if err != nil {
			return nil, nil, err
		}
		alone = append(alone, to.Sub(from))
	}
	return alone, latch, nil
}

// possible are the hands that work on this machine, each tried once, and a figure
// for each other one with why not.
func (w *haltWorld) possible(b *bench) (hands []haltHand, missing []figure, err error) {
	for _, h := range haltHands() {
		x, err := w.take(h)
		if err != nil {
			missing = append(missing, figure{Name: "  " + h.name, Note: firstLine(err.Error())})
			b.say("%s is left out: %s", h.name, firstLine(err.Error()))
			continue
		}
		endAll([]*inFlight{x})
		hands = append(hands, h)
	}
	return hands, missing, w.tidy()
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return clean(s)
}

// haltAll brings one of each into flight, halts, waits for the last effect of each,
// and resumes. What ended otherwise than by the halt is an error, and so is what
// took effect after the halt was acknowledged.
func (w *haltWorld) haltAll(hands []haltHand) (ends []time.Duration, told time.Duration, err error) {
	all, err := w.bring(hands)
	defer func() {
		endAll(all)
		err = errors.Join(err, w.resume())
	}()
	if err != nil {
		return nil, 0, err
	}
	from, to, _, err := w.halt()
	if err != nil {
		return nil, 0, err
	}
	for i, h := range hands {
		if err := all[i].ended(); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", h.name, err)
		}
		last, _, _ := all[i].effects.look()
		ends = append(ends, max(0, last.Sub(from)))
	}
	return ends, to.Sub(from), nil
}

// bring brings one of each into flight, all at once: what ended before the last of
// them had begun is an error. The caller ends what is returned, also beside an error.
func (w *haltWorld) bring(hands []haltHand) (all []*inFlight, err error) {
	for _, h := range hands {
		x, err := w.take(h)
		if err != nil {
			return all, fmt.Errorf("%s: %w", h.name, err)
		}
		all = append(all, x)
	}
	for i, x := range all {
		select {
		case <-x.over:
			return all, fmt.Errorf("%s: it ended before everything was in flight: %w", hands[i].name, x.err)
		default:
		}
	}
	return all, nil
}

// beginnings is how often something may fail to begin: where a machine is so busy that
// walls do not stand in their time, what was asked for is refused, and asked for again.
const beginnings = 4

// take brings one into flight.
func (w *haltWorld) take(h haltHand) (x *inFlight, err error) {
	for range beginnings {
		if x, err = h.begin(w); err != nil {
			continue
		}
		if err = x.flying(); err == nil {
			return x, nil
		}
		x.end()
		<-x.over
	}
	return nil, err
}

// endAll ends what is left of them.
func endAll(all []*inFlight) {
	for _, x := range all {
		x.end()
		<-x.over
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/halt"
)

func haltMeasurements() []measurement {
	return []measurement{{"hands", (*bench).haltHands}}
}

func benchHalt(a *app, args []string) error {
	return a.measure(a.flags("bench halt"), args, haltMeasurements(), func() (bool, error) { return false, nil })
}

// haltHands measures how long after a person asked for it everything has stopped
// that can be in flight: from the start of `holdfast halt` to the last effect that
// each has where it does something, all of them being in flight at once. Beside
// stands the same command with nothing in flight, to its end; it contains a
// program's start, the latch, the record and the answer.
func (b *bench) haltHands() (_ []figure, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w, err := openHaltWorld(b.ctx, self, b.dir, "")
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
		x, err := h.begin(w)
		if err == nil {
			err = x.flying()
			x.end()
			<-x.over
		}
		if err != nil {
			missing = append(missing, figure{Name: "  " + h.name, Note: firstLine(err.Error())})
			b.say("%s is left out: %s", h.name, firstLine(err.Error()))
			continue
		}
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
	all := make([]*inFlight, len(hands))
	defer func() {
		for _, x := range all {
			if x != nil {
				x.end()
				<-x.over
			}
		}
		err = errors.Join(err, w.resume())
	}()
	for i, h := range hands {
		if all[i], err = h.begin(w); err == nil {
			err = all[i].flying()
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", h.name, err)
		}
	}
	from, to, _, err := w.halt()
	if err != nil {
		return nil, 0, err
	}
	for i, h := range hands {
		select {
		case <-all[i].over:
		case <-time.After(time.Minute):
			return nil, 0, fmt.Errorf("%s: it goes on a minute after the halt", h.name)
		}
		last, _, late := all[i].effects.look()
		if err = all[i].err; err == nil && late != "" {
			err = fmt.Errorf("after the halt came %q", late)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", h.name, err)
		}
		ends = append(ends, max(0, last.Sub(from)))
	}
	return ends, to.Sub(from), nil
}

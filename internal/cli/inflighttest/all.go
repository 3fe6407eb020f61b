package inflighttest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Missing is a kind of thing that cannot be in flight on this machine.
type Missing struct{ Name, Why string }

// Possible returns the hands that work on this machine, each tried once, and the
// others with why not, which it also tells say.
func (w *World) Possible(say func(format string, args ...any)) (hands []Hand, missing []Missing, err error) {
	for _, h := range Hands() {
		x, err := w.take(h)
		if err != nil {
			missing = append(missing, Missing{h.Name, firstLine(err.Error())})
			say("%s is left out: %s", h.Name, firstLine(err.Error()))
			continue
		}
		EndAll([]*InFlight{x})
		hands = append(hands, h)
	}
	return hands, missing, w.tidy()
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return excerpt.Printable(s)
}

// HaltAll brings one of each into flight, halts, waits for the last effect of each,
// and resumes. What ended otherwise than by the halt is an error, and so is what
// took effect after the halt was acknowledged.
func (w *World) HaltAll(hands []Hand) (ends []time.Duration, told time.Duration, err error) {
	all, err := w.Bring(hands)
	defer func() {
		EndAll(all)
		err = errors.Join(err, w.Resume())
	}()
	if err != nil {
		return nil, 0, err
	}
	from, to, _, err := w.Halt()
	if err != nil {
		return nil, 0, err
	}
	for i, h := range hands {
		if err := all[i].Ended(); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", h.Name, err)
		}
		last, _, _ := all[i].Effects.Look()
		ends = append(ends, max(0, last.Sub(from)))
	}
	return ends, to.Sub(from), nil
}

// Bring brings one of each into flight, all at once: what ended before the last of
// them had begun is an error. The caller ends what is returned, also beside an error.
func (w *World) Bring(hands []Hand) (all []*InFlight, err error) {
	for _, h := range hands {
		x, err := w.take(h)
		if err != nil {
			return all, fmt.Errorf("%s: %w", h.Name, err)
		}
		all = append(all, x)
	}
	for i, x := range all {
		select {
		case <-x.Over:
			return all, fmt.Errorf("%s: it ended before everything was in flight: %w", hands[i].Name, x.Err)
		default:
		}
	}
	return all, nil
}

// beginnings is how often something may fail to begin: where a machine is so busy that
// walls do not stand in their time, what was asked for is refused, and asked for again.
const beginnings = 4

// take brings one into flight.
func (w *World) take(h Hand) (x *InFlight, err error) {
	for range beginnings {
		if x, err = h.Begin(w); err != nil {
			continue
		}
		if err = x.flying(); err == nil {
			return x, nil
		}
		x.end()
		<-x.Over
	}
	return nil, err
}

// EndAll ends what is left of them.
func EndAll(all []*InFlight) {
	for _, x := range all {
		x.end()
		<-x.Over
	}
}

package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
)

// benchClients is over how many connections the flights of cut are spread: one
// may have no more than 64 in flight.
const benchClients = 4

// measureCut measures how long a halt takes to reach tool calls that are in flight
// behind the gateway: from the latch's name, which any process may give it, to
// each call's answer at its client and its cancellation at the server.
func measureCut(b *measure.Run) ([]measure.Figure, error) {
	var answers, cancels []time.Duration
	for round := range b.Rounds(10) {
		a, c, err := cutOnce(b, fmt.Sprint("cut", round))
		if err != nil {
			return nil, err
		}
		answers, cancels = append(answers, a...), append(cancels, c...)
	}
	f := measure.Figure{Name: fmt.Sprintf("halt of %d calls in flight, to each answer, p99", fixture.Flights), Measured: measure.Millis(measure.Percentile(answers, 99)), Unit: "ms", Target: "<= 100 ms",
		Note: fmt.Sprintf("p50 %s ms, slowest %s, of %d calls", measure.Number(measure.Millis(measure.Percentile(answers, 50))), measure.Number(measure.Millis(measure.Percentile(answers, 100))), len(answers))}
	f.Met = f.Measured <= 100
	s := measure.Figure{Name: "  and to its cancellation at the server, p99", Measured: measure.Millis(measure.Percentile(cancels, 99)), Unit: "ms", Target: "<= 100 ms",
		Note: fmt.Sprintf("p50 %s ms, slowest %s", measure.Number(measure.Millis(measure.Percentile(cancels, 50))), measure.Number(measure.Millis(measure.Percentile(cancels, 100))))}
	s.Met = s.Measured <= 100
	return []measure.Figure{f, s}, nil
}

func cutOnce(b *measure.Run, name string) (answers, cancels []time.Duration, err error) {
	g, err := programs.StartDaemon(b, name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	var peers []*inflighttest.Client
	defer func() {
		for _, p := range peers {
			err = errors.Join(err, p.Close())
		}
	}()
	for range benchClients {
		p, err := inflighttest.StartClient(b.Ctx, throughCommand(g))
		if err != nil {
			return nil, nil, err
		}
		peers = append(peers, p)
		for range fixture.Flights / benchClients {
			if _, err := p.Send(`"method":"tools/call","params":{"name":"wait","arguments":{}}`); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := inflighttest.WaitRecorded(g.Record, "waits", fixture.Flights, func([]int64) {}); err != nil {
		return nil, nil, err
	}
	written := filepath.Join(g.State, "latch-to-be")
	l, err := latch.New(written)
	if err == nil {
		err = l.Set("bench", "to be measured", time.Now())
	}
	if err != nil {
		return nil, nil, err
	}
	from := time.Now()
	if err := os.Rename(written, filepath.Join(g.State, "HALT")); err != nil {
		return nil, nil, err
	}
	if answers, err = answered(peers, from); err != nil {
		return nil, nil, err
	}
	err = inflighttest.WaitRecorded(g.Record, "cancelled", fixture.Flights, func(when []int64) {
		for _, ns := range when {
			cancels = append(cancels, time.Unix(0, ns).Sub(from))
		}
	})
	return answers, cancels, err
}

// answered waits for every call's answer, each of which must say that it was
// halted.
func answered(peers []*inflighttest.Client, from time.Time) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() {
			for range fixture.Flights / benchClients {
				_, line, err := p.Answer()
				took := time.Since(from)
				if err == nil && !strings.Contains(string(line), "halted") {
					err = fmt.Errorf("a call ended otherwise than by the halt: %s", excerpt.Printable(string(line)))
				}
				mu.Lock()
				all, errs = append(all, took), append(errs, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

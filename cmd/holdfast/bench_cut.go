package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/halt"
)

// benchClients is over how many connections the flights of cut are spread: one
// may have no more than 64 in flight.
const benchClients = 4

// cut measures how long a halt takes to reach tool calls that are in flight
// behind the gateway: from the latch's name, which any process may give it, to
// each call's answer at its client and its cancellation at the server.
func (b *bench) cut() ([]figure, error) {
	var answers, cancels []time.Duration
	for round := range b.rounds(10) {
		a, c, err := b.cutOnce(fmt.Sprint("cut", round))
		if err != nil {
			return nil, err
		}
		answers, cancels = append(answers, a...), append(cancels, c...)
	}
	f := figure{Name: fmt.Sprintf("halt of %d calls in flight, to each answer, p99", benchFlights), Measured: millis(at(answers, 99)), Unit: "ms", Target: "<= 100 ms",
		Note: fmt.Sprintf("p50 %s ms, slowest %s, of %d calls", number(millis(at(answers, 50))), number(millis(at(answers, 100))), len(answers))}
	f.Met = f.Measured <= 100
	s := figure{Name: "  and to its cancellation at the server, p99", Measured: millis(at(cancels, 99)), Unit: "ms", Target: "<= 100 ms",
		Note: fmt.Sprintf("p50 %s ms, slowest %s", number(millis(at(cancels, 50))), number(millis(at(cancels, 100))))}
	s.Met = s.Measured <= 100
	return []figure{f, s}, nil
}

func (b *bench) cutOnce(name string) (answers, cancels []time.Duration, err error) {
	g, err := b.openBehind(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, end(g.up)) }()
	var peers []*peer
	defer func() {
		for _, p := range peers {
			err = errors.Join(err, p.end())
		}
	}()
	for range benchClients {
		p, err := b.peer(g.through())
		if err != nil {
			return nil, nil, err
		}
		peers = append(peers, p)
		for range benchFlights / benchClients {
			if _, err := p.send(`"method":"tools/call","params":{"name":"wait","arguments":{}}`); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := g.recorded("waits", benchFlights, func([]int64) {}); err != nil {
		return nil, nil, err
	}
	latch := filepath.Join(g.state, "latch-to-be")
	l, err := halt.New(latch)
	if err == nil {
		err = l.Set("bench", "to be measured", time.Now())
	}
	if err != nil {
		return nil, nil, err
	}
	from := time.Now()
	if err := os.Rename(latch, filepath.Join(g.state, "HALT")); err != nil {
		return nil, nil, err
	}
	if answers, err = answered(peers, from); err != nil {
		return nil, nil, err
	}
	err = g.recorded("cancelled", benchFlights, func(when []int64) {
		for _, ns := range when {
			cancels = append(cancels, time.Unix(0, ns).Sub(from))
		}
	})
	return answers, cancels, err
}

// answered waits for every call's answer, each of which must say that it was
// halted.
func answered(peers []*peer, from time.Time) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() {
			for range benchFlights / benchClients {
				_, line, err := p.answer()
				took := time.Since(from)
				if err == nil && !strings.Contains(string(line), "halted") {
					err = fmt.Errorf("a call ended otherwise than by the halt: %s", clean(string(line)))
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

// recorded waits until the server has recorded something so often.
func (g *behind) recorded(what string, n int, then func([]int64)) error {
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(g.record)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		var when []int64
		for line := range strings.Lines(string(b)) {
			word, at, _ := strings.Cut(strings.TrimSpace(line), " ")
			if ns, err := strconv.ParseInt(at, 10, 64); word == what && err == nil {
				when = append(when, ns)
			}
		}
		if len(when) >= n {
			then(when)
			return nil
		}
	}
	return fmt.Errorf("the server did not record %q %d times", what, n)
}

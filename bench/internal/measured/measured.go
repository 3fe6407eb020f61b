// Package measured is a daemon in a process of its own that tells of itself.
package measured

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/barerows"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// Host is the name of the server that is reached through the daemon: its configuration
// alone finds it.
const Host = "bench.example.com"

// PerTurn is how many requests go one way before it is another's turn.
const PerTurn = 40

// Pause is the pause before a request whose predecessor's entry is then in the
// ledger.
const Pause = 5 * time.Millisecond

// Daemon is the daemon, and its state directory.
type Daemon struct {
	*programs.Child
	State string
}

// Start starts the daemon and waits until it listens.
func Start(b *measure.Run, state, config string) (*Daemon, error) {
	argv := programs.RoleCommand(Role, state, config)
	c, err := programs.StartChild(b, argv[0], argv[1:]...)
	if err != nil {
		return nil, err
	}
	if _, err := c.Read(); err != nil {
		return nil, fmt.Errorf("the daemon did not start: %w", err)
	}
	return &Daemon{c, state}, nil
}

// Records are a begin and an entry of the daemon's ledger: the entry follows the
// answer.
func (d *Daemon) Records(b *measure.Run) (out [2][]byte, err error) {
	for range 100 {
		if out, err = barerows.ReadNewest(b, filepath.Join(d.State, "holdfast.db")); err == nil {
			return out, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return out, err
}

// Told is what the daemon counted so far.
func (d *Daemon) Told() (*api.EgressStatus, error) {
	var s *api.EgressStatus
	err := d.Ask("egress", &s)
	if err == nil && s == nil {
		err = errors.New("the daemon has no proxy")
	}
	return s, err
}

// StagesBetween is the mean of each stage between two looks, in milliseconds.
func StagesBetween(before, after *api.EgressStatus) map[string]float64 {
	out := map[string]float64{}
	for _, s := range after.Stages {
		count, sum := s.Count, s.SumUS
		for _, was := range before.Stages {
			if was.Name == s.Name {
				count, sum = count-was.Count, sum-was.SumUS
			}
		}
		if count > 0 {
			out[s.Name] = float64(sum) / float64(count) / 1e3
		}
	}
	return out
}

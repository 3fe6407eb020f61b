package kernel

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// measureHalt measures how long a halt takes with many crossings in flight: from the
// latch's name, which another process could have given it, to the last durable
// entry. The daemon learns of it as it always does.
func measureHalt(b *measure.Run) (_ []measure.Figure, err error) {
	h, err := openHalt(b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	var all []time.Duration
	for range b.Rounds(20) {
		took, _, err := h.round(b, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	const deaf = 5
	_, named, err := h.round(b, deaf)
	if err != nil {
		return nil, err
	}
	f := measure.Figure{Name: fmt.Sprintf("halt with %d in flight, p99", fixture.Flights), Measured: measure.Millis(measure.Percentile(all, 99)), Unit: "ms", Target: "<= 100 ms",
		Note: fmt.Sprintf("p50 %s ms, %d halts; of %d hands that ignored their context, %d were named", measure.Number(measure.Millis(measure.Percentile(all, 50))), len(all), deaf, named)}
	f.Met = f.Measured <= 100 && named == deaf
	return []measure.Figure{f}, nil
}

// halting is a daemon that serves, and a person who can resume it.
type halting struct {
	*fixture.State
	person operator.Key
	stop   context.CancelFunc
	ended  chan error
	reqs   []holdfast.Request
}

func openHalt(b *measure.Run) (*halting, error) {
	s, err := fixture.OpenState(b, "halt")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.Ctx)
	h := &halting{State: s, stop: stop, ended: make(chan error, 1)}
	if h.person, err = newPerson(s.Daemon.Paths); err == nil {
		h.reqs, err = s.NewRequests(fixture.Wait, []byte(`{}`), fixture.Flights, 1)
	}
	ready := make(chan struct{})
	go func() { h.ended <- s.Daemon.Serve(ctx, daemon.Serving{Ready: func(string) { close(ready) }}) }()
	select {
	case <-ready:
	case served := <-h.ended:
		h.ended <- served
		err = errors.Join(err, served, errors.New("the daemon ended"))
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *halting) close() error {
	h.stop()
	return errors.Join(<-h.ended, h.Daemon.Close())
}

// newPerson makes an operator key, as init does, with a passphrase that nobody
// needs to know.
func newPerson(p daemon.Paths) (operator.Key, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return operator.Key{}, err
	}
	pass := holdfast.NewSecret(hex.EncodeToString(b[:]))
	sealed, pub, err := operator.New(pass, operator.Options{WorkFactor: 15})
	if err != nil {
		return operator.Key{}, err
	}
	if err := os.WriteFile(p.OperatorPub, []byte(pub.String()+"\n"), 0o600); err != nil {
		return operator.Key{}, err
	}
	return operator.Open(sealed, pass)
}

// round brings the crossings into flight, halts, waits for the last, and
// resumes. deaf of the hands ignore their context; named is how many of them
// the crossings' errors name.
func (h *halting) round(b *measure.Run, deaf int) (took time.Duration, named int, err error) {
	flying, over := make(chan struct{}, fixture.Flights), make(chan struct{})
	errs := make([]error, fixture.Flights)
	var wg sync.WaitGroup
	for i := range fixture.Flights {
		wg.Go(func() {
			_, errs[i] = h.Daemon.Kernel.Cross(b.Ctx, h.reqs[i], func(ctx context.Context) (holdfast.Output, error) {
				flying <- struct{}{}
				if i < deaf {
					<-over
					return holdfast.Output{}, nil
				}
				<-ctx.Done()
				return holdfast.Output{}, context.Cause(ctx)
			})
		})
	}
	defer close(over)
	for range fixture.Flights {
		select {
		case <-flying:
		case <-time.After(30 * time.Second):
			return 0, 0, fmt.Errorf("not every crossing began: %w", errors.Join(errs...))
		}
	}
	latch, err := h.besideLatch()
	if err != nil {
		return 0, 0, err
	}
	from := time.Now()
	if err := os.Rename(latch, h.Daemon.Paths.Halt); err != nil {
		return 0, 0, err
	}
	wg.Wait()
	took = time.Since(from)
	for _, err := range errs {
		if holdfast.KindOf(err) != holdfast.KindHalted {
			return 0, 0, fmt.Errorf("a crossing ended otherwise than by the halt: %v", err)
		}
		if strings.Contains(err.Error(), "was left behind") {
			named++
		}
	}
	return took, named, h.resume(b)
}

// besideLatch makes a latch under another name.
func (h *halting) besideLatch() (string, error) {
	file := filepath.Join(h.Daemon.Paths.Dir, "latch-"+uuid.NewString())
	l, err := latch.New(file)
	if err != nil {
		return "", err
	}
	return file, l.Set("bench", "to be measured", time.Now())
}

// resume lifts the halt as a person does, after it was recorded.
func (h *halting) resume(b *measure.Run) error {
	time.Sleep(50 * time.Millisecond)
	signed, err := operator.Sign(h.person, operator.Statement{Act: operator.Resume, Subject: "everything", At: time.Now(), ID: uuid.NewString(),
		Runtime: h.Daemon.Runtime(), Reviewer: "bench", Reason: "measured"})
	if err != nil {
		return err
	}
	if err := h.Daemon.Kernel.Resume(signed); err != nil {
		return err
	}
	// The watcher sees that the latch has gone before the next one comes.
	select {
	case <-b.Ctx.Done():
		return b.Ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

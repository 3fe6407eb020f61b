package main

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
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/halt"
	"github.com/holdfast-dev/holdfast/internal/operator"
)

// benchFlights is how many crossings are in flight when everything is halted.
const benchFlights = 200

// halt measures how long a halt takes with many crossings in flight: from the
// latch's name, which another process could have given it, to the last durable
// entry. The daemon learns of it as it always does.
func (b *bench) halt() (_ []figure, err error) {
	h, err := b.openHalt()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	var all []time.Duration
	for range b.rounds(20) {
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
	f := figure{Name: fmt.Sprintf("halt with %d in flight, p99", benchFlights), Measured: millis(at(all, 99)), Unit: "ms", Target: "<= 100 ms",
		Note: fmt.Sprintf("p50 %s ms, %d halts; of %d hands that ignored their context, %d were named", number(millis(at(all, 50))), len(all), deaf, named)}
	f.Met = f.Measured <= 100 && named == deaf
	return []figure{f}, nil
}

// halting is a daemon that serves, and a person who can resume it.
type halting struct {
	*benchState
	person operator.Key
	stop   context.CancelFunc
	ended  chan error
	reqs   []holdfast.Request
}

func (b *bench) openHalt() (*halting, error) {
	s, err := b.open("halt")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.ctx)
	h := &halting{benchState: s, stop: stop, ended: make(chan error, 1)}
	if h.person, err = newPerson(s.d.Paths); err == nil {
		h.reqs, err = s.requests(benchWait, []byte(`{}`), benchFlights, 1)
	}
	ready := make(chan struct{})
	go func() { h.ended <- s.d.Serve(ctx, daemon.Serving{Ready: func(string) { close(ready) }}) }()
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
	return errors.Join(<-h.ended, h.d.Close())
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
func (h *halting) round(b *bench, deaf int) (took time.Duration, named int, err error) {
	flying, over := make(chan struct{}, benchFlights), make(chan struct{})
	errs := make([]error, benchFlights)
	var wg sync.WaitGroup
	for i := range benchFlights {
		wg.Go(func() {
			_, errs[i] = h.d.Kernel.Cross(b.ctx, h.reqs[i], func(ctx context.Context) (holdfast.Output, error) {
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
	for range benchFlights {
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
	if err := os.Rename(latch, h.d.Paths.Halt); err != nil {
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
	file := filepath.Join(h.d.Paths.Dir, "latch-"+uuid.NewString())
	l, err := halt.New(file)
	if err != nil {
		return "", err
	}
	return file, l.Set("bench", "to be measured", time.Now())
}

// resume lifts the halt as a person does, after it was recorded.
func (h *halting) resume(b *bench) error {
	time.Sleep(50 * time.Millisecond)
	signed, err := operator.Sign(h.person, operator.Statement{Act: operator.Resume, Subject: "everything", At: time.Now(), ID: uuid.NewString(),
		Runtime: h.d.Runtime(), Reviewer: "bench", Reason: "measured"})
	if err != nil {
		return err
	}
	if err := h.d.Kernel.Resume(signed); err != nil {
		return err
	}
	// The watcher sees that the latch has gone before the next one comes.
	select {
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

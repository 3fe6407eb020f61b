// Package aside runs short work with deep stacks in goroutines that are kept.
package aside

import (
	"errors"
	"sync"
)

// maxAsides is how many goroutines of asides wait for work.
const maxAsides = 8

// Pool runs what needs a deep stack for a short time in goroutines of its own, a
// few of which are kept, their stacks with them. It is safe for concurrent use; the
// zero value is usable.
type Pool struct {
	mu   sync.Mutex
	idle []chan<- asideWork // guarded by mu
	over bool               // guarded by mu: none is kept any more
}

// asideWork is what one of them does next, and where it says that it has.
type asideWork struct {
	do   func() error
	done chan<- error
}

// Do runs f aside, and returns its error; a panic is one too.
func (s *Pool) Do(f func() error) error { return <-s.Begin(f) }

// Begin is do, for who does not wait for its end.
func (s *Pool) Begin(f func() error) <-chan error {
	done := make(chan error, 1)
	s.one() <- asideWork{f, done}
	return done
}

// one is a goroutine that has nothing to do.
func (s *Pool) one() chan<- asideWork {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		w := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return w
	}
	w := make(chan asideWork)
	go s.work(w)
	return w
}

func (s *Pool) work(next chan asideWork) {
	for w := range next {
		err := Guard(w.do)
		kept := s.keep(next)
		w.done <- err
		if !kept {
			return
		}
	}
}

// keep lets the goroutine at w wait, if there is room.
func (s *Pool) keep(w chan<- asideWork) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.idle) == maxAsides {
		return false
	}
	s.idle = append(s.idle, w)
	return true
}

// Stop ends those that wait.
func (s *Pool) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.idle {
		close(w)
	}
	s.idle, s.over = nil, true
}

// Guard turns a panic into an error without its text, which could be the
// body's.
func Guard(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the redaction engine faulted")
		}
	}()
	return f()
}

package detector

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Spec is a program and the time for each of its answers, as rows and contracts name it.
type Spec struct {
	Command []string      `json:"command"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Text returns the spec as a row or a contract has it, which compares it. It is Shelf's to read.
func (s Spec) Text() string {
	b, _ := json.Marshal(s) // of strings and a number: it cannot fail
	return string(b)
}

const (
	// retryAfter is the time before a program that could not be started is started again.
	retryAfter = 10 * time.Second
	// maxRemembered bounds the texts whose findings are remembered for one program.
	maxRemembered = 16 << 10
)

// Shelf keeps the detectors of rows and contracts running. Those with the same command share one. It may be used by
// many goroutines. Its owner calls Set and Close.
type Shelf struct {
	log *slog.Logger

	mu     sync.Mutex
	bySpec map[string]*sharedFinder // guarded by mu
	byName map[string]*shared       // guarded by mu; by command
	closed bool                     // guarded by mu
}

// NewShelf returns an empty shelf. log, if not nil, gets no text.
func NewShelf(log *slog.Logger) *Shelf {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Shelf{log: log}
}

// shared is a program that rows share.
type shared struct {
	opt Options

	mu     sync.Mutex
	now    *Detector                     // guarded by mu; nil if it could not be started
	failed error                         // guarded by mu; why
	tried  time.Time                     // guarded by mu
	known  map[[32]byte][]redact.Finding // guarded by mu; what it found in texts, by their hash
	closed bool                          // guarded by mu
}

// sharedFinder is a shared program with the time of one spec.
type sharedFinder struct {
	program *shared
	timeout time.Duration
}

// Set makes the programs of specs those that run: it starts new ones and ends those that no spec names any longer. It
// does not wait until they are ready. A program that cannot be started fails each search, and is tried again.
func (s *Shelf) Set(specs []Spec) {
	longest := map[string]time.Duration{}
	for _, spec := range specs {
		key := commandKey(spec.Command)
		longest[key] = max(longest[key], timeoutOf(spec))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	was := s.byName
	s.bySpec, s.byName = map[string]*sharedFinder{}, map[string]*shared{}
	for _, spec := range specs {
		key := commandKey(spec.Command)
		p := s.byName[key]
		if p == nil {
			if p = was[key]; p == nil || p.opt.Timeout != longest[key] {
				p = &shared{opt: Options{Command: spec.Command, Timeout: longest[key], Log: s.log}}
				if _, err := p.getOrStart(time.Now()); err != nil {
					s.log.Warn("redaction detector not started", "err", err)
				}
			}
			s.byName[key] = p
		}
		s.bySpec[spec.Text()] = &sharedFinder{p, timeoutOf(spec)}
	}
	for key, p := range was {
		if s.byName[key] != p {
			p.endProgram()
		}
	}
}

// commandKey returns a key for a command.
func commandKey(command []string) string { return strings.Join(command, "\x00") }

// timeoutOf returns the time for one answer.
func timeoutOf(s Spec) time.Duration {
	if s.Timeout <= 0 {
		return DefaultTimeout
	}
	return s.Timeout
}

// Close ends all programs. Searches fail from then on. It may be called on nil.
func (s *Shelf) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	list := s.byName
	s.bySpec, s.byName, s.closed = nil, nil, true
	s.mu.Unlock()
	for _, p := range list {
		p.endProgram()
	}
}

// Health returns why programs could not be started, nil if all were.
func (s *Shelf) Health() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.byName {
		p.mu.Lock()
		if p.failed != nil {
			list = append(list, p.failed.Error()+": the traffic that it should search is refused")
		}
		p.mu.Unlock()
	}
	slices.Sort(list)
	return list
}

// FinderOf returns the finder of a spec's text, nil for no text. It may be called on nil. One that Set
// does not know fails each search.
func (s *Shelf) FinderOf(spec string) Finder {
	if spec == "" {
		return nil
	}
	if s == nil {
		return failing{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.bySpec[spec]; f != nil {
		return f
	}
	return failing{}
}

// Failing returns a finder that fails each search.
func Failing() Finder { return failing{} }

// failing is the finder of a program that does not run.
type failing struct{}

// Find implements Finder.
func (failing) Find(context.Context, []byte) ([]redact.Finding, error) {
	return nil, wrapFailure(ErrClosed)
}

// Find implements Finder. What was found in a text before is found again, so that a history that is resent has the
// same findings and is not searched twice.
func (f *sharedFinder) Find(ctx context.Context, text []byte) ([]redact.Finding, error) {
	d, err := f.program.getOrStart(time.Now())
	if err != nil {
		return nil, wrapFailure(errors.Join(ErrDown, err))
	}
	key := sha256.Sum256(text)
	f.program.mu.Lock()
	list, ok := f.program.known[key]
	f.program.mu.Unlock()
	if ok {
		return list, nil
	}
	if list, err = d.findWithin(ctx, text, f.timeout); err != nil {
		return nil, err
	}
	f.program.mu.Lock()
	defer f.program.mu.Unlock()
	if f.program.known == nil || len(f.program.known) >= maxRemembered {
		f.program.known = map[[32]byte][]redact.Finding{}
	}
	f.program.known[key] = list
	return list, nil
}

// getOrStart returns the running program. It starts one that could not be started, after a pause.
func (p *shared) getOrStart(now time.Time) (*Detector, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, ErrClosed
	case p.now == nil && (p.tried.IsZero() || now.Sub(p.tried) >= retryAfter):
		p.tried = now
		p.now, p.failed = Start(p.opt)
	}
	return p.now, p.failed
}

func (p *shared) endProgram() {
	p.mu.Lock()
	d := p.now
	p.now, p.closed = nil, true
	p.mu.Unlock()
	d.Close()
}

// IsFailure reports whether err is of a search that failed.
func IsFailure(err error) bool {
	e, ok := errors.AsType[*holdfast.Error](err)
	return ok && e.Rule == failureRule
}

// AtPlace returns a failure of a search with the place that could not be searched, and who named the program.
func AtPlace(err error, place, owner string) error {
	e, ok := errors.AsType[*holdfast.Error](err)
	if !ok || !IsFailure(err) {
		return err
	}
	own := *e
	own.Why, own.Hint = place+": "+e.Why, "nothing was sent or shown; check the program of "+owner
	return &own
}

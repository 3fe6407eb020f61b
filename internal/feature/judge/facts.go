package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// How long a fact may take, and how long its value is kept. LongestFact is what a
// gate has too.
const (
	DefaultFactTime = 2 * time.Second
	LongestFact     = 5 * time.Second
	DefaultKeep     = time.Minute
	LongestKeep     = 24 * time.Hour
)

const (
	// failedKeep is for how long a program that failed is not asked again.
	failedKeep = time.Second
	// unsettled is how old a file's time must be to tell two contents apart:
	// clocks of file systems are coarse.
	unsettled = 2 * time.Second
	// late is how much longer than its time a fact is waited for.
	late = 250 * time.Millisecond
	// atOnce is how many programs of one fact may run at once.
	atOnce = 8
)

// Fact says where the value of one fact comes from: a file, else a program. Zero
// values fetch nothing.
type Fact struct {
	// File is an absolute path, and Read reads a file of at most so many bytes,
	// or refuses who may write it.
	File string
	Read func(path string, most int64) ([]byte, error)
	// Argv is the program and its arguments; Env names the variables of this
	// process that it is given. What it prints is the value.
	Argv, Env []string
	// PerRequest gives the program the request, and keeps nothing.
	PerRequest bool
	// Within bounds one fetch; 0 is DefaultFactTime, at most LongestFact.
	Within time.Duration
	// Keep is how long after it was asked for a program's value is used; 0 keeps
	// none, and only those who ask at the same time share one. A file is read
	// again whenever it changed.
	Keep time.Duration
	// Conforms is nil where any value will do.
	Conforms func(ctx context.Context, value any) error
}

// Facts fetches what rules name as facts.NAME (D3). It is safe for concurrent use.
type Facts struct {
	sources map[string]*source
}

// NewFacts makes the facts of those names.
func NewFacts(all map[string]Fact) *Facts {
	out := &Facts{sources: map[string]*source{}}
	for name, f := range all {
		if f.Within <= 0 {
			f.Within = DefaultFactTime
		}
		f.Within = min(f.Within, LongestFact)
		out.sources[name] = &source{Fact: f, now: time.Now, turns: make(chan struct{}, atOnce)}
	}
	return out
}

// Fetch fetches those facts at once, each within its own time, and by the end of
// ctx; there is one of each name. request makes what a program that hangs on the
// request is given, and is called at most once.
func (f *Facts) Fetch(ctx context.Context, names []string, request func() ([]byte, error)) map[string]constitution.Fetched {
	out := make(map[string]constitution.Fetched, len(names))
	request = sync.OnceValues(request)
	got := make([]constitution.Fetched, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		s := f.sources[name]
		switch {
		case s == nil:
			got[i].Err = errors.New("nobody declares it")
		case len(names) == 1:
			got[i] = s.fetch(ctx, request)
		default:
			wait.Go(func() { got[i] = s.fetch(ctx, request) })
		}
	}
	wait.Wait()
	for i, name := range names {
		out[name] = got[i]
	}
	return out
}

// source is one fact, with what is kept of it.
type source struct {
	Fact
	now   func() time.Time
	turns chan struct{} // of programs that hang on the request

	mu     sync.Mutex
	kept   *kept   // guarded by mu
	flight *flight // guarded by mu
}

// kept is a value, or a failure, that may be used again.
type kept struct {
	got  constitution.Fetched
	at   time.Time // when it was asked for
	info os.FileInfo
}

// flight is one fetch, for all who ask while it lasts.
type flight struct {
	done    chan struct{}
	got     constitution.Fetched // set before done is closed
	waiters int                  // guarded by the source's mu
	cancel  context.CancelFunc
}

func none(format string, args ...any) constitution.Fetched {
	return constitution.Fetched{Err: fmt.Errorf(format, args...)}
}

func (s *source) fetch(ctx context.Context, request func() ([]byte, error)) constitution.Fetched {
	if s.PerRequest {
		return s.ofRequest(ctx, request)
	}
	fl, got, ok := s.join()
	if ok {
		return got
	}
	timer := time.NewTimer(s.Within + late)
	defer timer.Stop()
	select {
	case <-fl.done:
		return fl.got
	case <-ctx.Done():
		s.leave(fl)
		return none("the request did not wait for it")
	case <-timer.C:
		s.leave(fl)
		return none("it took longer than %s", s.Within)
	}
}

// ofRequest runs a program for one request.
func (s *source) ofRequest(ctx context.Context, request func() ([]byte, error)) constitution.Fetched {
	ctx, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return none("its program has too much to do")
	}
	in, err := request()
	if err != nil {
		return none("the request cannot be given to it")
	}
	got := s.program(ctx, in)
	got.PerRequest = true
	return got
}

// join returns what is kept, or the fetch that is under way, which it begins where
// there is none.
func (s *source) join() (*flight, constitution.Fetched, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.File == "" && s.kept != nil && s.kept.fresh(now, s.Keep) {
		return nil, s.kept.got, true
	}
	if s.flight == nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.Within)
		s.flight = &flight{done: make(chan struct{}), cancel: cancel}
		go s.fly(ctx, s.flight, s.kept, now)
	}
	s.flight.waiters++
	return s.flight, constitution.Fetched{}, false
}

// fresh says whether what was kept may be used. Both clocks must say so: the one
// that people set, which may jump, and the other, which stands still while the
// machine sleeps.
func (k *kept) fresh(now time.Time, keep time.Duration) bool {
	if k.got.Err != nil {
		keep = failedKeep
	}
	wall := now.Round(0).Sub(k.at.Round(0))
	return now.Sub(k.at) < keep && 0 <= wall && wall < keep
}

// leave is for one who waits no longer. A program for which nobody waits is
// killed; a file's reader cannot be, so that the next one waits for the same.
func (s *source) leave(fl *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fl.waiters--; fl.waiters > 0 || s.File != "" {
		return
	}
	fl.cancel()
	if s.flight == fl {
		s.flight = nil
	}
}

// fly is one fetch.
func (s *source) fly(ctx context.Context, fl *flight, was *kept, now time.Time) {
	defer fl.cancel()
	next := &kept{at: now}
	if s.File != "" {
		s.file(ctx, was, next)
	} else {
		next.got = s.program(ctx, nil)
	}
	s.mu.Lock()
	if s.flight == fl {
		s.flight, s.kept = nil, next
	}
	s.mu.Unlock()
	fl.got = next.got
	close(fl.done)
}

func (s *source) program(ctx context.Context, in []byte) constitution.Fetched {
	text, err := Command{Argv: s.Argv, Env: s.Env, Within: s.Within}.run(ctx, in, constitution.MaxFact)
	var unfit *holdfast.Error
	switch {
	case errors.As(err, &unfit):
		return none("%s", unfit.Why)
	case err != nil:
		return none("the request did not wait for it")
	}
	return s.value(ctx, text)
}

// file reads the file into next, where it is not what was read before.
func (s *source) file(ctx context.Context, was, next *kept) {
	for range 3 {
		before, err := os.Stat(s.File)
		if err != nil {
			next.got = none("the file cannot be found")
			return
		}
		if was != nil && was.info != nil && same(was.info, before) && was.at.Sub(before.ModTime()) > unsettled {
			*next = *was
			return
		}
		if s.Read == nil || !before.Mode().IsRegular() {
			next.got = none("it is no regular file")
			return
		}
		if before.Size() > constitution.MaxFact {
			next.got = none("the file has more than %d bytes", constitution.MaxFact)
			return
		}
		text, err := s.Read(s.File, constitution.MaxFact)
		if err != nil {
			next.got = none("the file cannot be read: %v", err)
			return
		}
		if after, err := os.Stat(s.File); err != nil || !same(before, after) {
			continue // it was written meanwhile
		}
		next.got, next.info = s.value(ctx, text), before
		return
	}
	next.got = none("the file changes while it is read")
}

// same says whether a file is as it was.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// value reads a value.
func (s *source) value(ctx context.Context, text []byte) constitution.Fetched {
	text = bytes.TrimSpace(text)
	doc, err := payload.ParseLimited(text, constitution.MaxFact, constitution.MaxFactDepth)
	if err != nil {
		return none("it is not JSON of at most %d bytes and %d levels", constitution.MaxFact, constitution.MaxFactDepth)
	}
	if s.Conforms != nil {
		if err := s.Conforms(ctx, doc.Value()); err != nil {
			return none("it does not fit its schema")
		}
	}
	return constitution.Fetched{Value: doc.Value(), Text: bytes.Clone(text)}
}

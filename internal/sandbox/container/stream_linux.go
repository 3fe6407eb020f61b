package container

import (
	"os"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

const (
	// floodBytes is how much output is read and thrown away before a run that
	// goes on writing is ended.
	floodBytes = 64 << 20
	cutMark    = "\n[holdfast: cut here, 1 MB is kept]\n"
)

// stream keeps the first megabyte of what a container writes, and reads on.
type stream struct {
	mu    sync.Mutex
	kept  []byte
	total int64
	flood func() // called once
}

func (s *stream) read(r *os.File, done *sync.WaitGroup) {
	defer done.Done()
	defer r.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if s.keep(buf[:n]) {
			s.flood()
		}
		if err != nil {
			return
		}
	}
}

// keep says whether it has become a flood by this.
func (s *stream) keep(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.total
	s.total += int64(len(b))
	if room := sandbox.MaxOutput - len(s.kept); room > 0 {
		s.kept = append(s.kept, b[:min(len(b), room)]...)
	}
	return before <= floodBytes && s.total > floodBytes
}

// text is what was kept, with a mark where it was cut.
func (s *stream) text() (kept []byte, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total <= sandbox.MaxOutput {
		return s.kept, false
	}
	return append(s.kept, cutMark...), true
}

package process

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// floodBytes is how much output is read and thrown away before a run that goes
// on writing is ended.
const floodBytes = 64 << 20

// cutMark ends an output that was cut.
const cutMark = "\n[holdfast: cut here, 1 MB is kept]\n"

// stream keeps the first megabyte of what a run writes and reads on, so that the
// program does not notice, until it is a flood.
type stream struct {
	kept    []byte
	total   int64
	flooded atomic.Bool
	flood   func()
	from    *os.File
}

// read takes everything until the end of r, and closes it.
func (s *stream) read(r *os.File, wg *sync.WaitGroup) {
	defer wg.Done()
	defer r.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		s.keep(buf[:n])
		if s.total > floodBytes && s.flooded.CompareAndSwap(false, true) {
			s.flood()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.rest(r, buf)
			return
		}
		if err != nil {
			return
		}
	}
}

// quiet ends the reading of a pipe into which nobody writes any more, though it
// is still open: what is in it is read first.
func (s *stream) quiet() { s.from.SetReadDeadline(time.Unix(1, 0)) } // one that has ended is read

// rest takes what is in the pipe now.
func (s *stream) rest(r *os.File, buf []byte) {
	c, err := r.SyscallConn()
	if err != nil {
		return
	}
	c.Control(func(fd uintptr) {
		for {
			n, err := unix.Read(int(fd), buf)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				return
			}
			s.keep(buf[:n])
		}
	})
}

// keep takes what was read.
func (s *stream) keep(b []byte) {
	s.total += int64(len(b))
	if room := sandbox.MaxOutput - len(s.kept); room > 0 {
		s.kept = append(s.kept, b[:min(len(b), room)]...)
	}
}

// text is what was kept, with a mark where it was cut.
func (s *stream) text() []byte {
	if s.total <= sandbox.MaxOutput {
		return s.kept
	}
	return append(s.kept, cutMark...)
}

// cutStreams names those of which only the first megabyte was kept.
func cutStreams(stdout, stderr *stream) (cut []string) {
	if stdout.total > sandbox.MaxOutput {
		cut = append(cut, "stdout")
	}
	if stderr.total > sandbox.MaxOutput {
		cut = append(cut, "stderr")
	}
	return cut
}

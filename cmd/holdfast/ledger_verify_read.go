package main

import (
	"context"
	"io"
)

// untilDone reads from r until ctx ends. What r blocks in then is left to itself,
// because nothing can wake a read from a terminal or a pipe.
type untilDone struct {
	ctx context.Context
	r   io.Reader
	buf [64 << 10]byte
}

func (u *untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	type read struct {
		n   int
		err error
	}
	done := make(chan read, 1)
	into := u.buf[:min(len(b), len(u.buf))]
	go func() {
		n, err := u.r.Read(into)
		done <- read{n, err}
	}()
	select {
	case got := <-done:
		return copy(b, into[:got.n]), got.err
	case <-u.ctx.Done():
		return 0, u.ctx.Err()
	}
}

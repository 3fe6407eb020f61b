package mcp

import (
	"context"
	"math/bits"
	"sync/atomic"
	"time"
)

// FaultCounter counts what peers do wrong. It is safe for concurrent use.
type FaultCounter struct{ n atomic.Uint64 }

// Add counts one fault. It returns the count and reports whether to log it: the first 16
// are logged, then each that doubles the count, so that no peer can fill the log.
func (c *FaultCounter) Add() (n uint64, logged bool) {
	n = c.n.Add(1)
	return n, bits.OnesCount64(n) == 1 || n <= 16
}

// Sleep waits for d, or returns the cause of ctx's end if that comes first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

//go:build !linux

package daemon

import "context"

// releaseMemory waits for the end: how a program's pages are released is known for
// Linux only.
func (d *Daemon) releaseMemory(ctx context.Context) { <-ctx.Done() }

package copies

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// door is a folder's own lock, held. Through it goes, one at a time, whatever
// makes, names, locks or takes away what stands in the folder. Nobody does behind
// it what takes longer than a few system calls.
type door struct {
	dir string
	fd  int
}

// Pauses between looks whether a door is free.
const (
	firstPause = 100 * time.Microsecond
	lastPause  = 20 * time.Millisecond
)

// enter makes the folder where there is none, and returns when its door is free,
// or with ctx.
func enter(ctx context.Context, dir string) (*door, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		d, err := try(dir)
		if d != nil || err != nil {
			return d, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another one makes or removes copies in %s: %w", dir, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// try is enter once: where the door is not free it returns nothing.
func try(dir string) (*door, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	d := &door{dir, fd}
	switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil && same(fd, dir):
		return d, nil
	case err == nil || err == unix.EWOULDBLOCK || err == unix.EINTR:
		d.leave() // and where somebody took the folder away, there will be another
		return nil, nil
	default:
		d.leave()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
}

// leave opens the door for the next, also where a child that is just being
// started has the descriptor too.
func (d *door) leave() {
	unix.Flock(d.fd, unix.LOCK_UN)
	unix.Close(d.fd)
}

// same says whether a descriptor is of what has a name now.
func same(fd int, path string) bool {
	var held, now unix.Stat_t
	return unix.Fstat(fd, &held) == nil && unix.Stat(path, &now) == nil && held.Dev == now.Dev && held.Ino == now.Ino
}

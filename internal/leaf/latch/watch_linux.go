package latch

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Watch returns a channel that receives a value after the latch in the file path was set or lifted, and when changes
// may have been missed. stop ends it. If the system cannot watch, Watch logs it and the channel is nil: then
// read the latch from time to time. The system reports changes of that name alone: the store's files beside it
// are written several times for each crossing, and each write would wake the caller.
func Watch(path string, log *slog.Logger) (changes <-chan struct{}, stop func()) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	ch := make(chan struct{}, 1)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		if _, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|
			unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		log.Warn("a directory cannot be watched, and is looked at now and then", "dir", dir, "err", err)
		return nil, func() {}
	}
	f := os.NewFile(uintptr(fd), "inotify")
	go func() {
		buf := make([]byte, 16<<10)
		for {
			n, err := f.Read(buf)
			if err != nil {
				return
			}
			if !concernsName(buf[:n], name) {
				continue
			}
			select {
			case ch <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return ch, func() { _ = f.Close() }
}

// concernsName reports whether one of the system's events is about a name, about the
// directory itself, or about events that were lost.
func concernsName(events []byte, name string) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		// The length of the name, with its padding, is the last of four words.
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		if end > len(events) {
			return true
		}
		of, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:end], []byte{0})
		if len(of) == 0 || string(of) == name {
			return true
		}
		events = events[end:]
	}
	return false
}

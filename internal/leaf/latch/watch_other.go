//go:build !linux

package latch

import (
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Watch returns a channel that receives a value after something happened to the file path. stop ends it. If the
// system cannot watch, Watch logs it and the channel is nil: then read the latch from time to time.
func Watch(path string, log *slog.Logger) (changes <-chan struct{}, stop func()) {
	name := filepath.Base(path)
	events, stop := watchDir(filepath.Dir(path), log)
	if events == nil {
		return nil, stop
	}
	ch := make(chan struct{}, 1)
	go func() {
		for e := range events {
			if filepath.Base(e.Name) != name {
				continue
			}
			select {
			case ch <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return ch, stop
}

// watchDir watches one directory. Without a watcher the channel is nil.
func watchDir(dir string, log *slog.Logger) (<-chan fsnotify.Event, func()) {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		if err = w.Add(dir); err == nil {
			return w.Events, func() { _ = w.Close() }
		}
		err = errors.Join(err, w.Close())
	}
	log.Warn("the file system does not tell of changes", "dir", dir, "err", err)
	return nil, func() {}
}

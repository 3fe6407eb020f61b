//go:build !linux

package daemon

import (
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watchName says when something happens to that name in a directory.
func watchName(dir, name string, log *slog.Logger) (<-chan struct{}, func()) {
	events, stop := watchDir(dir, log)
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

// watchDir watches one directory; without a watcher the channel stays empty
// and looking by the clock is all there is.
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

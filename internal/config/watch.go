package config

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/lastline"
)

// How a watcher waits. An editor writes a file in several steps, so that a
// change is looked at once it is quiet, or has been noisy for long enough; what
// the system does not report, such as on a network file system, is found by
// looking.
const (
	settle = 200 * time.Millisecond
	noisy  = 2 * time.Second
	look   = 5 * time.Second
)

// Watch reloads the configuration whenever one of its files changes, whole or
// not at all (D49), and gives each new one to apply, until ctx ends. What does
// not load, or is not applied, leaves everything as it was and is logged once,
// not at every look. With no configuration file there is nothing to watch.
// apply is called by one goroutine at a time.
func Watch(ctx context.Context, loaded *Loaded, apply func(*Loaded) error, log *slog.Logger) error {
	return watchFiles(ctx, loaded, apply, log, look)
}

func watchFiles(ctx context.Context, loaded *Loaded, apply func(*Loaded) error, log *slog.Logger, every time.Duration) error {
	if loaded.Path == "" {
		<-ctx.Done()
		return nil
	}
	w := &watcher{now: loaded, apply: apply, log: log, seen: map[string]bool{}}
	events, errs := w.listen()
	if w.notify != nil {
		defer w.notify.Close()
	}
	w.mark = w.fingerprint()
	poll := time.NewTicker(every)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	var first time.Time // of the notices not yet looked at
	stir := func() {
		if first.IsZero() {
			first = time.Now()
		}
		quiet.Reset(min(settle, max(0, noisy-time.Since(first))))
	}
	stir() // for what has changed since loaded was read
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			stir()
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			log.Warn("watching the configuration", "err", err)
			stir()
		case <-poll.C:
			// What is broken may be mended by a file that is not known yet.
			if w.broken || w.fingerprint() != w.mark {
				stir()
			}
		case <-quiet.C:
			first = time.Time{}
			w.reload()
		}
	}
}

// watcher is what one goroutine knows; nothing else touches it.
type watcher struct {
	now    *Loaded
	apply  func(*Loaded) error
	log    *slog.Logger
	notify *fsnotify.Watcher
	seen   map[string]bool // directories that are watched
	mark   string          // what the files looked like when last loaded
	told   lastline.Line   // the mistake that was logged last
	broken bool            // the files do not load as they are
}

// listen starts the system's notices; without them there is still the looking.
func (w *watcher) listen() (chan fsnotify.Event, chan error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Warn("the system reports no changes of files; looking every "+look.String(), "err", err)
		return nil, nil
	}
	w.notify = n
	w.add()
	return n.Events, n.Errors
}

// add watches the directories of all files, and of what links mean: a file
// that is replaced is another file, its directory stays.
func (w *watcher) add() {
	if w.notify == nil {
		return
	}
	for _, f := range w.now.Files {
		dirs := []string{filepath.Dir(f)}
		if real, err := filepath.EvalSymlinks(f); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
		for _, d := range dirs {
			if w.seen[d] {
				continue
			}
			if err := w.notify.Add(d); err != nil {
				w.log.Warn("watching a directory", "dir", d, "err", err)
				continue
			}
			w.seen[d] = true
		}
	}
}

// fingerprint tells states of the files apart without reading them.
func (w *watcher) fingerprint() string {
	var b strings.Builder
	for _, f := range w.now.Files {
		info, err := os.Stat(f)
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", f, err)
			continue
		}
		var ino uint64
		if st, ok := guard.StatOf(info); ok {
			ino = uint64(st.Ino)
		}
		fmt.Fprintln(&b, f, info.Size(), info.ModTime().UnixNano(), info.Mode(), ino)
	}
	return b.String()
}

func (w *watcher) reload() {
	w.mark = w.fingerprint()
	next, err := Load(w.now.Path, w.now.WorkTrees...)
	w.broken = err != nil
	if err != nil {
		w.tell("the configuration is not reloaded; the one before stays in force", err)
		return
	}
	if next.Hash == w.now.Hash {
		w.told = lastline.Line{}
		return
	}
	if err := w.apply(next); err != nil {
		w.tell("the new configuration is not applied; the one before stays in force", err)
		return
	}
	w.log.Info("configuration reloaded", "policy", next.Hash, "was", w.now.Hash)
	w.now, w.told = next, lastline.Line{}
	w.mark = w.fingerprint()
	w.add()
}

func (w *watcher) tell(what string, err error) {
	if w.told.Replace(what, err) {
		w.log.Error(what, "err", err)
	}
}

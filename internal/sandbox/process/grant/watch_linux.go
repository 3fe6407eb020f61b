package grant

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// mostMade is how often a run may make what git would learn from what to execute,
// and have it taken away, before it is ended: the host's git may look in between.
const mostMade = 8

// Watcher takes away what a run makes at the places that are absent, as it makes
// them: an editor's git looks into the tree while the run goes on.
type Watcher struct {
	absent Absent
	events *os.File // inotify
	over   sync.WaitGroup

	mu    sync.Mutex
	said  []string
	times int
}

// Watch begins to watch; end is called where the run made too much. A nil watcher
// watches nothing: there is nothing to watch.
func (a Absent) Watch(end func()) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch the repository: %w", err)
	}
	w := &Watcher{absent: a, events: os.NewFile(uintptr(fd), "inotify")}
	for _, p := range a {
		if err := add(fd, p); err != nil {
			w.events.Close()
			return nil, err
		}
	}
	w.over.Go(func() { w.look(end) })
	return w, nil
}

// add lets an inotify descriptor watch the folder of a place, of the run's own tree
// wherever that is.
func add(inotify int, p absence) error {
	dir, err := p.tree.dir.Open(filepath.Dir(p.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is held that nobody makes it, or .git is named at the end
	}
	if err == nil {
		defer dir.Close()
		_, err = unix.InotifyAddWatch(inotify, fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR)
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", filepath.Join(p.tree.Path, filepath.Dir(p.name)), err)
	}
	return nil
}

// look reads events until the watcher is closed. What they say is not read: every
// place is looked at.
func (w *Watcher) look(end func()) {
	buf := make([]byte, 64<<10)
	for {
		if n, err := w.events.Read(buf); n <= 0 || err != nil {
			return
		}
		said := w.absent.clearSealed()
		w.mu.Lock()
		w.times += len(said)
		ends := w.times > mostMade
		if len(w.said) < 4*mostMade {
			w.said = append(w.said, said...)
		}
		w.mu.Unlock()
		if ends {
			end()
		}
	}
}

// Close ends the watch, and returns what was said.
func (w *Watcher) Close() []string {
	w.events.Close()
	w.over.Wait()
	if w.times > mostMade {
		w.said = append(w.said, "the run was ended, because it went on")
	}
	return w.said
}

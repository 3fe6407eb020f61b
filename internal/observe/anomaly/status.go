package anomaly

import "github.com/holdfast-dev/holdfast/internal/observe/story"

// Waiting returns the number of findings that wait for their answer, and of those that were dropped at capacity.
func (w *Watcher) Waiting() (waiting int, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.order), w.lost
}

// Holds returns the conditions that hold, the worst first.
func (w *Watcher) Holds() []story.Anomaly {
	out := []story.Anomaly{}
	for _, s := range w.Watch.Hold() {
		out = append(out, story.Holds(s))
	}
	return out
}

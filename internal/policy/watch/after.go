package watch

import (
	"fmt"
	"time"
)

// Committed judges how many files a commit changed that keeps what one crossing of
// an agent's did, notes it for the agent's Rates, and returns what is to be done
// about it.
func (w *Watch) Committed(tenant, agent, crossing string, files int, at time.Time) []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, now := w.agent(tenant, agent), w.clock(at)
	if a.now != nil {
		a.now.committed(now, files)
	}
	if size := beyond(float64(files), float64(w.limits.FilesPerCommit)); size > 0 {
		w.holds(a, owner{tenant: tenant, agent: agent, crossing: crossing}, atFilesPerCommit, size, now, func() string {
			return fmt.Sprintf("%d files changed in one commit, where %d is the limit", files, w.limits.FilesPerCommit)
		})
	}
	return w.take()
}

// Escaped tells of an attempt to leave a sandbox that came to light after its
// crossing had ended, and returns what is to be done about it.
func (w *Watch) Escaped(tenant, agent, crossing string, at time.Time) []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.escaped(w.agent(tenant, agent), owner{tenant: tenant, agent: agent, crossing: crossing}, w.clock(at))
	return w.take()
}

func (w *Watch) escaped(a *agent, o owner, at int64) {
	w.holds(a, o, atEscape, 1, at, words("code tried to leave its sandbox"))
}

package daemon

import "github.com/holdfast-dev/holdfast/internal/policy/watch"

// watched is what agents are watched by; nil while they are not.
func (d *Daemon) watched() *watch.Watch {
	if d.watching == nil {
		return nil
	}
	return d.watching.watch
}

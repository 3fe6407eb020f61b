package heir

import "sync"

// Line is an heir, and who comes after one that was ended. The zero value has
// none yet. It is safe for use by many at once.
type Line struct {
	mu     sync.Mutex
	heir   *Heir
	closed bool
}

// Ensure starts an heir where none waits: see Start.
func (l *Line) Ensure(name string, will any, keep ...uintptr) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.heir != nil && !l.heir.Ended() {
		return nil
	}
	if l.heir != nil {
		l.heir.Close()
	}
	l.heir, err = Start(name, will, keep...)
	return err
}

// Hold is Heir.Hold, where there is one.
func (l *Line) Hold(pidfd int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heir == nil {
		return nil
	}
	return l.heir.Hold(pidfd)
}

// Close ends the heir of those who left nothing, for good.
func (l *Line) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.heir != nil {
		l.heir.Close()
		l.heir = nil
	}
}

// Package memory keeps secrets in pages that reach no disk.
package memory

import (
	"sync"
	"unsafe"

	"github.com/holdfast-dev/holdfast"
)

// Memory keeps secrets outside of Go's own memory: in pages that are never
// written to a swap and, on Linux, are left out of core dumps, where the
// system allows; Trouble says where it does not. What is put in stays until
// the process ends, because a Secret may be read as long. The zero value is
// ready, and many goroutines may use it.
type Memory struct {
	// Ordinary says that the memory is Go's own, which is freed with the values. It is set before the first use.
	Ordinary bool

	mu      sync.Mutex
	chunk   []byte // guarded by mu; what of the newest pages is not in use
	size    int    // guarded by mu; of the newest pages
	trouble string // guarded by mu; the first thing that was refused
}

// The pages that are asked for at once, in bytes: twice as many each time, as
// there is little that may be locked.
const (
	leastChunk = 16 << 10
	mostChunk  = 1 << 20
)

// Trouble says why what it keeps could reach a disk, or "".
func (m *Memory) Trouble() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble
}

// Buffer returns n zero bytes of it. The caller clears them after use.
func (m *Memory) Buffer(n int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > len(m.chunk) {
		m.more(n)
	}
	b := m.chunk[:n:n]
	m.chunk = m.chunk[n:]
	return b
}

// more asks for pages. The caller holds the lock.
func (m *Memory) more(n int) {
	m.size = min(max(2*m.size, leastChunk), mostChunk)
	size := (max(n, m.size) + leastChunk - 1) &^ (leastChunk - 1)
	if m.Ordinary {
		m.chunk = make([]byte, size)
		return
	}
	pages, why := lockedPages(size)
	if pages == nil {
		pages = make([]byte, size)
	}
	if m.trouble == "" {
		m.trouble = why
	}
	m.chunk = pages
}

// Keep copies b.
func (m *Memory) Keep(b []byte) []byte {
	out := m.Buffer(len(b))
	copy(out, b)
	return out
}

// Secret copies b into it and clears b.
func (m *Memory) Secret(b []byte) holdfast.Secret {
	defer clear(b)
	if len(b) == 0 {
		return holdfast.Secret{}
	}
	own := m.Keep(b)
	return holdfast.NewSecret(unsafe.String(&own[0], len(own)))
}

// Bytes returns a secret's bytes without a copy. The caller must not change
// them.
func Bytes(s holdfast.Secret) []byte {
	text := s.Reveal()
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

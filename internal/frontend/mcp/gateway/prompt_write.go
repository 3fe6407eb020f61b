package gateway

import (
	"io"
	"syscall"
)

// Prompt is what a Conn, or the stream behind Lines, may also be: a pipe or a
// socket that no write to its descriptor waits for.
type Prompt interface {
	// Prompt gives the descriptor that Write writes to.
	Prompt() (syscall.RawConn, error)
}

// prompt is a peer that takes at once what it has room for.
type prompt struct {
	io.Writer
	raw syscall.RawConn
}

// promptly returns a peer as a prompt, and nil where it is none.
func promptly(peer io.Writer) *prompt {
	if p, ok := peer.(Prompt); ok {
		if raw, err := p.Prompt(); err == nil {
			return &prompt{peer, raw}
		}
	}
	return nil
}

// promptClient is a client of lines as a prompt, nil where it is none.
func promptClient(c Client) *prompt {
	if s, ok := c.(*stream); ok {
		return promptly(s.rw)
	}
	return nil
}

// write writes what the peer takes now, and returns how many bytes of b that
// was. Why it was not more shows when the rest is written.
func (p *prompt) write(b []byte) int {
	n := 0
	err := p.raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), b)
		return true
	})
	if err != nil {
		return 0
	}
	return max(n, 0)
}

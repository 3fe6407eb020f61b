package server

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Bounds of what a server may put into the log.
const (
	maxLogLine  = 8 << 10 // bytes; the rest of a line is dropped
	maxLogBurst = 100     // lines in any second that starts with a line
)

// logLines writes each line of r to log until r ends, as mask returns it. It
// keeps one line in memory, and always reads on, so that a server is never
// blocked by its log.
func logLines(r io.Reader, log *slog.Logger, mask func([]byte) []byte, last *lastLine) {
	br := bufio.NewReaderSize(r, maxLogLine)
	var since time.Time
	lines, dropped := 0, 0
	for {
		line, cut, err := readLine(br)
		if now := time.Now(); now.Sub(since) >= time.Second {
			if dropped > 0 {
				log.Warn("mcp server's standard error was too fast", "lines_dropped", dropped)
			}
			since, lines, dropped = now, 0, 0
		}
		switch {
		case line == "":
		case lines >= maxLogBurst:
			dropped++
			last.raw(line, cut, mask)
		default:
			lines++
			text := masked(line, cut, mask)
			last.set(text)
			log.Info("mcp server says", "line", text, "cut", cut)
		}
		if err != nil {
			if dropped > 0 {
				log.Warn("mcp server's standard error was too fast", "lines_dropped", dropped)
			}
			return
		}
	}
}

// maxLastLine bounds what is kept of a server's last line, in bytes.
const maxLastLine = 200

// lastLine keeps the last line of standard error that had text in it, masked.
// A server that wrote faster than the log takes it has its last line masked
// when it is asked for.
type lastLine struct {
	mu   sync.Mutex
	text string
	late func() string
}

func (l *lastLine) set(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.late = text, nil
}

func (l *lastLine) raw(line string, cut bool, mask func([]byte) []byte) {
	if strings.TrimSpace(line) == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = func() string { return masked(line, cut, mask) }
}

func (l *lastLine) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late != nil {
		l.text, l.late = l.late(), nil
	}
	text := strings.ToValidUTF8(strings.TrimSpace(l.text), "?")
	if len(text) > maxLastLine {
		text = strings.ToValidUTF8(text[:maxLastLine], "") + "..."
	}
	return text
}

// masked returns what the log may hold of a line. The last word of a line that
// was cut goes unseen: the half of a secret is known to no mask.
func masked(line string, cut bool, mask func([]byte) []byte) string {
	if mask == nil {
		return line
	}
	if cut {
		line = line[:strings.LastIndexAny(line, " \t")+1]
	}
	return string(mask([]byte(line)))
}

// readLine returns one line without its end, cut at the reader's size.
func readLine(br *bufio.Reader) (line string, cut bool, err error) {
	part, err := br.ReadSlice('\n')
	line = string(trimEnd(part))
	for errors.Is(err, bufio.ErrBufferFull) {
		cut = true
		_, err = br.ReadSlice('\n')
	}
	return line, cut, err
}

func trimEnd(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

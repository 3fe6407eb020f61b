package server

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
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
func logLines(r io.Reader, log *slog.Logger, mask func([]byte) []byte) {
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
		default:
			lines++
			log.Info("mcp server says", "line", masked(line, cut, mask), "cut", cut)
		}
		if err != nil {
			if dropped > 0 {
				log.Warn("mcp server's standard error was too fast", "lines_dropped", dropped)
			}
			return
		}
	}
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

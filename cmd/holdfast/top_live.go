package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"golang.org/x/term"
)

// topEvery is how often a terminal is drawn anew.
const topEvery = time.Second

// What a terminal is told: a screen of its own without a cursor, on which no line
// goes on in the next; and what was before.
const (
	topOpen  = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	topClose = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// topLive shows on the terminal what goes on, beginning with n, until q, the end of
// the terminal, or a signal. A daemon that goes is said, and asked for again.
func (a *app) topLive(p daemon.Paths, n *api.Now, tenant string) error {
	ctx, quit := context.WithCancel(a.ctx)
	defer quit()
	whole := a.ctx
	a.ctx = ctx
	defer func() { a.ctx = whole }()
	if f, ok := a.in.(*os.File); ok && isTerminal(f) {
		was, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(int(f.Fd()), was) }()
		go awaitQuit(f, quit)
	}
	if _, err := io.WriteString(a.out, topOpen); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(a.out, topClose) }()
	var lines []string
	for {
		l := a.look()
		if n != nil {
			lines = topLines(n, l, rowsOf(a.out)-1)
		}
		if _, err := io.WriteString(a.out, drawn(lines, l)); err != nil {
			return err
		}
		a.hangUp() // who only watches does not keep a lingering daemon
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(topEvery):
		}
		var err error
		if n, err = a.askNow(p, tenant); err != nil {
			lines = []string{l.bold("NO ANSWER"), clipped("  "+clean(err.Error()), l.columns), "  asked again each second"}
		}
	}
}

// drawn is what draws lines on a terminal from its first row on, and the keys
// below.
func drawn(lines []string, l look) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\r\n")
	}
	b.WriteString(l.dim("q ends") + "\x1b[K\x1b[J")
	return b.String()
}

// awaitQuit reads keys until one ends the show, or there are no more.
func awaitQuit(keys io.Reader, quit func()) {
	defer quit()
	key := make([]byte, 1)
	for {
		if n, err := keys.Read(key); err != nil || n == 1 && strings.ContainsRune("qQ\x03\x04", rune(key[0])) {
			return
		}
	}
}

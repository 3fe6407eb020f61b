package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// said is what was written on the glass so far.
func (g *glass) said() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen.String()
}

// On a terminal top shows what comes as it comes, says when the daemon is gone, and
// ends with q, the terminal as it was.
func TestTop_onATerminal(t *testing.T) {
	t.Parallel()
	h := &hosted{site: newSite(t, "version: 1\nlisten: {pages: none}\n")}
	daemon := h.start("up", "up", "--no-operator")
	h.after("up", "listening")
	h.must("step", "early", "look")
	g := newGlass(t)
	g.size(t, 24, 80)
	before := modes(t, g.slave)
	cmd := h.command("top")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = g.slave, g.slave, g.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	h.startAs("top", cmd)
	seen := func(words string) func() bool {
		return func() bool { return strings.Contains(g.said(), words) }
	}
	h.soon("the first picture", seen("early"))
	h.must("step", "newcomer", "look")
	h.soon("an agent that comes later", seen("newcomer"))
	if now := modes(t, g.slave); now.Lflag&(unix.ICANON|unix.ECHO) != 0 {
		t.Error("keys are read by the line, or shown")
	}
	h.soon("that it is connected only while it asks", func() bool {
		return strings.Contains(h.must("status", "--json"), `"clients": 1,`)
	})
	h.must("agent", "pause", "newcomer", "enough")
	h.soon("its pause", seen("1 is paused"))
	h.stop(daemon)
	h.soon("that nobody answers", seen("NO ANSWER"))
	if _, err := g.master.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("q does not end it")
	}
	if after := modes(t, g.slave); after != before {
		t.Errorf("the terminal was %+v and is %+v", before, after)
	}
	h.soon("the screen that was before", func() bool { return strings.HasSuffix(g.said(), topClose) })
}

// modes are a terminal's.
func modes(t *testing.T, f *os.File) (m unix.Termios) {
	t.Helper()
	control(t, f, func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			m = *got
		}
		return err
	})
	return m
}

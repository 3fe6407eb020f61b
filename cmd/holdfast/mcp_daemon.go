package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// startTime is how long a daemon that was started may take to answer.
const startTime = 10 * time.Second

// daemon returns a client of the daemon and how it is, starting one where nobody
// listens.
func (a *app) daemon(p daemon.Paths, notify string) (*api.Client, *api.Status, error) {
	c, s, err := a.dial(a.ctx, p)
	if err == nil {
		return c, s, nil
	}
	if !errors.Is(err, api.ErrNobody) {
		return nil, nil, a.silent(p, err)
	}
	ended, from, err := a.startDaemon(notify)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, startTime)
	defer cancel()
	for {
		c, s, err := a.dial(ctx, p)
		if err == nil {
			return c, s, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, a.didNotStart(p, from, "it did not answer within "+startTime.String())
		case how := <-ended:
			// Another client's daemon may have been faster.
			if c, s, err := a.dial(ctx, p); err == nil {
				return c, s, nil
			}
			if holder := daemon.Process(p); holder.PID > 0 && ctx.Err() == nil {
				ended = nil
				continue
			}
			return nil, nil, a.didNotStart(p, from, how)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startDaemon starts `holdfast up --linger` in a session of its own, its
// output in the state's log from the offset that is returned on.
func (a *app) startDaemon(notify string) (<-chan string, int64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	log, err := a.openLog()
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, 0, err
	}
	args := []string{"up", "--linger", "--state", a.touched}
	if a.config != "" {
		args = append(args, "--config", a.config)
	}
	if notify != "" {
		args = append(args, "--notify", notify)
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	ended := make(chan string, 1)
	go func() {
		_ = cmd.Wait()
		ended <- cmd.ProcessState.String()
	}()
	return ended, info.Size(), nil
}

// didNotStart is the error with what the daemon itself said last.
func (a *app) didNotStart(p daemon.Paths, from int64, how string) error {
	said, hint := "", "look into "+p.Log+", or try `"+a.forState("holdfast up")+"`"
	if f, err := os.Open(p.Log); err == nil {
		defer f.Close()
		b, _ := io.ReadAll(io.NewSectionReader(f, from, 64<<10))
		for line := range bytes.Lines(b) {
			text := strings.TrimSpace(string(line))
			if why, ok := strings.CutPrefix(text, "holdfast: "); ok {
				said += "\n" + why
			}
			if h, ok := strings.CutPrefix(text, "hint: "); ok {
				hint = h
			}
		}
	}
	if said == "" {
		said = " " + how
	}
	return fail(hint, "the daemon did not start:%s", said)
}

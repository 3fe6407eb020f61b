package main

import (
	"context"
	"encoding/json"
	"errors"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
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
	started, err := a.startDaemon(notify)
	if err != nil {
		return nil, nil, err
	}
	defer started.heard.Close()
	ended := started.ended
	ctx, cancel := context.WithTimeout(a.ctx, startTime)
	defer cancel()
	for {
		c, s, err := a.dial(ctx, p)
		if err == nil {
			return c, s, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, a.didNotStart(p, nil, "it did not answer within "+startTime.String())
		case how := <-ended:
			// Another client's daemon may have been faster.
			if c, s, err := a.dial(ctx, p); err == nil {
				return c, s, nil
			}
			if holder := statedir.Process(p); holder.PID > 0 && ctx.Err() == nil {
				ended = nil
				continue
			}
			return nil, nil, a.didNotStart(p, started, how)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startDaemon starts `holdfast up --linger` in a session of its own, its
// output in the state's log.
func (a *app) startDaemon(notify string) (*starting, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := a.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"up", "--linger", "--state", a.touched}
	if a.config != "" {
		args = append(args, "--config", a.config)
	}
	if notify != "" {
		args = append(args, "--notify", notify)
	}
	heard, told, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer told.Close()
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{told}
	cmd.Env = append(os.Environ(), starterVariable+"="+strconv.Itoa(starterFD))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, heard.Close())
	}
	s := &starting{ended: make(chan string, 1), heard: heard}
	go func() {
		_ = cmd.Wait()
		s.ended <- cmd.ProcessState.String()
	}()
	return s, nil
}

// starting is a daemon that was started and may not answer yet.
type starting struct {
	ended chan string // how its process ended
	heard *os.File    // where it tells why it does not start, once it has ended
}

// A daemon that another command started finds in starterVariable the descriptor, starterFD,
// on which it tells that command why it does not start.
const (
	starterVariable = "HOLDFAST_STARTER"
	starterFD       = 3
)

// startFailure is what it tells.
type startFailure struct {
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
}

// takeStarter returns where the command hears that started this daemon, or nil if none did.
// No process that the daemon starts inherits it.
func takeStarter() *os.File {
	if os.Getenv(starterVariable) != strconv.Itoa(starterFD) {
		return nil
	}
	os.Unsetenv(starterVariable)
	syscall.CloseOnExec(starterFD)
	return os.NewFile(starterFD, "starter")
}

// tellStarter tells why the daemon ends, unless err is nil.
func tellStarter(to *os.File, err error) {
	if to == nil {
		return
	}
	defer to.Close()
	if err == nil {
		return
	}
	f := startFailure{Why: err.Error()}
	if e, ok := errors.AsType[*holdfast.Error](err); ok {
		f.Why, f.Hint = textWithoutKind(err, e), e.Hint
	}
	_ = json.NewEncoder(to).Encode(f) // a starter that is gone needs no answer
}

// didNotStart is the error with what the daemon itself told, if its process has ended.
func (a *app) didNotStart(p daemon.Paths, s *starting, how string) error {
	f := startFailure{Hint: "look into " + p.Log + ", or try `" + a.forState("holdfast up") + "`"}
	if s == nil || json.NewDecoder(io.LimitReader(s.heard, 64<<10)).Decode(&f) != nil || f.Why == "" {
		f.Why = " " + how
	} else {
		f.Why = "\n" + f.Why
	}
	return fail(f.Hint, "the daemon did not start:%s", f.Why)
}

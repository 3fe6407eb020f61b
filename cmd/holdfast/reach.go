package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"io"
	"log/slog"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
)

// patience is how long a command waits for an owner that holds the lock and
// does not listen yet (D48).
const patience = 2 * time.Second

// dial returns the command's client of the owner that listens on the socket, and
// how the owner is. All calls of the command share the client and so one connection,
// which keeps a lingering daemon until hangUp.
func (a *app) dial(ctx context.Context, p daemon.Paths) (*api.Client, *api.Status, error) {
	if a.client == nil {
		a.client = api.NewClient(p.Sock)
	}
	s, err := a.client.Probe(ctx)
	if err == nil && s.Ending {
		a.hangUp()
		err = api.ErrNobody
	}
	return a.client, s, err
}

// hangUp ends the connection to the owner.
func (a *app) hangUp() {
	if a.client != nil {
		a.client.Close()
	}
}

// reach calls do with a client of the runtime: of the owner that listens on
// the socket, or, where nobody does, of this very process, which then owns the
// state until do returns (D48).
func (a *app) reach(do func(c *api.Client, s *api.Status) error) error {
	p, err := a.paths()
	if err != nil {
		return err
	}
	for start := time.Now(); ; {
		c, s, err := a.dial(a.ctx, p)
		if err == nil {
			return cutOff(do(c, s))
		}
		if !errors.Is(err, api.ErrNobody) {
			return a.silent(p, err)
		}
		err = a.own(do)
		if !errors.Is(err, daemon.ErrOwned) || time.Since(start) > patience || a.ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// cutOff says of a daemon that ended in the middle of its answer what that means.
func cutOff(err error) error {
	asked := (*url.Error)(nil)
	if errors.As(err, &asked) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err,
		syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		return fail("what it had begun is carried to its end, or told of, when it starts again: see `holdfast status` and `holdfast ledger tail --events`",
			"the daemon ended before it answered: %v", asked.Err)
	}
	return err
}

// act is reach for what agents do, which HOLDFAST_ENABLED of this very process
// stops even where the owner runs without it.
func (a *app) act(do func(c *api.Client, s *api.Status) error) error {
	if err := a.enabled(); err != nil {
		return err
	}
	return a.reach(do)
}

// enabled is a HaltedError where HOLDFAST_ENABLED here is not a yes (D35).
func (a *app) enabled() error {
	value, set := a.lookup("HOLDFAST_ENABLED")
	if latch.Enabled(value, set) {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindHalted,
		Why:  fmt.Sprintf("everything is halted here: HOLDFAST_ENABLED is %q", value),
		Hint: "unset it, or set it to true, 1, yes or on"}
}

// silent names the process that holds the lock and does not answer.
func (a *app) silent(p daemon.Paths, err error) error {
	if holdfast.KindOf(err) != holdfast.KindTimeout {
		return err
	}
	h := statedir.Process(p)
	return &holdfast.Error{Kind: holdfast.KindTimeout, Err: err,
		Why:  fmt.Sprintf("the owner of the state, %s, does not answer", h),
		Hint: "it may be stopped or busy: look at it, then continue it or end it; `holdfast halt` works all the same"}
}

// own makes this process the owner for the time of do.
func (a *app) own(do func(c *api.Client, s *api.Status) error) (err error) {
	log, closeLog := a.ownLog()
	defer closeLog()
	d, err := a.open(log, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := d.Status(a.ctx)
	if err != nil {
		return err
	}
	err = d.Attend(func() error { return do(d.API(), s) })
	d.RunHaltHooks(a.ctx) // of a halt that no daemon saw; the log has their results
	return err
}

// ownLog is the log of a command that is the owner itself: the file that the
// daemon's log would be in. People are told by the command's own answer.
func (a *app) ownLog() (*slog.Logger, func()) {
	f, err := a.openLog()
	if err != nil {
		return slog.New(slog.DiscardHandler), func() {}
	}
	return logger(f, false), func() { _ = f.Close() }
}

// open becomes the owner of the state.
func (a *app) open(log *slog.Logger, notify string) (*daemon.Daemon, error) {
	dir, err := daemon.FindState(a.state, a.lookup)
	if err != nil {
		return nil, err
	}
	config, err := config.FindPath(a.config, a.lookup)
	if err != nil {
		return nil, err
	}
	enabled, set := a.lookup("HOLDFAST_ENABLED")
	return daemon.Open(a.ctx, daemon.Options{State: dir, Config: config, Version: version(), Enabled: enabled,
		EnabledSet: set,
		Log:        log, Notify: notify})
}

// errNoState says that there is nothing to read yet.
var errNoState = errors.New("no state")

// read calls do with the store open for reading, beside whoever owns it. do
// keeps each view short.
func (a *app) read(do func(p daemon.Paths, s kernel.Store) error) (err error) {
	p, err := a.paths()
	if err != nil {
		return err
	}
	if err := statedir.StoreGone(p); err != nil {
		return err
	}
	if _, err := os.Lstat(p.DB); errors.Is(err, os.ErrNotExist) {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no ledger in " + p.Dir + " yet",
			Hint: "`holdfast up` or any command that acts makes it, or name another --state", Err: errNoState}
	}
	s, err := sqlite.Open(a.ctx, sqlite.Options{Path: p.DB, ReadOnly: true, Tables: feature.Tables()})
	if errors.Is(err, sqlite.ErrOlder) {
		return &holdfast.Error{Kind: holdfast.KindInternal,
			Why: "the state is of an older Holdfast, and is not migrated yet",
			Err: err, Hint: "start `holdfast up` once, which migrates it; to keep what the older one can read, copy the state before"}
	}
	if err != nil {
		return &holdfast.Error{Kind: holdfast.KindInternal, Why: fmt.Sprintf("the state cannot be read: %v", err),
			Err:  err,
			Hint: "keep the files as they are; a backup can stand in another --state"}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(p, s)
}

// view is one short transaction.
func (a *app) view(s kernel.Store, do func(kernel.Tx) error) error {
	ctx, cancel := context.WithTimeout(a.ctx, 30*time.Second)
	defer cancel()
	return s.View(ctx, do)
}

package main

import (
	"errors"
	"fmt"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

func upCommand() command {
	return command{name: "up", about: "run the daemon", run: up, help: `
Run the daemon: the one owner of the state, which every other command then
speaks to. It prints a link that signs one browser in to its pages, once, within
ten minutes; holdfast review open prints another. It ends on Ctrl-C or SIGTERM.
The first time, on a terminal, it asks for a passphrase and makes the operator
key, without which nobody can approve or resume.

    holdfast up [flags]

    --linger                 end when the last client has gone, as the daemon
                             does that another command started
    --notify CMD             a shell command that is run for everything that
                             people should hear of, with JSON on its input,
                             and again while it fails
    --log-json               log as JSON
    --no-operator            make no operator key
    --credential-file FILE   a file of yours (0600) whose first line is the
                             passphrase of the operator key to make

    $ holdfast up --notify 'notify-send Holdfast "$(jq -r .why)"'
`}
}

func up(a *app, args []string) error {
	starter := takeStarter()
	err := a.runDaemon(args)
	tellStarter(starter, err)
	return err
}

func (a *app) runDaemon(args []string) error {
	fs := a.flags("up")
	linger := fs.Bool("linger", false, "")
	notify := fs.String("notify", "", "")
	logJSON := fs.Bool("log-json", false, "")
	noOperator := fs.Bool("no-operator", false, "")
	credential := fs.String("credential-file", "", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if _, err := a.paths(); err != nil {
		return err
	}
	logTo, closeLog := a.err, func() error { return nil }
	if *linger {
		logTo, closeLog = a.alsoToFile()
	}
	d, err := a.openPatiently(logger(logTo, *logJSON), *notify)
	if err != nil {
		return errors.Join(err, closeLog())
	}
	if !*noOperator && !*linger {
		if err := a.firstOperator(d.Paths, *credential); err != nil {
			return errors.Join(err, d.Close(), closeLog())
		}
	}
	err = d.Serve(a.ctx, daemon.Serving{Linger: *linger, Ready: func(pages string) {
		fmt.Fprintf(a.out, "listening on %s%s\n", d.Paths.Sock, prefix(" and ", pages))
		// The log of a daemon that lingers is read by others than a person.
		if link, err := d.PageLink(""); err == nil && !*linger {
			fmt.Fprintf(a.out, "open %s\n", link)
		}
	}})
	return errors.Join(err, d.Close(), closeLog())
}

// openPatiently becomes the owner; a command that owns the state for a moment
// is waited for, a daemon that answers is not.
func (a *app) openPatiently(log *slog.Logger, notify string) (*daemon.Daemon, error) {
	for start := time.Now(); ; {
		d, err := a.open(log, notify)
		if !errors.Is(err, daemon.ErrOwned) || time.Since(start) > patience || a.ctx.Err() != nil {
			return d, err
		}
		if _, _, dialled := a.dial(a.ctx, daemon.PathsIn(a.touched)); !errors.Is(dialled, api.ErrNobody) {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func logger(w io.Writer, asJSON bool) *slog.Logger {
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// alsoToFile is standard error and the log in the state directory, once where
// they are the same file.
func (a *app) alsoToFile() (io.Writer, func() error) {
	f, err := a.openLog()
	if err != nil {
		a.say("the log file cannot be written: %v", err)
		return a.err, func() error { return nil }
	}
	if e, ok := a.err.(*os.File); ok {
		x, err1 := e.Stat()
		y, err2 := f.Stat()
		if err1 == nil && err2 == nil && os.SameFile(x, y) {
			return f, f.Close
		}
	}
	return io.MultiWriter(a.err, f), f.Close
}

// openLog opens the log in the state directory for appending. What stands in
// its place must be a plain file of this user: a link would have the daemon
// write wherever it leads, a pipe would have it wait.
func (a *app) openLog() (*os.File, error) {
	p, err := a.paths()
	if err != nil {
		return nil, err
	}
	if p, err = statedir.OpenState(p.Dir); err != nil {
		return nil, err
	}
	return ownLog(p.Log)
}

func ownLog(path string) (*os.File, error) {
	wrong := func(why string) error {
		return &holdfast.Error{Kind: holdfast.KindPermission, Why: "the log " + path + " " + why, Hint: "remove what stands in its place"}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, wrong("is a symbolic link")
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EISDIR):
		return nil, wrong("is not a regular file")
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Join(wrong("is not a regular file"), f.Close())
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return nil, errors.Join(wrong("belongs to another user"), f.Close())
	}
	return f, nil
}

// firstOperator makes the operator key where there is none and a person can be
// asked for its passphrase; else it says what will be missing.
func (a *app) firstOperator(p daemon.Paths, credential string) error {
	if there(p.OperatorPub) {
		return nil
	}
	if credential == "" && !isTerminal(a.in) {
		a.say("there is no operator key: nobody can approve or resume")
		a.hint("make one on a terminal with `%s`", a.forState("holdfast init"))
		return nil
	}
	id, err := a.makeOperator(p, credential, "")
	if err == nil {
		a.say("made the operator key %s", id)
	}
	return err
}

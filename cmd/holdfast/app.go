package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/cli/early"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// app is one run of the program: what it reads, where it writes, and what the
// flags said that every subcommand takes.
type app struct {
	ctx    context.Context
	in     io.Reader
	out    io.Writer
	err    io.Writer
	lookup func(string) (string, bool)
	// sealing is how keys that are made are sealed; the zero one is the safe one.
	sealing operator.Options

	state, config, tenant string
	json, verbose         bool

	client *api.Client // of the owner, once dial was called

	command string // as typed, for messages
	touched string // the state directory that was used, for messages
}

// run carries out one command line and returns the exit code (D36).
func (a *app) run(args []string) (code int) {
	defer a.panicked(&code)
	defer a.hangUp()
	out := &output{Writer: a.out}
	a.out = out
	ran, err := early.Outcome()
	if !ran {
		err = a.dispatch(args)
	}
	if e := (*early.PanicError)(nil); errors.As(err, &e) {
		panic(e)
	}
	var h *helpWanted
	if errors.As(err, &h) {
		_, err = io.WriteString(out, h.text)
	}
	if err == nil {
		err = out.err
	}
	return a.finish(err)
}

// panicked says a panic as Go would, without the secrets that it quotes.
func (a *app) panicked(code *int) {
	if p := recover(); p != nil {
		stack := debug.Stack()
		if e, ok := p.(*early.PanicError); ok {
			stack = e.Stack
		}
		fmt.Fprint(a.err, untold(fmt.Sprintf("holdfast: panic: %v\nhint: this is a mistake in holdfast; report it\n\n%s", p, stack)))
		*code = exitError
	}
}

// output is standard output. It keeps the first error, so that a yes that
// nobody could read is none.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func (a *app) dispatch(args []string) error {
	before := a.flags("holdfast")
	if err := before.Parse(args); err != nil {
		return a.flagError(err, overview())
	}
	args = before.Args()
	if len(args) == 0 {
		return &helpWanted{overview()}
	}
	if args[0] == "help" {
		return helpFor(args[1:])
	}
	list, path := commands(), ""
	for {
		c, ok := find(list, args[0])
		if !ok {
			return unknown(path, args[0], list)
		}
		path, args = join(path, c.name), args[1:]
		if c.sub == nil {
			a.command = path
			return a.withHelp(c, path, args)
		}
		args = c.meant(args)
		switch {
		case len(args) == 0:
			return usage("see `holdfast help "+path+"`", "%s needs to know what to do: %s", path, names(c.sub))
		case args[0] == "help" || isHelp(args[0]):
			return &helpWanted{helpText(c, path)}
		}
		list = c.sub
	}
}

func (a *app) withHelp(c command, path string, args []string) error {
	err := c.run(a, args)
	if errors.Is(err, flag.ErrHelp) {
		return &helpWanted{helpText(c, path)}
	}
	return err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + " " + name
}

func isHelp(s string) bool { return s == "-h" || s == "-help" || s == "--help" }

// flags returns a flag set with the flags that every subcommand takes. What
// was given before the subcommand stays.
func (a *app) flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.StringVar(&a.state, "state", a.state, "")
	fs.StringVar(&a.config, "config", a.config, "")
	fs.StringVar(&a.tenant, "tenant", or(a.tenant, holdfast.Local), "")
	fs.BoolVar(&a.json, "json", a.json, "")
	fs.BoolVar(&a.verbose, "verbose", a.verbose, "")
	return fs
}

// parse reads flags wherever they stand before "--", and returns the rest.
// least and most bound how many arguments there are; most below 0 is no bound.
func (a *app) parse(fs *flag.FlagSet, args []string, least, most int) ([]string, error) {
	after := []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		args, after = args[:i], args[i+1:]
	}
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, a.flagError(err, "")
		}
		if fs.NArg() == 0 {
			break
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
	rest = append(rest, after...)
	hint := "see `holdfast help " + a.command + "`"
	switch {
	case len(rest) < least:
		return nil, usage(hint, "%s needs %s more", a.command, story.Count(least-len(rest), "argument", "arguments"))
	case most >= 0 && len(rest) > most:
		return nil, usage(hint, "%s does not take %q", a.command, rest[most])
	}
	return rest, nil
}

func (a *app) flagError(err error, help string) error {
	if errors.Is(err, flag.ErrHelp) {
		if help != "" {
			return &helpWanted{help}
		}
		return flag.ErrHelp
	}
	return usage("see `holdfast help"+prefix(" ", a.command)+"`", "%v", err)
}

// paths finds the state directory without touching it.
func (a *app) paths() (daemon.Paths, error) {
	dir, err := daemon.FindState(a.state, a.lookup)
	if err != nil {
		return daemon.Paths{}, err
	}
	a.touched = dir
	if a.verbose {
		a.say("state %s", dir)
	}
	return daemon.PathsIn(dir), nil
}

// say writes a line for people to standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, "holdfast: %s\n", clean(untold(fmt.Sprintf(format, args...))))
}

// hint writes what to do to standard error.
func (a *app) hint(format string, args ...any) {
	fmt.Fprintf(a.err, "hint: %s\n", clean(untold(fmt.Sprintf(format, args...))))
}

// untold is a text for people without the secrets that their form tells: an
// argument that an error quotes may be one, and scripts keep what is said. Names
// and addresses of people stay, so that a message says whom it means.
func untold(s string) string {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return mask.Secret
	}
	r := e.Text([]byte(s))
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Rule, "secret.") {
			return string(r.Out)
		}
	}
	return s
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func prefix(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}

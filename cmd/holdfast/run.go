package main

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

func runCommand() command {
	return command{name: "run", about: "run an agent, or any program, on a work tree and nothing else", run: runProgram, help: `
Run a program, and whatever it starts, where it can work on one tree and reach
nothing else of this machine: no other file, no process, no network but a
loopback, and behind it Holdfast, which lets out what egress: in the configuration
allows. It has a terminal where you have one; signals, exit status and pipes are
as without. It is a real crossing of run/PROGRAM: the gates are asked before
anything starts, and a halt, or a pause of its agent, ends it at once. Where no
daemon runs, one is started.

    holdfast run [flags] -- PROGRAM ARGS...

    --dir DIR           the tree; the git work tree around you if absent, or,
                        outside of git, the directory that you are in
    --toolbox DIR       a directory of programs beside /usr, read-only; may be
                        given more than once
    --exec-tree         let programs of the tree, /tmp and HOME be executed too,
                        as go test, ./configure and node_modules/.bin need it
    --env NAME[=VALUE]  a variable for the program, yours if there is no VALUE,
                        never a secret; may be given more than once
    --network proxy     every address and name is Holdfast's egress proxy; the
                        usual where the daemon offers one
    --network none      a loopback and nothing behind it
    --timeout DURATION  by the wall clock; none if absent
    --memory MB         4096 if absent, of all its processes together
    --cpus N            2 if absent
    --processes N       1024 if absent, threads counted
    --agent, --kind, --session, --chain, --token   who asks, as for ` + "`holdfast step`" + `

What it finds: the toolbox (/usr, /bin, /sbin, /lib*) read-only, the tree at its
own path, and an empty /tmp and HOME that are thrown away. Of a git repository
hooks and configuration are read-only: your own git would execute what they say.
Its environment has PATH, HOME, USER, SHELL, TERM, LANG and TZ, and what --env
names, and with a network where the proxy and its certificates are (HTTPS_PROXY,
SSL_CERT_FILE and the like); programs that heed neither come to it all the same.
Where the allowlist has a row of type llm, ANTHROPIC_BASE_URL or OPENAI_BASE_URL
leads to Holdfast's gateway to models, and what stands for a key is not one.
What Holdfast has to say stands on standard error; --json prints the result
there when it has ended. The exit code is the program's: 128 and the number of the
signal that ended it, 137 when a limit or a halt did, 159 when it tried to get out.

    $ holdfast run -- bash
    $ holdfast run -- pytest -q
`}
}

// running is what the flags of run say.
type running struct {
	asking
	dir      string
	toolbox  repeated
	env      repeated
	execTree bool
	network  string
	timeout  time.Duration
	memory   int64
	cpus     int
	procs    int
}

func (q *running) flags(fs *flag.FlagSet) {
	q.asking.flags(fs)
	fs.StringVar(&q.dir, "dir", "", "")
	fs.Var(&q.toolbox, "toolbox", "")
	fs.Var(&q.env, "env", "")
	fs.BoolVar(&q.execTree, "exec-tree", false, "")
	fs.StringVar(&q.network, "network", "", "")
	fs.DurationVar(&q.timeout, "timeout", 0, "")
	fs.Int64Var(&q.memory, "memory", 0, "")
	fs.IntVar(&q.cpus, "cpus", 0, "")
	fs.IntVar(&q.procs, "processes", 0, "")
}

func runProgram(a *app, args []string) error {
	fs, q := a.flags("run"), running{}
	q.flags(fs)
	before, argv := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		before, argv = args[:i], args[i+1:]
	}
	if _, err := a.parse(fs, before, 0, 0); err != nil {
		return err
	}
	if len(argv) == 0 {
		return usage("such as `holdfast run -- bash`", "run needs a program behind --")
	}
	ask, err := q.request(a, argv)
	if err != nil {
		return err
	}
	if err := a.enabled(); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	c, _, err := a.daemon(p, "")
	if err != nil {
		return err
	}
	if q.execTree {
		a.say("weakened: --exec-tree: programs of the tree, /tmp and HOME can be executed")
	}
	var res *posture.Result
	got, err := c.Run(context.WithoutCancel(a.ctx), ask, func(ctx context.Context, terms api.RunTerms) (*posture.Result, error) {
		var err error
		res, err = a.work(ctx, c, ask, terms)
		return res, err
	})
	if err != nil {
		return err
	}
	if got.Result == nil && res != nil {
		// It was cut, or tried to get out: how it ended is known here.
		d := res.Document()
		got.Result = &d
	}
	return a.worked(got)
}

// streams are the standard descriptors, as far as they are files.
func (a *app) streams() sandbox.Streams {
	var s sandbox.Streams
	s.In, _ = a.in.(*os.File)
	if o, ok := a.out.(*output); ok {
		s.Out, _ = o.Writer.(*os.File)
	}
	s.Err, _ = a.err.(*os.File)
	return s
}

// request makes the request of the flags and the program.
func (q *running) request(a *app, argv []string) (api.RunAsk, error) {
	ask, err := q.ask(a, api.RunBoundary(argv[0]), nil)
	if err != nil {
		return api.RunAsk{}, err
	}
	w := sandbox.Workspace{ID: uuid.NewString(), Argv: slices.Clone(argv), Name: argv[0], ExecTree: q.execTree, Timeout: q.timeout,
		MemoryMB: q.memory, Processors: q.cpus, Processes: q.procs}
	if q.timeout < 0 || q.memory < 0 || q.cpus < 0 || q.procs < 0 {
		return api.RunAsk{}, &holdfast.Error{Kind: holdfast.KindLimit, Why: "a limit below zero", Hint: "leave it out for the default"}
	}
	if q.network != "" && q.network != api.NetworkNone && q.network != api.NetworkProxy {
		return api.RunAsk{}, usage("--network none, or --network proxy", "there is no network %q", q.network)
	}
	if err := q.places(a, &w); err != nil {
		return api.RunAsk{}, err
	}
	path, _ := a.lookup("PATH")
	tools := process.ToolPath(path, w.Toolbox)
	if w.Environment, err = q.variables(a, tools); err != nil {
		return api.RunAsk{}, err
	}
	if w.Argv[0], err = process.FindProgram(argv[0], w.Dir, w.Tree, path, tools, w.Toolbox, w.ExecTree); err != nil {
		return api.RunAsk{}, err
	}
	// Told here too, so that what can never run is refused without a daemon.
	if w, err = sandbox.CheckWorkspace(w, func(string) bool { return false }); err != nil {
		return api.RunAsk{}, err
	}
	return api.RunAsk{Agent: ask.Agent, Kind: ask.Kind, Session: ask.Session, Chain: ask.Chain, Token: ask.Token, Space: w, Network: q.network}, nil
}

// places finds the tree, where in it the program starts, and the toolbox.
func (q *running) places(a *app, w *sandbox.Workspace) (err error) {
	here, err := os.Getwd()
	if err != nil {
		return fail("go to a directory that is there", "where you are cannot be said: %v", err)
	}
	dir := or(q.dir, here)
	home, _ := a.lookup("HOME")
	if w.Tree, err = process.WorkTree(dir, home, q.dir != ""); err != nil {
		return err
	}
	w.Dir = w.Tree
	if real, err := process.WorkTree(here, "", true); err == nil && strings.HasPrefix(real+"/", w.Tree+"/") {
		w.Dir = real
	}
	w.Toolbox, err = process.Toolbox(q.toolbox)
	return err
}

// inherited are variables that say how to show things, and nothing of a person.
var inherited = []string{"TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}

// variables are the program's whole environment.
func (q *running) variables(a *app, tools string) (map[string]string, error) {
	env := map[string]string{"PATH": tools, "HOME": sandbox.WorkspaceHome, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh", "TMPDIR": "/tmp"}
	if _, err := os.Stat("/bin/bash"); err == nil {
		env["SHELL"] = "/bin/bash"
	}
	for _, name := range inherited {
		if v, ok := a.lookup(name); ok && len(v) <= 64 {
			env[name] = v
		}
	}
	for _, v := range q.env {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			if value, ok = a.lookup(name); !ok {
				return nil, usage("set it, or write --env NAME=VALUE", "--env %s: there is no such variable here", name)
			}
		}
		env[name] = value
	}
	return env, nil
}

// worked says what there is to say of a run, and ends with its exit code.
func (a *app) worked(x *api.Executed) error {
	if a.json {
		own := *a
		own.out = a.err
		if err := own.printJSON(x); err != nil {
			return err
		}
	}
	if x.Result == nil {
		if x.Failure != nil && (x.Outcome == nil || x.Outcome.Verdict == holdfast.Allow) {
			return x.Failure.Err() // the gates said yes, and it did not begin
		}
		return a.unrun(x)
	}
	if !a.json {
		a.sayWorkspace(x)
	}
	return ranTo(x)
}

func (a *app) sayWorkspace(x *api.Executed) {
	r := x.Result
	a.sayLines(r.Stderr)
	if r.Syscall != nil && (x.Failure == nil || x.Failure.Kind != holdfast.KindEscape) {
		a.say("%s: the call %s (%d, %s) is not allowed", r.State, r.Syscall.Name, r.Syscall.Nr, r.Syscall.Arch)
	}
	if x.Failure != nil {
		a.sayLines(x.Failure.Why)
		a.hints(x.Failure.Hint)
	}
	if a.verbose {
		for _, f := range r.Refused {
			a.say("refused: %s, %d times (%s)", f.Name, f.Count, f.Errno)
		}
	}
	a.sayCrossing(x)
	if x.Placeholders != nil {
		a.say("models: %s", story.DescribePlaceholders(x.Placeholders))
	}
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

func execCommand() command {
	return command{name: "exec", about: "run untrusted code in the sandbox", run: execute, help: `
Run a program where it can reach nothing: no network, no file of this machine, no
other process, and no more than its share. It is a real crossing of exec/LANGUAGE,
judged by every gate and in the ledger. A call that the sandbox does not allow
ends the program and is named; one whose only use is to get out also pauses the
agent and calls a person. Where no daemon runs, one is started, and ends a moment
after its last client; the next run finds it warm.

    holdfast exec --lang LANGUAGE [flags] (FILE | -)

    --lang LANGUAGE     python3, node, static (a statically linked program), or
                        exactly, such as python3.11
    --timeout DURATION  by the wall clock; 10s, at most 30s; in a container or VM
                        5m, at most 1h
    --memory MB         256, at most 512; in a container 4096, in a VM 512, at most
                        what its guests have
    --tier TIER         at least so strong a sandbox: process, container or vm.
                        The boundary's contract may demand more
    --entropy N, --novelty X, --trust LEVEL
                        what is known of the work: its predicted entropy (0 to
                        100), its novelty (0 to 1), the agent's trust level.
                        With any of them the sandbox is chosen: a VM over 30 or
                        0.8, a container over 10 or for an agent of level
                        baseline. What is not said counts as its worst, but for
                        the level, which Holdfast knows; a lower one may be said
    --file NAME=PATH    a file for the program, by its name there; may be given
                        more than once
    --env NAME=VALUE    a variable for the program, never a secret
    --narrow CALL,...   system calls that it may not make, of those that the sandbox
                        allows, as the kernel names them: such as openat
    --out DIR           where files that the program wrote go, over nothing that
                        is there; names that begin with a dot, and other odd
                        ones, only where DIR is new or empty. Without it they
                        are named and left behind
    --explain           run nothing and record nothing: print what each of the
                        eight gates thinks of this run, as ` + "`holdfast explain`" + ` does
    --agent, --kind, --session, --chain, --token   who asks, as for ` + "`holdfast step`" + `;
                        cli if absent. One attempt to get out stops every later
                        run of that agent, until a person lets it go on

The program's standard output and error are those of this command, when it has
ended, and so is its exit code: 137 when a limit ended it, 159 when a call did, 130
when you did. On a terminal, control sequences other than colours are written out;
in a pipe every byte is as it was, 1 MB of each, but for secrets, which are masked.
What Holdfast has to say stands on standard error behind "holdfast:"; --json prints
the whole result instead, or why there is none. --verbose says its crossing, too,
which "holdfast ledger show" tells of.

The program's own standard input is empty, and it gets no arguments: give data as
--file data.txt=PATH, or --file data.txt=- for what is piped in here. Its
interpreter is one of /usr, with its standard library and no package of yours, of
a virtual environment or of pip's; a module of plain text comes along as
--file mine.py=PATH.

    $ echo 'print(6 * 7)' | holdfast exec --lang python3 -
    42
`}
}

// executing is what the flags of exec say.
type executing struct {
	asking
	lang    string
	timeout time.Duration
	memory  int64
	files   repeated
	env     repeated
	narrow  []string
	tier    posture.Tier
	known   posture.Evidence
	out     string
	explain bool
	parsed  bool // the flags were read to their end
}

func (e *executing) flags(fs *flag.FlagSet) {
	e.asking.flags(fs)
	fs.StringVar(&e.lang, "lang", "", "")
	fs.Func("timeout", "", func(s string) (err error) {
		if e.timeout, err = time.ParseDuration(s); err != nil || e.timeout <= 0 {
			return errors.New("it is a duration such as 5s or 300ms")
		}
		return nil
	})
	fs.Func("memory", "", func(s string) (err error) {
		if e.memory, err = strconv.ParseInt(s, 10, 64); err != nil || e.memory <= 0 {
			return errors.New("it is a number of MB such as 128")
		}
		return nil
	})
	fs.Var(&e.files, "file", "")
	fs.Var(&e.env, "env", "")
	fs.Func("narrow", "", e.narrower)
	fs.Func("tier", "", func(s string) error { return e.tier.UnmarshalText([]byte(s)) })
	fs.Func("entropy", "", numberTo(&e.known.Entropy))
	fs.Func("novelty", "", numberTo(&e.known.Novelty))
	fs.Func("trust", "", func(s string) error {
		e.known.Trust = new(holdfast.Level)
		return e.known.Trust.UnmarshalText([]byte(s))
	})
	fs.StringVar(&e.out, "out", "", "")
	fs.BoolVar(&e.explain, "explain", false, "")
}

// numberTo reads a number into what is nil where none was given.
func numberTo(to **float64) func(string) error {
	return func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return errors.New("it is a number such as 12.5")
		}
		*to = &f
		return nil
	}
}

// narrower takes the names of system calls. Whether the kernel has them, the
// sandbox knows.
func (e *executing) narrower(list string) error {
	odd := func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	for name := range strings.SplitSeq(list, ",") {
		if name == "" || len(name) > 64 || strings.ContainsFunc(name, odd) {
			return fmt.Errorf("%q is no name of a system call: they are apart by commas, such as mkdir,openat", name)
		}
		e.narrow = append(e.narrow, name)
	}
	return nil
}

func execute(a *app, args []string) error {
	e, told := executing{}, false
	x, err := e.read(a, args)
	switch {
	case err != nil:
	case e.explain:
		return a.early(a.explainRun(x))
	default:
		err = a.attended(func(c *api.Client, _ *api.Status) error {
			got, err := a.ran(c, x)
			if err != nil {
				return err
			}
			told = true
			return a.executed(got, x, e.out)
		})
	}
	if told {
		return err
	}
	a.json = a.json || !e.parsed && wantsJSON(args)
	return a.early(err)
}

// read makes the request of the command line.
func (e *executing) read(a *app, args []string) (x api.Execution, err error) {
	fs := a.flags("exec")
	e.flags(fs)
	rest, err := a.parse(fs, args, 1, -1)
	if err != nil {
		return x, err
	}
	e.parsed = true
	if len(rest) > 1 {
		return x, usage("the program gets no arguments: give data as --file NAME=PATH or --env NAME=VALUE", "exec does not take %q", rest[1])
	}
	return e.request(a, rest)
}

// request makes the request of the flags and the file.
func (e *executing) request(a *app, rest []string) (api.Execution, error) {
	var x api.Execution
	if e.lang == "" {
		return x, usage("name one: --lang python3", "no language is named")
	}
	if err := e.known.Check(); err != nil {
		said := bad(err)
		return x, usage(said.Hint, "%s", said.Why)
	}
	ask, err := e.ask(a, "exec/"+e.lang, nil)
	if err != nil {
		return x, err
	}
	_, code, err := a.input(rest, sandbox.MaxCode)
	if holdfast.KindOf(err) == holdfast.KindPayloadTooLarge {
		err = &holdfast.Error{Kind: holdfast.KindCodeSize, Why: "the code has more than 10 MB", Hint: "give data as --file"}
	}
	if err != nil {
		return x, err
	}
	x = api.Execution{Agent: ask.Agent, Kind: ask.Kind, Session: ask.Session, Chain: ask.Chain, Token: ask.Token, RequestID: uuid.NewString(),
		Language: e.lang, Code: code, Timeout: e.timeout, MemoryMB: e.memory, Narrow: e.narrow,
		Tier: e.tier, Evidence: e.known}
	if x.Files, err = e.given(a); err != nil {
		return x, err
	}
	x.Environment, err = e.variables()
	return x, err
}

func (e *executing) given(a *app) (map[string][]byte, error) {
	files, total := map[string][]byte{}, 0
	for _, f := range e.files {
		name, path, ok := strings.Cut(f, "=")
		if !ok || path == "" {
			return nil, usage("such as --file data.csv=/path/to/data.csv", "--file %q has no NAME=PATH", f)
		}
		if _, twice := files[name]; twice {
			return nil, usage("give each another name", "--file %s is there twice", name)
		}
		_, b, err := a.input([]string{path}, sandbox.MaxFileBytes)
		if err != nil {
			return nil, err
		}
		if total += len(b); total > sandbox.MaxFileBytes {
			return nil, usage("give at most 100 MB", "the files are too large together")
		}
		files[name] = b
	}
	return files, nil
}

func (e *executing) variables() (map[string]string, error) {
	env := map[string]string{}
	for _, v := range e.env {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, usage("such as --env MODE=fast", "--env %q has no NAME=VALUE", name)
		}
		env[name] = value
	}
	return env, nil
}

// executed shows what came of a run, and ends with its exit code.
func (a *app) executed(x *api.Executed, asked api.Execution, out string) error {
	if a.json {
		if err := a.printJSON(x); err != nil {
			return err
		}
	}
	if x.Result == nil && a.interrupted(x) {
		a.say("stopped by you before it began")
		return status(exitInterrupted)
	}
	if x.Result == nil {
		return a.unrun(x)
	}
	if !a.json {
		a.sayRun(x, asked)
	}
	if err := a.bringOut(x.Result, out); err != nil {
		return err
	}
	if a.interrupted(x) {
		return status(exitInterrupted)
	}
	return ranTo(x)
}

// unrun says why nothing ran, and ends with what the gates came to.
func (a *app) unrun(x *api.Executed) error {
	ans := &api.Answer{Outcome: x.Outcome, Failure: x.Failure}
	if !a.json {
		if err := a.sayRefusal(ans); err != nil {
			return err
		}
	}
	return ended(ans)
}

// ranTo ends with the exit code of what ran (D36): the program's own, or, where
// that is 0 and its result was refused, what that came to.
func ranTo(x *api.Executed) error {
	if x.Result.ExitCode != 0 {
		return status(x.Result.ExitCode)
	}
	if x.Failure != nil {
		return ended(&api.Answer{Outcome: x.Outcome, Failure: x.Failure})
	}
	return nil
}

// sayRefusal is sayAnswer on standard error: standard output is the program's.
// What the gates let in and then did not come about has failed.
func (a *app) sayRefusal(ans *api.Answer) error {
	own := *a
	own.out = a.err
	if o := ans.Outcome; o != nil && o.Verdict == holdfast.Allow && ans.Failure != nil {
		a.say("%s failed, crossing %s", o.Boundary, o.Crossing)
		a.sayLines(ans.Failure.Why + gate(ans.Failure.Gate))
		a.sayHalt(ans.Failure.Kind, ans.Failure.Why)
		a.hints(ans.Failure.Hint)
		for _, w := range o.Weakened {
			a.say("weakened: %s", w)
		}
		return nil
	}
	err := own.sayAnswer(ans)
	switch {
	case ans.Failure != nil:
		a.sayHalt(ans.Failure.Kind, ans.Failure.Why)
	case ans.Outcome != nil:
		op := ans.Outcome.Deciding()
		a.sayHalt(op.Kind, op.Why)
	}
	return err
}

// sayRun writes the program's output where it belongs, and what Holdfast has to
// say behind it.
func (a *app) sayRun(x *api.Executed, asked api.Execution) {
	r := x.Result
	a.sayOutput(r)
	a.sayEnd(x, asked)
	a.sayBeside(r)
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		a.say("the file %s stays behind: %s", name, r.Skipped[name])
	}
	a.sayCrossing(x)
}

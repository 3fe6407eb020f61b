package main

import "github.com/holdfast-dev/holdfast/internal/frontend/api"

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

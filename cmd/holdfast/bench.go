package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
)

func benchCommand() command {
	return command{name: "bench", about: "measure this machine", help: `
Measure how fast Holdfast is here, and beside what.
`, sub: []command{{name: "kernel", about: "the kernel, its ledger, its halt, its memory and its watch", run: benchKernel, help: `
Measure the kernel on this machine, each figure beside the bare thing it is
made of, in one run. It takes about a minute, uses a state directory of its own
that it takes away again, and never touches yours.

    holdfast bench kernel [flags]

    --only NAME     one measurement: ` + inLines(measurementNames(measurements())) + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ holdfast bench kernel --only crossings
`}, {name: "gateway", about: "an MCP server behind the gates", run: benchGateway, help: `
Measure the MCP gateway on this machine, with a client, a daemon and a server
that are processes of their own, beside the same client and server without it.
It takes about half a minute, uses a state directory of its own that it takes
away again, and never touches yours.

    holdfast bench gateway [flags]

    --only NAME     one measurement: ` + strings.Join(measurementNames(gatewayMeasurements()), ", ") + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ holdfast bench gateway --only calls
`}, {name: "egress", about: "the proxy that agents reach the world through", run: benchEgress, help: `
Measure the egress proxy on this machine: what it adds to a request that it looks
into, redacts both ways and records, in turns with the same request straight over
TLS and, where it can be had, through goproxy, which looks at nothing; how many
requests there are in a second; how late a stream's events come, and what an idle
one holds; the decision alone; and whether each request was in the ledger before
it left. Client and server are in one process, each proxy in one of its own. It
takes about a minute, uses a state directory of its own that it takes away again,
and never touches yours.

    holdfast bench egress [flags]

    --only NAME     one measurement: ` + strings.Join(measurementNames(egressMeasurements(new(string))), ", ") + `
    --goproxy FILE  the program bench/goproxy, built; if absent it is built
                    where this is run in the repository
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ holdfast bench egress --only added
`}, {name: "halt", about: "how soon everything stops", run: benchHalt, help: `
Measure how soon everything has stopped after ` + "`holdfast halt`" + ` was started: tool
calls over stdio and over HTTP, a call that waits for a person, code in each tier of
the sandbox that works here (a guest's kernel is the one of your configuration,
sandbox: vm, or Debian's in /boot) and over gRPC, a program of ` + "`holdfast run`" + `, a
download, a tunnel, a WebSocket and a model's answer, all in flight at once, to the
last effect that each has where it does something; what does not work here is named.
Beside stands the same command with nothing in flight. That nothing takes effect
once the halt is acknowledged is checked, not measured. It takes about a minute,
uses a state directory of its own that it takes away again, and never touches yours.

    holdfast bench halt [flags]

    --only NAME     one measurement: ` + strings.Join(measurementNames(haltMeasurements(daemon.VMConfig{})), ", ") + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

    $ holdfast bench halt --short
`}, {name: "llm", about: "the gateway to models", run: benchLLM, help: `
Measure the gateway to models on this machine, in one run with the same requests
straight to a provider over TLS and through a reverse proxy that does nothing else:
what is added until the first word of an answer; how late the events of 200 streams
at once come, and what of a processor it takes; and what a call costs beside the
commit of its record. Client and provider are in one process, each proxy in one of
its own. It takes about a minute, uses a state directory of its own that it takes
away again, and never touches yours.

    holdfast bench llm [flags]

    --only NAME     one measurement: ` + strings.Join(measurementNames(llmMeasurements()), ", ") + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ holdfast bench llm --only streams
`}, {name: "page", about: "the pages, with a ledger behind them", run: benchPage, help: `
Measure how long each page's first byte takes, with 100 000 crossings in the
ledger and 50 reviews that wait. It takes about half a minute, uses a state
directory of its own that it takes away again, and never touches yours.

    holdfast bench page [flags]

    --only NAME     one measurement: ` + strings.Join(measurementNames(pageMeasurements()), ", ") + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the crossings, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ holdfast bench page
`}, {name: "redact", about: "the redaction engine", run: benchRedact, help: `
Measure how fast text is redacted on this machine: on what a model is sent and
answers, on code, on short lines, in pieces, and on texts that are made to be
slow. Each figure stands beside one look through a table at every byte, and
beside one regular expression for each of the plainest rules, on the same text
in the same run. It takes about two minutes and writes nothing.

    holdfast bench redact [flags]

    --only NAME     one of: ` + strings.Join(measurementNames(redactMeasurements()), ", ") + `
    --dir DIR       taken as by the others; nothing is written there
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ holdfast bench redact --only clean
`}, {name: "rules", about: "rules, and their reload under load", run: benchRulesCommand, help: `
Measure what rules cost on this machine, each figure beside what it is made of or
the same written by hand, in one run: the seven built-in rules on a goal, a
hundred rules, a rule that asks 24 hours of a million crossings; and count what
becomes of the requests of 16 clients while rules are reloaded, whole and half
written. It takes about half a minute, uses a state directory of its own that it
takes away again, and never touches yours. How other engines decide by the same
rules is measured in the repository: cd bench && go test -run '^$' -bench Rules .

    holdfast bench rules [flags]

    --only NAME     one measurement: ` + strings.Join(measurementNames(rulesMeasurements()), ", ") + `
    --dir DIR       where its files stand
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such, and the exit code stays 0, but
that of reload: where a request was lost, or answered by no set, it is 1.

    $ holdfast bench rules --only reload
`}, benchSnapshotCommand(), {name: "sandbox", about: "untrusted code, beside other sandboxes", run: benchSandbox, help: `
Measure a Python program in the sandbox, from its request to its result, in turns
with the very same interpreter alone and, where they are installed, bubblewrap,
runc, crun, runsc and docker; the same where an interpreter waits for it, through
the Go API and as a crossing over gRPC; what becomes of more requests than there
is room for; how many runs there are in a second; how soon a forbidden call ends a
program, and whether it is named; what is left behind by 10 000 runs; what memory
waits; what ` + "`holdfast run`" + ` adds to a program's start, beside bubblewrap; a container
beside its runtime alone, gVisor's too; and a guest's restore beside QEMU's own,
with the memory that ten of them share (their kernel is the one of your
configuration, sandbox: vm, or Debian's in /boot).
Under the table stands what each figure is limited by, as it was measured. It
takes about three minutes, uses a directory of its own that it takes away again,
and never touches your state.

    holdfast bench sandbox [flags]

    --only NAME     one measurement: ` + inLines(measurementNames(sandboxMeasurements(new(int), daemon.SandboxConfig{}))) + `
    --runs N        how many runs soak has; 10000 if absent
    --dir DIR       where its files stand
    --short         a fifth of the rounds or less, for a first look

A figure that misses its target is shown as such, and the exit code stays 0, but
that of soak: where runs have left anything behind it is 1.

    $ holdfast bench sandbox --only soak --runs 100000
    $ holdfast bench sandbox --only cold
`}}}
}

// figure is one thing measured.
type figure struct {
	Name     string  `json:"name"`
	Measured float64 `json:"measured"`
	Unit     string  `json:"unit"` // empty is not measured; Note says why
	// Beside is the bare thing's figure, in the same unit; 0 is none.
	Beside   float64 `json:"beside,omitempty"`
	BesideIs string  `json:"beside_is,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	Target   string  `json:"target,omitempty"`
	Met      bool    `json:"met"`
	Note     string  `json:"note,omitempty"`
	// Limits are what it is made of, as far as it was measured in the same run.
	Limits []part `json:"limited_by,omitempty"`
	// Paths are how many runs came which way, of those that it is of or beside.
	Paths map[string]int `json:"paths,omitempty"`
	// Things are what there was before and after, by name.
	Things map[string]beforeAfter `json:"things,omitempty"`

	binding bool // the command fails where the target is missed
}

// ratioTo completes a figure that stands beside another.
func (f figure) ratioTo(beside float64, is string) figure {
	f.Beside, f.BesideIs = beside, is
	if beside != 0 {
		f.Ratio = f.Measured / beside
	}
	return f
}

// bench is one run of all measurements.
type bench struct {
	ctx   context.Context
	dir   string
	short bool
	say   func(format string, args ...any)
}

// measurement is one part of the run, which yields several figures.
type measurement struct {
	name string
	do   func(*bench) ([]figure, error)
}

func measurements() []measurement {
	return []measurement{
		{"start", (*bench).start},
		{"gates", (*bench).gates},
		{"crossings", (*bench).crossings},
		{"verify", (*bench).verify},
		{"halt", (*bench).halt},
		{"memory", (*bench).memory},
		{"watch", (*bench).watching},
	}
}

// inLines writes names behind "one measurement: ", in lines of the help's width.
func inLines(names []string) string {
	const width, indent = 41, "\n                    "
	var b strings.Builder
	for i, line := 0, len("one measurement: "); i < len(names); i++ {
		if i > 0 {
			b.WriteByte(',')
			if line += len(names[i]) + 2; line > width+len("one measurement: ") {
				b.WriteString(indent)
				line = len(names[i])
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteString(names[i])
	}
	return b.String()
}

func measurementNames(list []measurement) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.name)
	}
	return out
}

func benchKernel(a *app, args []string) error {
	fs := a.flags("bench kernel")
	server := fs.Bool("idle-server", false, "")
	return a.measure(fs, args, measurements(), func() (bool, error) {
		if *server {
			return true, idleServer(a.in, a.out)
		}
		return false, nil
	})
}

// measure reads the flags that every benchmark has, and carries out its
// measurements unless another part of it was asked for.
func (a *app) measure(fs *flag.FlagSet, args []string, list []measurement, other func() (bool, error)) (err error) {
	only := fs.String("only", "", "")
	dir := fs.String("dir", "", "")
	short := fs.Bool("short", false, "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if done, err := other(); done || err != nil {
		return err
	}
	if *only != "" && !slices.Contains(measurementNames(list), *only) {
		return usage("one of "+strings.Join(measurementNames(list), ", "), "there is no measurement %q", *only)
	}
	a.collectLess() // as up does
	b := &bench{ctx: a.ctx, short: *short, say: a.say}
	if *dir, err = filepath.Abs(or(*dir, os.TempDir())); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(*dir, "holdfast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	var all []figure
	for _, m := range list {
		if *only != "" && m.name != *only {
			continue
		}
		a.say("measuring %s", m.name)
		fs, err := m.do(b)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", m.name, err)
		}
		all = append(all, fs...)
	}
	if a.json {
		err = a.printJSON(all)
	} else {
		err = figures(a.out, a.look(), all)
	}
	for _, f := range all {
		if f.binding && !f.Met {
			err = errors.Join(err, fail("its note names what there is more of than before", "%s: %s %s", f.Name, number(f.Measured), f.Unit))
		}
	}
	return err
}

// figures draws the table.
func figures(w io.Writer, l look, all []figure) error {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\tmeasured\tbeside\tratio\ttarget\t")
	for _, f := range all {
		beside, ratio, met := "", "", ""
		if f.Beside != 0 {
			beside, ratio = number(f.Beside)+" "+f.BesideIs, fmt.Sprintf("%.2f", f.Ratio)
		}
		if f.Target != "" {
			met = "missed"
			if f.Met {
				met = "met"
			}
		}
		measured := number(f.Measured) + " " + f.Unit
		if f.Unit == "" {
			measured = "not measured"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, measured, beside, ratio, f.Target, met)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range all {
		if f.Note != "" {
			fmt.Fprintf(w, "%s\n", l.dim(f.Name+": "+f.Note))
		}
		if by := limitedBy(f.Limits); by != "" {
			fmt.Fprintf(w, "%s\n", l.dim(strings.TrimSpace(f.Name)+": limited by "+by))
		}
	}
	return nil
}

// number is a figure with three digits or so.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// rounds is how often something is repeated.
func (b *bench) rounds(n int) int {
	if b.short {
		return max(3, n/5)
	}
	return n
}

// span is how long something is repeated.
func (b *bench) span(d time.Duration) time.Duration {
	if b.short {
		return d / 5
	}
	return d
}

// at is a percentile, from 0 to 100.
func at[T int64 | float64 | time.Duration](v []T, percent int) T {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[min(len(v)-1, len(v)*percent/100)]
}

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

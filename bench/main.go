package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/bench/egress"
	"github.com/holdfast-dev/holdfast/bench/gateway"
	"github.com/holdfast-dev/holdfast/bench/halt"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/measured"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/bench/kernel"
	"github.com/holdfast-dev/holdfast/bench/llm"
	"github.com/holdfast-dev/holdfast/bench/page"
	"github.com/holdfast-dev/holdfast/bench/redact"
	"github.com/holdfast-dev/holdfast/bench/redaction"
	"github.com/holdfast-dev/holdfast/bench/rules"
	"github.com/holdfast-dev/holdfast/bench/sandbox"
	"github.com/holdfast-dev/holdfast/bench/snapshot"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

func main() {
	daemon.RunHelperRole()
	os.Exit(run(os.Args[1:]))
}

// listSubjects returns what can be measured, in the order in which it is listed.
func listSubjects() []*measure.Subject {
	return []*measure.Subject{
		kernel.Subject(), gateway.Subject(), egress.Subject(), halt.Subject(), llm.Subject(), page.Subject(),
		redact.Subject(), redaction.Subject(), rules.Subject(), sandbox.Subject(), snapshot.Subject(),
	}
}

// runRole runs this program as a child process of a benchmark.
func runRole(ctx context.Context, role string, args []string) error {
	switch {
	case role == gateway.ServerRole && len(args) == 1:
		return inflighttest.ServeMCP(os.Stdin, os.Stdout, args[0])
	case role == kernel.IdleRole:
		return kernel.ServeIdle(os.Stdin, os.Stdout)
	case role == measured.Role:
		return measured.Serve(ctx, args, os.Stdin, os.Stdout)
	case role == llm.BareProxyRole:
		return llm.ServeBareProxy(args, os.Stdin, os.Stdout)
	}
	return measure.NewUsageError("roles are for benchmarks' own processes",
		"there is no role %q with these arguments", role)
}

// run carries out one command line and returns the exit code: 1 for an error, 2 for a
// mistake in the command line.
func run(args []string) int {
	log.SetOutput(io.Discard) // libraries write to it what servers and clients did
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	err := dispatch(ctx, args)
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(os.Stderr, "bench:", excerpt.Printable(strings.TrimRight(line, "\n")))
	}
	if errors.Is(err, measure.ErrUsage) {
		return 2
	}
	return 1
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) > 1 && args[0] == programs.RoleWord {
		return runRole(ctx, args[1], args[2:])
	}
	if len(args) == 2 && args[0] == "help" {
		args = []string{args[1], "--help"}
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		return printOverview(os.Stdout)
	}
	for _, s := range listSubjects() {
		if s.Name == args[0] {
			return s.Execute(ctx, args[1:], os.Stdout, os.Stderr)
		}
	}
	return measure.NewUsageError("without a name they are listed", "there is no benchmark %q", args[0])
}

func printOverview(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Measure how fast Holdfast is here, and beside what.\n\n    go run -C bench . NAME [flags]\n\n")
	for _, s := range listSubjects() {
		fmt.Fprintf(&b, "    %-10s  %s\n", s.Name, s.About)
	}
	b.WriteString(measure.CommonFlags + "\n`go run -C bench . help NAME` says more. Other engines and " +
		"scanners are measured beside\nHoldfast's with `cd bench && go test -run '^$' -bench . ./peers`.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

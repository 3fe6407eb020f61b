// Command holdfast is a safety runtime for autonomous agents: it stands
// between agents and everything they can touch.
//
// Each subcommand is one file of its name; commands.go lists them.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/cli/early"
	_ "github.com/holdfast-dev/holdfast/internal/cli/early/filters" // its init runs them
	"github.com/holdfast-dev/holdfast/internal/cli/filter"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

func main() {
	daemon.RunHelperRole()
	os.Exit(program(operator.Options{}))
}

// program runs the command line of this process and returns its exit code. Keys that
// it makes are sealed with those options.
func program(sealing operator.Options) int {
	// Libraries write to this log what no engine has read: net/http the bytes
	// of a server that speaks unasked among it.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	a := &app{ctx: ctx, in: os.Stdin, out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv, sealing: sealing}
	if err := filter.LimitCore(); err != nil {
		a.say("a crash could write what holdfast knows to a core file: %v", err)
	}
	if early.IsInterrupted() {
		stop()
	}
	return a.run(os.Args[1:])
}

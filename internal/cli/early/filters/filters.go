// Package filters runs the filters key and redact early: see package early.
// It imports more than that, so some slow packages are initialised before it.
package filters

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/cli/early"
	"github.com/holdfast-dev/holdfast/internal/cli/filter"
	"github.com/holdfast-dev/holdfast/internal/leaf/configpath"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

func init() {
	early.Run(func(args []string) (func() error, bool) {
		run, known := findFilter(args)
		known = known && filter.LimitCore() == nil // else main reports the error
		return func() error { return runFilter(run) }, known
	})
}

// runner is a filter that reads until ctx ends.
type runner func(ctx context.Context) error

func runFilter(run runner) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	return run(ctx)
}

// findFilter returns the filter that args name.
func findFilter(args []string) (runner, bool) {
	if len(args) == 0 {
		return nil, false
	}
	flags, files, ok := splitArguments(args[1:])
	switch {
	case !ok:
		return nil, false
	case args[0] == "key":
		return findKey(flags, files)
	case args[0] == "redact":
		return findRedact(flags, files)
	}
	return nil, false
}

// splitArguments returns the flags of args and at most one file. A command line with
// more, or with a flag's value, is main's.
func splitArguments(args []string) (flags, files []string, ok bool) {
	for _, arg := range args {
		if arg != "-" && len(arg) > 0 && arg[0] == '-' {
			flags = append(flags, arg)
		} else {
			files = append(files, arg)
		}
	}
	return flags, files, len(files) <= 1
}

func findKey(flags, files []string) (runner, bool) {
	form := filter.KeyHash
	if len(flags) > 0 {
		forms := map[string]filter.KeyForm{"--json": filter.KeyJSON, "--exact": filter.KeyExact, "--canonical": filter.KeyCanonical}
		named, ok := forms[flags[0]]
		if !ok || len(flags) > 1 {
			return nil, false
		}
		form = named
	}
	return func(ctx context.Context) error {
		name, b, err := filter.ReadInput(ctx, os.Stdin, files, holdfast.MaxPayload)
		if err != nil {
			return err
		}
		return filter.WriteKey(os.Stdout, name, b, form)
	}, true
}

// findRedact returns the filter with the built-in rules, or none if there is a
// configuration, which may register secrets: main runs it then.
func findRedact(flags, files []string) (runner, bool) {
	if _, named := os.LookupEnv("HOLDFAST_CONFIG"); named || len(flags) > 0 || configpath.FindDefault(os.LookupEnv) != "" {
		return nil, false
	}
	return func(ctx context.Context) error {
		e, err := redact.New(redact.Options{})
		if err != nil {
			return err
		}
		in := io.Reader(os.Stdin)
		if len(files) > 0 && files[0] != "-" {
			f, err := filter.OpenRegular(files[0])
			if err != nil {
				return err
			}
			defer f.Close()
			in = f
		}
		work := filter.NewRedaction(detector.NewRecords(e, nil), in, os.Stdout)
		_, err = filter.Await(ctx, func() ([]byte, error) { return nil, work.Run(filter.MaxInput) })
		return err
	}, true
}

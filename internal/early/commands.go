package early

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/configpath"
	"github.com/holdfast-dev/holdfast/internal/filter"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// findCommand returns the command that args name, if it runs here.
func findCommand(args []string) (command, bool) {
	if text, ok := FindHelp(args); ok {
		return func(context.Context) error {
			_, err := io.WriteString(os.Stdout, text)
			return err
		}, true
	}
	if len(args) == 0 {
		return nil, false
	}
	flags, files, ok := splitArguments(args[1:])
	if !ok {
		return nil, false
	}
	switch args[0] {
	case "version":
		return findVersion(flags, files)
	case "key":
		return findKey(flags, files)
	case "redact":
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

func findVersion(flags, files []string) (command, bool) {
	if len(files) > 0 || len(flags) > 0 && !slices.Equal(flags, []string{"--json"}) {
		return nil, false
	}
	return func(context.Context) error { return WriteVersion(os.Stdout, len(flags) > 0) }, true
}

func findKey(flags, files []string) (command, bool) {
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

// findRedact returns the filter that masks what its own form tells. With a
// configuration, which may register secrets, the filter is main's.
func findRedact(flags, files []string) (command, bool) {
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
		work := filter.NewRedaction(e, in, os.Stdout)
		_, err = filter.Await(ctx, func() ([]byte, error) { return nil, work.Run(filter.MaxInput) })
		return err
	}, true
}

package main

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/payload"
)

func keyCommand() command {
	return command{name: "key", about: "print the idempotency key of a JSON document", run: key, help: `
Print the RFC 8785 key of a JSON document: SHA-256 over its canonical form, 64
hex digits. Two documents have one key when they differ only in white space,
in the order of members, or in how a number is written.

    holdfast key [--exact | --canonical] [FILE | -]

    --exact       the exact hash instead, which keeps each number's own text;
                  approvals are bound to it
    --canonical   the canonical form itself

    $ echo '{"a": [1.0, "x"]}' | holdfast key
    5e49f471d8b615a8ae0ecf0a53dbe2f5f617abb2dfe6246974aa6e4bdeb89725
`}
}

func key(a *app, args []string) error {
	fs := a.flags("key")
	exact := fs.Bool("exact", false, "")
	canonical := fs.Bool("canonical", false, "")
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if *exact && *canonical {
		return usage("keep one", "--exact and --canonical ask for two things")
	}
	name, b, err := a.input(rest, holdfast.MaxPayload)
	if err != nil {
		return err
	}
	doc, err := payload.Parse(b)
	if err != nil {
		return in(name, err)
	}
	switch {
	case a.json:
		return a.printJSON(map[string]any{"key": doc.Key(), "exact_hash": doc.Exact(), "bytes": doc.Size(), "depth": doc.Depth()})
	case *canonical:
		_, err = a.out.Write(append(slices.Clip(doc.Canonical()), '\n'))
	case *exact:
		_, err = fmt.Fprintln(a.out, doc.Exact())
	default:
		_, err = fmt.Fprintln(a.out, doc.Key())
	}
	return err
}

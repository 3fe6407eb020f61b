package main

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/cli/filter"
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
	form := filter.KeyHash
	switch {
	case a.json:
		form = filter.KeyJSON
	case *canonical:
		form = filter.KeyCanonical
	case *exact:
		form = filter.KeyExact
	}
	return filter.WriteKey(a.out, name, b, form)
}

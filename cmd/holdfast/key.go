package main

import (
	"errors"
	"fmt"

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

    $ echo '{"b": 1, "a": [1.0, "x"]}' | holdfast key
    2e1ff7a5ac5e5d6d5d1b6e2d5b1f0a66... (64 digits)
`}
}

func asError(err error, e **holdfast.Error) bool { return errors.As(err, e) }

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
		_, err = a.out.Write(append(doc.Canonical()[:len(doc.Canonical()):len(doc.Canonical())], '\n'))
	case *exact:
		_, err = fmt.Fprintln(a.out, doc.Exact())
	default:
		_, err = fmt.Fprintln(a.out, doc.Key())
	}
	return err
}

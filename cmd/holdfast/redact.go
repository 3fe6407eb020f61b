package main

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func redactCommand() command {
	return command{name: "redact", about: "mask secrets and personal data in a text", run: redactText, help: `
Mask secrets and personal data: addresses, cards, keys, tokens, passwords,
numbers that name a person. JSON stays JSON; anything else is taken as text.
At most 64 MiB at once.

    holdfast redact [--json] [FILE | -]

    --json   what was found, where, and the text, as JSON

    $ echo 'mail ann@example.com, password: hunter22' | holdfast redact
    mail [email hidden], password: [secret redacted]
`}
}

func redactText(a *app, args []string) error {
	rest, err := a.parse(a.flags("redact"), args, 0, 1)
	if err != nil {
		return err
	}
	_, b, err := a.input(rest, maxFilter)
	if err != nil {
		return err
	}
	e, err := redact.New(redact.Options{})
	if err != nil {
		return err
	}
	var r redact.Result
	if json.Valid(b) {
		if r, err = e.JSON(b); err != nil {
			return &holdfast.Error{Kind: holdfast.KindRedaction, Why: "the text could not be redacted, so nothing of it is shown", Err: err}
		}
	} else {
		r = e.Text(b)
	}
	if a.json {
		return a.printJSON(map[string]any{"text": string(bytes.ToValidUTF8(r.Out, []byte("�"))), "findings": append([]redact.Finding{}, r.Findings...),
			"rules": append([]string{}, r.Rules()...), "contains_pii": r.PII()})
	}
	_, err = a.out.Write(r.Out)
	return err
}

package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func redactCommand() command {
	return command{name: "redact", about: "mask secrets and personal data in a text", run: redactText, help: `
Mask secrets and personal data: addresses, cards, keys, tokens, passwords,
numbers that name a person. JSON stays JSON; anything else is taken as text.
At most 64 MiB at once.

    holdfast redact [flags] [FILE | -]

    --register SOURCE    also mask your own secrets, in any encoding; may be
                         given more than once. A SOURCE says where they are:
                         file:PATH has one in each line, whole:PATH is one,
                         env:NAME is a variable, cmd:COMMAND prints one in
                         each line
    --masks STYLE        ledger, the default; egress, the shorter masks of what
                         leaves; pseudonyms, the same for the same value, such
                         as <email:7f3a91c2>, which needs --key-file
    --key-file FILE      the key of pseudonyms: a file whose first line has at
                         least 16 random bytes
    --probable KINDS     also mask what only its surroundings tell: a list of
                         secrets, phones, names, addresses; or all; or none,
                         the default
    --json               what was found, where, and the text, as JSON

    $ echo 'mail ann@example.com, password: hunter22' | holdfast redact
    mail [email hidden], password: [secret redacted]
`}
}

// repeated is a flag that may be given more than once.
type repeated []string

// String implements flag.Value.
func (r *repeated) String() string { return strings.Join(*r, " ") }

// Set implements flag.Value.
func (r *repeated) Set(s string) error { *r = append(*r, s); return nil }

// redactFlags are what the flags of redact say.
type redactFlags struct {
	register        repeated
	masks, key, may string
}

func redactText(a *app, args []string) error {
	var f redactFlags
	fs := a.flags("redact")
	fs.Var(&f.register, "register", "")
	fs.StringVar(&f.masks, "masks", "ledger", "")
	fs.StringVar(&f.key, "key-file", "", "")
	fs.StringVar(&f.may, "probable", "none", "")
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	e, err := a.redactor(f)
	if err != nil {
		return err
	}
	_, b, err := a.input(rest, maxFilter)
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

// redactor makes the engine that the flags ask for.
func (a *app) redactor(f redactFlags) (*redact.Engine, error) {
	var o redact.Options
	switch f.masks {
	case "ledger":
	case "egress":
		o.Masks = redact.Egress
	case "pseudonyms":
		o.Masks = redact.Pseudonyms
	default:
		return nil, usage("take ledger, egress or pseudonyms", "there are no masks %q", f.masks)
	}
	if (f.key != "") != (o.Masks == redact.Pseudonyms) {
		return nil, usage("make one with `openssl rand -hex 32 > FILE`", "--key-file and --masks pseudonyms belong together")
	}
	var err error
	if o.Probable, err = daemon.ParseProbable(f.may); err != nil {
		return nil, err
	}
	var m redact.Memory
	if f.key != "" {
		keys, err := daemon.Register(a.ctx, &m, []daemon.RegisterConfig{daemon.SharedFile(f.key)})
		if err != nil {
			return nil, err
		}
		o.Key = keys[0]
	}
	var from []daemon.RegisterConfig
	for _, text := range f.register {
		r, err := daemon.ParseRegister(text)
		if err != nil {
			return nil, err
		}
		from = append(from, r)
	}
	if o.Literals, err = daemon.Register(a.ctx, &m, from); err != nil {
		return nil, err
	}
	e, err := redact.New(o)
	if err != nil {
		return nil, err
	}
	if why := or(m.Trouble(), e.Trouble()); why != "" {
		a.say("%s", why)
	}
	return e, nil
}

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
)

func validateCommand() command {
	const about = "check the configuration, or a JSON document against a JSON Schema"
	return command{name: "validate", about: about, run: validate, help: `
Without --schema, check the configuration that --config names, as the daemon
does when it starts: it prints what is weakened, keys without effect, and rows of
the allowlist that refuse secrets by default. Nothing is started.

With --schema, check a JSON document against a JSON Schema, as gate K1 does. What
does not fit is named by JSON pointers, never quoted. The exit code is 3 when the
document does not fit.

    holdfast validate [--config FILE]
    holdfast validate --schema SCHEMA [FILE | -]

    $ echo '{"type":"object","required":["path"]}' > schema.json
    $ echo '{}' | holdfast validate --schema schema.json
    holdfast: standard input: the root: missing "path"
`}
}

func validate(a *app, args []string) error {
	fs := a.flags("validate")
	file := fs.String("schema", "", "")
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if *file == "" && len(rest) == 0 {
		return a.validateConfig()
	}
	if *file == "" || *file == "-" {
		return usage("`holdfast validate --schema schema.json document.json`", "name the schema's file with --schema")
	}
	_, raw, err := a.input([]string{*file}, schema.MaxSchema)
	if err != nil {
		return err
	}
	s, err := schema.Compile(*file, raw)
	if err != nil {
		return err
	}
	name, b, err := a.input(rest, holdfast.MaxPayload)
	if err != nil {
		return err
	}
	doc, err := payload.Parse(b)
	if err != nil {
		return in(name, err)
	}
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	found, err := s.Validate(ctx, doc.Value())
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(map[string]any{"valid": len(found) == 0, "violations": append([]schema.Violation{}, found...), "schema_hash": s.Hash()}); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return nil
	}
	for _, v := range found {
		if !a.json {
			fmt.Fprintf(a.err, "holdfast: %s: %s\n", clean(name), clean(or(v.Pointer, "the root")+": "+v.Message))
		}
	}
	return status(exitRefused)
}

// validateConfig loads the configuration, and prints what its author should know.
func (a *app) validateConfig() error {
	path, l, err := a.loads()
	if err != nil {
		return err
	}
	warnings := []string{}
	for _, w := range l.Policy.Weakened {
		warnings = append(warnings, "weakened: "+w)
	}
	warnings = append(warnings, l.Deprecated...)
	if note := noteDefaultRequests(l); note != "" {
		warnings = append(warnings, note)
	}
	if a.json {
		return a.printJSON(map[string]any{"valid": true, "config": path, "warnings": warnings})
	}
	if path == "" {
		fmt.Fprintln(a.out, "no configuration; the defaults apply")
		return nil
	}
	fmt.Fprintf(a.out, "%s: valid\n", clean(path))
	for _, w := range warnings {
		fmt.Fprintf(a.out, "warning: %s\n", clean(w))
	}
	return nil
}

// noteDefaultRequests names the rows that refuse secrets because they do not say otherwise, or returns "".
func noteDefaultRequests(l *config.Loaded) string {
	rows := l.Config.Egress.ListDefaultRequests()
	if len(rows) == 0 {
		return ""
	}
	return "a request with a secret is refused by default, where earlier versions masked it " +
		"(`redact: {request: mask}`): " + strings.Join(rows, ", ")
}

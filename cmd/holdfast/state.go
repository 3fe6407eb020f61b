package main

import (
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

func stateCommand() command {
	return command{name: "state", about: "where the state is, and a copy of it", help: `
The state is one directory: the store, the keys, the latch, the log.

    $ holdfast state path
`, sub: []command{
		{name: "path", about: "print the state directory", run: statePath, help: `
Print the state directory that commands use here.

    $ holdfast state path
`},
		{name: "backup", about: "write a consistent copy of the store while it runs", run: stateBackup, help: `
Write a consistent copy of the store to a file that does not exist, while the
daemon goes on. The keys beside the store are not in it: copy them too, and
keep them apart.

    holdfast state backup FILE

    $ holdfast state backup holdfast-$(date +%F).db
`},
	}}
}

func statePath(a *app, args []string) error {
	if _, err := a.parse(a.flags("state path"), args, 0, 0); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(p)
	}
	_, err = fmt.Fprintln(a.out, p.Dir)
	return err
}

func stateBackup(a *app, args []string) error {
	rest, err := a.parse(a.flags("state backup"), args, 1, 1)
	if err != nil {
		return err
	}
	file, err := filepath.Abs(rest[0])
	if err != nil {
		return err
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		if err := c.Backup(a.ctx, file); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.out, file)
		return err
	})
}

package main

import "github.com/holdfast-dev/holdfast/internal/cli/early/buildinfo"

func versionCommand() command {
	return command{name: "version", about: "print the version", run: printVersion, help: `
Print the version of Holdfast, the revision that it was built from, and Go's.

    holdfast version [--json]

    $ holdfast version
`}
}

// version is the module's version, "(devel)" when it was built from a work
// tree.
func version() string { return buildinfo.Read().Version }

func printVersion(a *app, args []string) error {
	if _, err := a.parse(a.flags("version"), args, 0, 0); err != nil {
		return err
	}
	return buildinfo.Write(a.out, a.json)
}

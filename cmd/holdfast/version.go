package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionCommand() command {
	return command{name: "version", about: "print the version", run: printVersion, help: `
Print the version of Holdfast, the revision that it was built from, and Go's.

    holdfast version [--json]

    $ holdfast version
`}
}

// version is the module's version, "(devel)" when it was built from a work
// tree.
func version() string { return built().Version }

// build is what the program knows of how it was made.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func built() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = or(info.Main.Version, b.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func printVersion(a *app, args []string) error {
	if _, err := a.parse(a.flags("version"), args, 0, 0); err != nil {
		return err
	}
	b := built()
	if a.json {
		return a.printJSON(b)
	}
	changed := ""
	if b.Modified {
		changed = ", changed since"
	}
	_, err := fmt.Fprintf(a.out, "holdfast %s%s%s, %s, %s\n", b.Version, prefix(" from ", b.Revision), changed, b.Go, b.Platform)
	return err
}

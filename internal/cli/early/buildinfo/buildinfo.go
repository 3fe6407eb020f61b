// Package buildinfo answers version early: see package early. It imports runtime/debug,
// which comes late in the order of packages, so more of them are initialised before it.
package buildinfo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/holdfast-dev/holdfast/internal/cli/early"
)

func init() {
	early.Run(func(args []string) (func() error, bool) {
		asJSON := len(args) == 2 && args[1] == "--json"
		known := len(args) == 1 || asJSON
		return func() error { return Write(os.Stdout, asJSON) }, known && args[0] == "version"
	})
}

// Build describes how the program was built.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns how this program was built. The version is "(devel)" if it was built
// from a work tree.
func Read() Build {
	b := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
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

// Write writes how this program was built, as JSON or in a line.
func Write(out io.Writer, asJSON bool) error {
	b := Read()
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(b)
	}
	from, changed := "", ""
	if b.Revision != "" {
		from = " from " + b.Revision
	}
	if b.Modified {
		changed = ", changed since"
	}
	_, err := fmt.Fprintf(out, "holdfast %s%s%s, %s, %s\n", b.Version, from, changed, b.Go, b.Platform)
	return err
}

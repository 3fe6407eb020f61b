package early

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/holdfast-dev/holdfast/internal/filter"
)

// Build describes how the program was built.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild returns how this program was built. The version is "(devel)" if it was built
// from a work tree.
func ReadBuild() Build {
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

// WriteVersion writes how this program was built, as JSON or in a line.
func WriteVersion(out io.Writer, asJSON bool) error {
	b := ReadBuild()
	if asJSON {
		return filter.WriteJSON(out, b)
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

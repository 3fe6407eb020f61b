// Package configpath finds the configuration. It is apart from the daemon's so that
// a command that only asks whether there is one starts fast.
package configpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// FindDefault returns the configuration that is used if none is named:
// holdfast/holdfast.yaml in $XDG_CONFIG_HOME (~/.config if that is unset), else in
// /etc, whichever exists. "" means that there is none. lookup is os.LookupEnv.
func FindDefault(lookup func(string) (string, bool)) string {
	var dirs []string
	if v, _ := lookup("XDG_CONFIG_HOME"); filepath.IsAbs(v) {
		dirs = append(dirs, v)
	} else if v, _ := lookup("HOME"); filepath.IsAbs(v) {
		dirs = append(dirs, filepath.Join(v, ".config"))
	}
	for _, dir := range append(dirs, "/etc") {
		p := filepath.Join(dir, "holdfast", "holdfast.yaml")
		// A file that cannot be looked at is there, for all that is known.
		if _, err := os.Lstat(p); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return p
		}
	}
	return ""
}

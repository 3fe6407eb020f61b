package review

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
)

// maxPath bounds a path that a rule can be asked about, in bytes.
const maxPath = 4096

// under says whether the path s is prefix or lies below it, component by
// component (D46). Both are read as text: nothing is looked up, and a symbolic
// link is not followed. A path that anything on its way could read in another
// way is not under anything.
func under(prefix, s string) bool {
	if !plainPath(s) || !plainPath(prefix) {
		return false
	}
	s = path.Clean(s)
	return s == prefix || strings.HasPrefix(s, prefix+"/")
}

// CheckPrefix refuses a path that is no narrow place: one that is not clean,
// that is everything, or that could be read in two ways.
func CheckPrefix(prefix string) error {
	switch {
	case !plainPath(prefix):
		return ruleFault(fmt.Sprintf("has a path that could be read in two ways: %q", prefix), "name it without .., shell characters, escapes and look-alikes")
	case path.Clean(prefix) != prefix:
		return ruleFault(fmt.Sprintf("has a path that is not written plainly: %q", prefix), "write "+path.Clean(prefix))
	case prefix == "/" || prefix == ".":
		return ruleFault("has a path that is everything", "name a directory")
	}
	return nil
}

// odd are the characters that a shell, a URL or another operating system gives
// a meaning in a path.
const odd = "\\%$`;|&<>\"'{}*?~"

// plainPath says whether a path has one reading: no component climbs, nothing
// in it is expanded, decoded or normalised into something else, and nothing in
// it is invisible.
func plainPath(s string) bool {
	if s == "" || len(s) > maxPath || !utf8.ValidString(s) || !norm.NFKC.IsNormalString(s) || strings.ContainsAny(s, odd) || strings.HasPrefix(s, "//") {
		return false
	}
	for _, r := range s {
		if !visible.IsVisible(r) {
			return false
		}
	}
	for c := range strings.SplitSeq(s, "/") {
		if strings.TrimRight(c, ". ") == "" && c != "" && c != "." {
			return false // it climbs, here or where trailing dots and blanks are dropped
		}
	}
	return true
}

// Package ownfile finds names of Holdfast's own files in a document.
package ownfile

import (
	"net/url"
	"path"
	"strings"
)

// IsNamed reports whether a document names one of Holdfast's own files
// or directories: an agent has no business with them through any
// boundary, whatever its contract says (celestial level 1, D12). Paths are
// looked for as they are written, cleaned, and percent-decoded. A relative
// path, or a link that leads there, is beyond what a request alone can show.
func IsNamed(v any, own []string) bool {
	switch v := v.(type) {
	case string:
		return isNamedIn(v, own)
	case []any:
		for _, e := range v {
			if IsNamed(e, own) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if isNamedIn(k, own) || IsNamed(e, own) {
				return true
			}
		}
	}
	return false
}

func isNamedIn(s string, own []string) bool {
	if !strings.ContainsAny(s, "/%") {
		return false
	}
	if containsPath(s, own) || containsPath(path.Clean(s), own) {
		return true
	}
	if !strings.Contains(s, "%") {
		return false
	}
	plain, err := url.PathUnescape(s)
	return err == nil && (containsPath(plain, own) || containsPath(path.Clean(plain), own))
}

// containsPath says whether s holds one of the paths as whole components, also
// in the middle of a longer text such as a command.
func containsPath(s string, own []string) bool {
	for _, o := range own {
		if len(o) < 2 {
			continue
		}
		for rest := s; ; {
			i := strings.Index(rest, o)
			if i < 0 {
				break
			}
			after := rest[i+len(o):]
			if after == "" || !nameByte(after[0]) {
				return true
			}
			rest = after
		}
	}
	return false
}

// nameByte says whether a byte goes on with a file's name, so that
// "/state-old" is not taken for "/state".
func nameByte(c byte) bool {
	return c == '-' || c == '_' || c == '.' || c >= 0x80 ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

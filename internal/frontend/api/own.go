package api

import (
	"cmp"
	"os"
	"path/filepath"
)

// reached are those of own (absolute paths) that a program finds in one of
// places, by whatever names both go: they lie in it, it lies in them, or is the
// same by another mount. What cannot be looked at is judged by its name.
func reached(places, own []string) []string {
	var list []string
	for _, o := range own {
		for _, p := range places {
			if around(p, o) || around(o, p) {
				list = append(list, o)
				break
			}
		}
	}
	return list
}

// around says whether inner is outer, or lies below it.
func around(outer, inner string) bool {
	outer, inner = resolved(outer), resolved(inner)
	top, err := os.Stat(outer)
	for at := inner; ; at = filepath.Dir(at) {
		if at == outer {
			return true
		}
		if st, bad := os.Stat(at); err == nil && bad == nil && os.SameFile(top, st) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// resolved is p without links, as far as it is there.
func resolved(p string) string {
	p = filepath.Clean(p)
	if real, err := filepath.EvalSymlinks(p); err == nil || p == filepath.Dir(p) {
		return cmp.Or(real, p)
	}
	return filepath.Join(resolved(filepath.Dir(p)), filepath.Base(p))
}

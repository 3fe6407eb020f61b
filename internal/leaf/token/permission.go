package token

import (
	"fmt"
	"slices"
	"strings"
)

// Set is the permissions that roles grant. The zero Set grants nothing.
type Set struct {
	exact   map[string]struct{}
	schemes map[string]struct{} // granted whole, by "scheme:*"
}

// Permissions resolves roles to what they grant (K2, RESOLVING_PERMISSIONS).
// The answer depends on its arguments alone (invariant 2). The first role that
// the table does not map is returned, and then nothing is granted: an unmapped
// role refuses the request (D8).
func Permissions(roles map[string][]string, have []string) (granted Set, missingRole string) {
	s := Set{exact: map[string]struct{}{}, schemes: map[string]struct{}{}}
	for _, role := range have {
		perms, ok := roles[role]
		if !ok {
			return Set{}, role
		}
		for _, p := range perms {
			s.add(p)
		}
	}
	return s, ""
}

// add takes a permission. One that CheckPermission refuses grants nothing.
func (s Set) add(p string) {
	if CheckPermission(p) != nil {
		return
	}
	if scheme, ok := strings.CutSuffix(p, ":*"); ok {
		s.schemes[scheme] = struct{}{}
		return
	}
	s.exact[p] = struct{}{}
}

// Has says whether the permission is granted, by its own name or by its
// scheme's wildcard. Asking for "scheme:*" needs the wildcard itself.
func (s Set) Has(permission string) bool {
	if CheckPermission(permission) != nil {
		return false
	}
	if _, ok := s.exact[permission]; ok {
		return true
	}
	scheme, _, _ := strings.Cut(permission, ":")
	_, ok := s.schemes[scheme]
	return ok
}

// List returns what was granted, sorted, wildcards as they were written.
func (s Set) List() []string {
	out := make([]string, 0, len(s.exact)+len(s.schemes))
	for p := range s.exact {
		out = append(out, p)
	}
	for scheme := range s.schemes {
		out = append(out, scheme+":*")
	}
	slices.Sort(out)
	return out
}

// Missing returns the required permissions that are not granted, in their
// order and once each; none means authorized (invariant 1).
func Missing(required []string, granted Set) []string {
	var out []string
	for _, p := range required {
		if !granted.Has(p) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// CheckPermission says whether a permission is well formed: "scheme:name",
// where "*" may stand only as the whole name. Configuration calls it when it
// is loaded, so that a misspelt permission is an error and not one that never
// matches.
func CheckPermission(p string) error {
	if fault := nameFault(p); fault != "" {
		return fmt.Errorf("permission %s %s", show(p), fault)
	}
	scheme, name, ok := strings.Cut(p, ":")
	switch {
	case !ok || scheme == "" || name == "":
		return fmt.Errorf("permission %s is not of the form scheme:name", show(p))
	case strings.ContainsAny(p, " \t"):
		return fmt.Errorf("permission %s holds a space", show(p))
	case strings.Contains(scheme, "*") || (strings.Contains(name, "*") && name != "*"):
		return fmt.Errorf("permission %s: a wildcard may only stand for the whole name, as in %s", show(p), show("goal:*"))
	}
	return nil
}

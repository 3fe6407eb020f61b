package snapshot

import "strings"

// PathsOverlap says whether two paths are one, or one lies within the other.
func PathsOverlap(a, b string) bool {
	return a == b || strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

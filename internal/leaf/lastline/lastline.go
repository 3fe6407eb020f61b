// Package lastline keeps a log from repeating itself.
package lastline

import "crypto/sha256"

// Line names the last line that one place has logged, so that the same line is not logged
// at each try.
type Line struct {
	any bool
	sum [sha256.Size]byte // of the line
}

// Replace keeps the line of what and err, and reports whether it is another than before.
func (l *Line) Replace(what string, err error) bool {
	next := Line{true, sha256.Sum256([]byte(what + err.Error()))}
	changed := next != *l
	*l = next
	return changed
}

package daemon

import "crypto/sha256"

// logged names the last line that one place has logged, so that the same line is not logged
// at each try.
type logged struct {
	any bool
	sum [sha256.Size]byte // of the line
}

// replaceLine keeps the line of what and err, and reports whether it is another than before.
func (l *logged) replaceLine(what string, err error) bool {
	next := logged{true, sha256.Sum256([]byte(what + err.Error()))}
	changed := next != *l
	*l = next
	return changed
}

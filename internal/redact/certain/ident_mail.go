package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// endings are last labels that are no top-level domain: of files, and of the
// units of systemd.
var endings = [...]string{
	"png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "json", "html", "service", "socket", "timer", "target", "mount", "path", "slice", "scope",
}

// notAddress says whether "local@host" only looks like an address: the user
// of a repository's URL, a picture for a dense screen, a unit's instance.
func notAddress(local, host []byte) bool {
	if char.EqualFold(local, "git") || char.EqualFold(local, "hg") || char.EqualFold(local, "svn") {
		return true
	}
	last := host[bytes.LastIndexByte(host, '.')+1:]
	for _, e := range endings {
		if char.EqualFold(last, e) {
			return true
		}
	}
	return false
}

// user is the local part [l, i) without the escape that it seems to begin with:
// "\ngit", "q=%20git".
func (x *Scanner) user(l, i int) []byte {
	l = x.BehindEscape(l, i)
	for j := i; j > l; j-- {
		if x.S[j-1] == '%' && j+2 <= i && x.Escaped(j+2) {
			return x.S[j+2 : i]
		}
	}
	return x.S[l:i]
}

// behindMarks returns where [l, i) begins behind its last mark.
func behindMarks(s []byte, l, i int) int {
	for j := l; j < i; j++ {
		if n := cursor.Mark(s[:i], j); n > 0 {
			l = min(j+n, i)
		}
	}
	return l
}

// beforeMark returns where [b, e) ends before its first mark.
func beforeMark(s []byte, b, e int) int {
	for j := b; j < min(e, b+MaxBehind); j++ {
		if cursor.Mark(s[:e], j) > 0 {
			return j
		}
	}
	return e
}

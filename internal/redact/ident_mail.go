package redact

import "bytes"

// endings are last labels that are no top-level domain: of files, and of the
// units of systemd.
var endings = [...]string{
	"png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "json", "html", "service", "socket", "timer", "target", "mount", "path", "slice", "scope",
}

// notAddress says whether "local@host" only looks like an address: the user
// of a repository's URL, a picture for a dense screen, a unit's instance.
func notAddress(local, host []byte) bool {
	if isFold(local, "git") || isFold(local, "hg") || isFold(local, "svn") {
		return true
	}
	last := host[bytes.LastIndexByte(host, '.')+1:]
	for _, e := range endings {
		if isFold(last, e) {
			return true
		}
	}
	return false
}

// user is the local part [l, i) without the escape that it seems to begin with:
// "\ngit", "q=%20git".
func (x *scanner) user(l, i int) []byte {
	l = x.behindEscape(l, i)
	for j := i; j > l; j-- {
		if x.s[j-1] == '%' && j+2 <= i && x.escaped(j+2) {
			return x.s[j+2 : i]
		}
	}
	return x.s[l:i]
}

// behindMarks returns where [l, i) begins behind its last mark.
func behindMarks(s []byte, l, i int) int {
	for j := l; j < i; j++ {
		if n := mark(s[:i], j); n > 0 {
			l = min(j+n, i)
		}
	}
	return l
}

// beforeMark returns where [b, e) ends before its first mark.
func beforeMark(s []byte, b, e int) int {
	for j := b; j < min(e, b+maxBehind); j++ {
		if mark(s[:e], j) > 0 {
			return j
		}
	}
	return e
}

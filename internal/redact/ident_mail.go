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

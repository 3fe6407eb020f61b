package egress

import "strings"

// isPackets says whether a body is of Git's protocol over HTTP: lines, each behind
// its own length in four hexadecimal digits (gitprotocol-http and -common). What
// is masked in one is longer or shorter than it says, and nobody can read the
// rest, so that it is no text, though a list of branches looks like one.
func isPackets(contentType string, b []byte) bool {
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(contentType)), "application/x-git-") || len(b) < 4 {
		return false
	}
	return strings.Trim(string(b[:4]), "0123456789abcdefABCDEF") == ""
}

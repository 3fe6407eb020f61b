// Package mailhost tells the hosts of mail addresses: names of two labels or more that end
// in a top-level domain.
package mailhost

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// IsHost reports whether h is a name of two labels or more that ends in a top-level
// domain and does not begin as a version does.
func IsHost(h []byte) bool {
	if len(h) < 4 || h[0] == '.' {
		return false
	}
	from := 0
	if h[0] == 'v' {
		from = 1
	}
	if n := char.DigitsFrom(h, from, len(h)); n > 0 && from+n+1 < len(h) && h[from+n] == '.' &&
		char.Class[h[from+n+1]]&char.Digit != 0 {
		return false
	}
	dot := bytes.LastIndexByte(h, '.')
	return dot > 0 && h[dot-1] != '.' && isTopLevel(h[dot+1:])
}

// IsNoAddress reports whether "local@host" only looks like an address: the user of a
// repository's URL, a verb of a format, a word of a language before an operator.
func IsNoAddress(local, host []byte) bool {
	if len(local) == 2 && local[0] == '%' {
		return true
	}
	for _, word := range [...]string{"git", "hg", "svn", "this", "super", "return"} {
		if char.EqualFold(local, word) {
			return true
		}
	}
	first := host[:bytes.IndexByte(host, '.')]
	return string(first) == "self" || string(first) == "this"
}

// IsAlgorithm reports whether local@host is the name of an algorithm of SSH: hmac-sha2-256-etm@openssh.com.
func IsAlgorithm(local, host []byte) bool {
	if h := string(host); h != "openssh.com" && h != "libssh.org" && h != "tinyssh.org" && h != "lysator.liu.se" {
		return false
	}
	return bytes.IndexByte(local, '-') > 0 || string(local) == "zlib"
}

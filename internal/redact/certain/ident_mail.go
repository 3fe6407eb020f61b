package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/mailhost"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// email judges the "@" of w bytes at i. A host ends in a top-level domain. Code has
// "@" as an operator, before an attribute's name and between a user and a machine.
func (x *Scanner) email(i, w int) int {
	if i < x.low {
		return i + w
	}
	l := i
	for floor := max(x.low, x.atLow, i-MaxBefore); l > floor && char.Class[x.S[l-1]]&char.Local != 0 &&
		!char.IsStop(x.S, l); {
		l--
	}
	x.atLow = i + w
	for l < i && char.IndexByte(".-+~", x.S[l]) >= 0 {
		l++ // of a list, or of a patch
	}
	r := beforeMark(x.S, i+w, x.End(i+w, len(x.S), char.Domain))
	for n := 0; n < maxTail && r > i+w && (x.S[r-1] == '.' || x.S[r-1] == '-'); n++ {
		r--
	}
	l = behindMarks(x.S, l, i)
	host := x.S[i+w : min(r, i+w+MaxBefore)]
	if l == i || !mailhost.IsHost(host) || mailhost.IsNoAddress(x.user(l, i), host) || w == 1 && x.isLogin(l, r, host) {
		return i + w
	}
	x.mask(l, r, rule.Email)
	return i + w
}

// isLogin reports whether the address [l, r) names an account of a machine, or an
// operator in code: the text around it tells.
func (x *Scanner) isLogin(l, r int, host []byte) bool {
	b := l
	if l > 0 && x.S[l-1] == ':' {
		b = x.back(l-1, max(0, l-maxTail), char.Local, "")
	}
	if b >= 3 && string(x.S[b-3:b]) == "://" {
		return true // the user of a URL, or an example of a password
	}
	if mailhost.IsAlgorithm(x.S[l:r-len(host)-1], host) {
		return true
	}
	if r < len(x.S) {
		switch x.S[r] {
		case '(':
			return !bytes.HasSuffix(host, []byte(".com")) && !bytes.HasSuffix(host, []byte(".org"))
		case ':': // scp
			if x.Has(r+1, "/") || x.Has(r+1, "~") {
				return true
			}
			if e := x.End(r+1, 64, char.Ident); e > r+1 && x.Has(e, "/") {
				return true
			}
		}
	}
	return x.behindRemote(l)
}

// behindRemote reports whether a command that takes an account of a machine is
// before i on its line, with only options and files between.
func (x *Scanner) behindRemote(i int) bool {
	line := x.before(i)
	for n := 0; n < 8; n++ {
		line = bytes.TrimRight(line, " \t'\"")
		b := len(line)
		for b > 0 && char.Class[line[b-1]]&char.Space == 0 && !char.IsQuote(line[b-1]) {
			b--
		}
		switch word := line[b:]; string(word) {
		case "":
			return false
		case "ssh", "scp", "sftp", "rsync", "mosh", "autossh", "sshfs", "ssh-copy-id":
			return true
		default:
			if word[0] != '-' && bytes.IndexByte(word, '/') < 0 && char.DigitsFrom(word, 0, 8) != len(word) &&
				bytes.IndexByte(word, '.') < 0 {
				return false
			}
		}
		line = line[:b]
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

// behindMarks returns where [l, i) begins after its last mark.
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
	for j := b; j < min(e, b+MaxBefore); j++ {
		if cursor.Mark(s[:e], j) > 0 {
			return j
		}
	}
	return e
}

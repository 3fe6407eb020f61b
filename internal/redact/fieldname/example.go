package fieldname

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// exampleStems are values of tests and guides, with or without digits behind them.
var exampleStems = [...]string{
	"test", "foo", "bar", "letmein", "example", "sample", "dummy", "fake", "demo", "mypass", "mypassword", "newpass",
	"oldpass", "newpassword", "oldpassword", "pwd", "pass", "user", "usr",
}

// exampleParts are in values that a text wants replaced, or has replaced.
var exampleParts = [...]string{
	"redacted", "placeholder", "changeme", "valuehere", "keyhere", "tokenhere", "passwordhere", "secrethere",
	"key_here", "token_here", "password_here", "secret_here", "isafake", "afake", "[...]",
}

// isInvented reports whether v is made up: a stem of an example, letters and digits in their order, one character
// over and over, an ellipsis.
func isInvented(v []byte) bool {
	stem := bytes.TrimRight(v, "0123456789")
	if len(v)-len(stem) < 5 && isAnyOf(stem, exampleStems[:]) {
		return true
	}
	if bytes.HasSuffix(v, []byte("...")) && len(v) < 24 {
		return true
	}
	if len(v) > 5 {
		low := bytes.ToLower(v[:min(len(v), 96)])
		for _, t := range exampleParts {
			if bytes.Contains(low, []byte(t)) {
				return true
			}
		}
	}
	return isSequence(v) || isRepeated(v)
}

// isSequence reports whether the letters and digits of v are runs that count up from "a", "0" or "1", such as
// 012345abcdef.
func isSequence(v []byte) bool {
	if len(v) < 6 || len(v) > 20 {
		return false
	}
	run := 0
	for i, c := range v {
		switch {
		case i > 0 && (c == v[i-1]+1 || c == '0' && v[i-1] == '9'):
			run++
		case (c|0x20 == 'a' || c == '0' || c == '1') && (i == 0 || run > 2):
			run = 1
		default:
			return false
		}
	}
	return run > 2
}

// isRepeated reports whether at least six of the characters of v, and half of them, are the same one in a row, or all
// of its letters and digits are.
func isRepeated(v []byte) bool {
	longest, run := 0, 0
	same, first := true, byte(0)
	for i, c := range v {
		if run++; i > 0 && c != v[i-1] {
			run = 1
		}
		longest = max(longest, run)
		if char.Class[c]&char.Alnum != 0 {
			if first == 0 {
				first = c
			}
			same = same && c == first
		}
	}
	return longest > 5 && longest*2 >= len(v) || same && first != 0 && len(v) > 5
}

// extensions end names of files that a name for a secret may refer to.
var extensions = [...]string{
	".pem", ".key", ".crt", ".cer", ".p12", ".pfx", ".jks", ".json", ".yml", ".yaml", ".txt", ".gpg", ".properties",
	".toml", ".ini", ".conf", ".env", ".xml", ".php", ".html", ".js", ".ts", ".py", ".go", ".rb", ".java",
}

// isFile reports whether v is the name of a file: words and a known extension.
func isFile(v []byte) bool {
	dot := bytes.LastIndexByte(v, '.')
	return dot >= 0 && isAnyOf(v[dot:], extensions[:]) && (dot == 0 || isPath(v[:dot], "_-.") &&
		!IsIrregular(v[:dot]) && !hasDigit(v[:dot]))
}

// isObjectID reports whether v is numbers between dots, as an object identifier or a version is.
func isObjectID(v []byte) bool {
	dots := 0
	for _, c := range v {
		if c == '.' {
			dots++
		} else if char.Class[c]&char.Digit == 0 {
			return false
		}
	}
	return dots > 2
}

// isAction reports whether v is an action of a service that has a word for a secret in its name, such as
// iam:ChangePassword.
func isAction(v []byte) bool {
	colon := bytes.IndexByte(v, ':')
	return colon > 0 && colon+1 < len(v) && char.Class[v[colon+1]]&char.Upper != 0 && isPath(v[:colon], "-") &&
		isPath(v[colon+1:], "") && !hasDigit(v[colon+1:]) && IsNameOfSecret(v[colon+1:])
}

// isSentence reports whether v is a sentence: it begins with a capital, ends as one does, and has words without digits.
func isSentence(v []byte) bool {
	last := v[len(v)-1]
	return (last == '.' || last == '?' || last == ':') && bytes.Count(v, []byte(" ")) > 1 && !hasDigit(v) &&
		(char.Class[v[0]]&char.Upper != 0 || v[0] >= 0x80)
}

// isComposed reports whether v is text between a quote and the next, with an operator that joins strings: ' + x + '.
func isComposed(v []byte) bool {
	v = bytes.TrimLeft(v, "\"'` ")
	return len(v) > 2 && (v[0] == '+' || v[0] == '.') && v[1] == ' ' && (bytes.HasSuffix(v, []byte(" + '")) ||
		bytes.HasSuffix(v, []byte(" + `")) || bytes.HasSuffix(v, []byte(" + \"")) || bytes.HasSuffix(v, []byte(" +")))
}

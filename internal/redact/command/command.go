// Package command finds the passwords of command lines that no name announces: arguments by their place, flags of one
// letter, and what echo writes into a pipe.
package command

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// Reach bounds how far before and after an offset a line is read, in bytes.
const Reach = 128

// Word is one word of a command line: its content [Start, End) without quotes.
type Word struct{ Start, End int }

// IsEmpty reports whether there is no word.
func (w Word) IsEmpty() bool { return w.Start >= w.End }

// TakesPassword reports whether the flag of one letter at the end of line holds a password, in the same word where
// glued: "mysql -p".
func TakesPassword(line []byte, letter byte, glued bool) bool {
	for i := range flags {
		f := &flags[i]
		if f.letter != letter || f.glued != glued {
			continue
		}
		for _, name := range f.commands {
			if HasCommand(line, name) {
				return true
			}
		}
	}
	return false
}

// IsFlag reports whether any command takes a password after a flag of one letter.
func IsFlag(letter byte, glued bool) bool {
	for i := range flags {
		if flags[i].letter == letter && flags[i].glued == glued {
			return true
		}
	}
	return false
}

var flags = [...]struct {
	letter   byte
	glued    bool // the password follows without a blank
	commands []string
}{
	{'p', true, []string{"mysql", "mariadb", "sshpass", "7z", "rar", "unrar"}}, // mysqldump too
	{'p', false, []string{"sshpass", "login", "mongo"}},                        // mongosh, mongodump too
	{'P', false, []string{"sqlcmd", "bcp", "zip"}},
	{'a', false, []string{"redis-cli"}},
	{'w', false, []string{"ldapsearch", "ldapmodify", "ldapadd", "ldapdelete"}},
	{'k', false, []string{"openssl enc"}},
}

// HasCommand reports whether a line has a word that begins with name.
func HasCommand(line []byte, name string) bool {
	for {
		at := bytes.Index(line, []byte(name))
		if at < 0 {
			return false
		}
		if at == 0 || char.Class[line[at-1]]&char.Word == 0 {
			return true
		}
		line = line[at+len(name):]
	}
}

// FindBeforePipe returns the password that echo or printf writes into the pipe at s[i] for a command that reads one
// from its standard input, such as sudo -S.
func FindBeforePipe(s []byte, i int) Word {
	start := i - len(lastLine(s[max(0, i-Reach):i]))
	if at := bytes.LastIndexAny(s[start:i], ";&|`("); at >= 0 {
		start += at + 1
	}
	w := nextWord(s[:i], start)
	if name := string(s[w.Start:w.End]); name != "echo" && name != "printf" {
		return Word{}
	}
	reader := findReader(s[i+1 : lineEnd(s, i+1)])
	if reader == noReader {
		return Word{}
	}
	var last Word
	for end := w.End; ; {
		if w = nextWord(s[:i], end); w.IsEmpty() {
			break
		}
		if end = w.End; end < i && char.IsQuote(s[end]) {
			end++
		}
		last = w
	}
	if reader == readsAccount {
		last.Start += bytes.IndexByte(s[last.Start:last.End], ':') + 1
	}
	last.End = last.Start + len(bytes.TrimSuffix(s[last.Start:last.End], []byte(`\n`)))
	return last
}

// reader is what a command reads from its standard input.
type reader uint8

const (
	noReader     reader = iota
	readsSecret         // a password
	readsAccount        // name:password
)

// findReader returns what the command after a pipe reads.
func findReader(line []byte) reader {
	w := nextWord(line, 0)
	switch name := line[w.Start:w.End]; {
	case string(name) == "sudo":
		if rest := line[w.End:]; bytes.Contains(rest, []byte("chpasswd")) {
			return readsAccount
		} else if bytes.HasPrefix(rest, []byte(" -S")) || bytes.HasPrefix(rest, []byte(" -kS")) {
			return readsSecret
		}
	case string(name) == "chpasswd":
		return readsAccount
	case string(name) == "kinit" || string(name) == "smbpasswd":
		return readsSecret
	}
	for _, flag := range [...]string{"--password-stdin", "--passphrase-fd 0", "--with-token", "--stdin", "pass stdin",
		"passin stdin"} {
		if bytes.Contains(line, []byte(flag)) {
			return readsSecret
		}
	}
	return noReader
}

// FindArgument returns the password that the command whose name is s[start:end] has as an argument: htpasswd -b FILE
// USER PASSWORD, and the account that chpasswd reads from a here string.
func FindArgument(s []byte, start, end int) Word {
	switch string(s[start:end]) {
	case "htpasswd":
		return findPlaced(s, end, 3, 'b')
	case "chpasswd":
		w := nextWord(s, end)
		if string(s[w.Start:w.End]) != "<<<" {
			return Word{}
		}
		w = nextWord(s, w.End)
		w.Start += bytes.IndexByte(s[w.Start:w.End], ':') + 1
		return w
	}
	return Word{}
}

// findPlaced returns the nth argument that is no flag. With need, one of the flags must have that letter.
func findPlaced(s []byte, i, n int, need byte) Word {
	has := need == 0
	for range n + 4 {
		w := nextWord(s, i)
		if w.IsEmpty() {
			break
		}
		if i = w.End; i < len(s) && char.IsQuote(s[i]) {
			i++
		}
		if s[w.Start] == '-' {
			has = has || bytes.IndexByte(s[w.Start:w.End], need) > 0
			continue
		}
		if n--; n == 0 && has {
			return w
		}
	}
	return Word{}
}

// FindAtSwitch returns the password of a Windows or remote desktop command at the colon of the switch "/user:" or "/p:"
// at s[i]: net use SHARE PASSWORD /user:NAME, xfreerdp /p:PASSWORD.
func FindAtSwitch(s []byte, i int) Word {
	low := i - len(lastLine(s[max(0, i-Reach):i]))
	line := s[low:i]
	switch {
	case bytes.HasSuffix(line, []byte("/p")) && (HasCommand(line, "xfreerdp") || HasCommand(line, "wfreerdp")):
		return nextWord(s, i+1)
	case bytes.HasSuffix(line, []byte("/user")) || bytes.HasSuffix(line, []byte("/USER")):
		if !HasCommand(line, "net use") && !HasCommand(line, "NET USE") {
			return Word{}
		}
	default:
		return Word{}
	}
	name := nextWord(s, i+1)
	if w := nextWord(s, name.End); !w.IsEmpty() && s[w.Start] != '/' {
		return w
	}
	before := bytes.TrimRight(line[:len(line)-len("/user")], " \t")
	b := bytes.LastIndexAny(before, " \t") + 1
	if w := before[b:]; b == 0 || len(w) == 0 || w[0] == '\\' || w[len(w)-1] == ':' || string(w) == "*" {
		return Word{}
	}
	return nextWord(s[:low+len(before)], low+b)
}

// nextWord returns the word of a command line that begins at or after s[i]; an empty one at the end of the line or of
// the command.
func nextWord(s []byte, i int) Word {
	for i < len(s) && char.Class[s[i]]&char.Blank != 0 {
		i++
	}
	stop := lineEnd(s, i)
	if i >= stop {
		return Word{}
	}
	if q := s[i]; q == '"' || q == '\'' {
		if n := bytes.IndexByte(s[i+1:stop], q); n > 0 {
			return Word{i + 1, i + 1 + n}
		}
	}
	e := i
	for e < stop && char.Class[s[e]]&char.Blank == 0 && s[e] != ';' && s[e] != '|' && s[e] != '`' && s[e] != ')' {
		e++
	}
	return Word{i, e}
}

// lineEnd returns the end of the line of s[i], at most Reach bytes on.
func lineEnd(s []byte, i int) int {
	stop := min(len(s), i+Reach)
	if i >= stop {
		return min(i, len(s))
	}
	if n := bytes.IndexByte(s[i:stop], '\n'); n >= 0 {
		return i + n
	}
	return stop
}

// lastLine returns what follows the last line break of s.
func lastLine(s []byte) []byte { return s[bytes.LastIndexByte(s, '\n')+1:] }

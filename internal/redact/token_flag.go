package redact

import "bytes"

// flag masks the argument of a secret-looking flag whose name starts at i:
// "--password hunter2", `"--token", "x"` in a list, "- --token" and "- x" in
// YAML. The form with "=" is an assignment.
func (x *scanner) flag(i int) int {
	e := x.end(i, 64, isIdent)
	v := e
	if v < len(x.s) && (isQuote(x.s[v]) || x.s[v] == '\\') {
		v = x.listed(v)
	} else if v = x.end(v, 8, isBlank); v == e {
		v = x.dashed(v)
	}
	if v == e || v >= len(x.s) || x.s[v] == '-' || v < x.low {
		return i
	}
	name := x.s[i:e]
	switch k := kindOfName(name); {
	case k.secret():
		x.value(v, k, '=', i)
	case isFold(name, "user") || isFold(name, "proxy-user"):
		x.userFlag(v)
	}
	return i
}

// listed returns where the next string of a list begins whose last one ends
// at the quote at i; i where there is none.
func (x *scanner) listed(i int) int {
	j := i
	for x.has(j, `\`) && j < i+8 {
		j++
	}
	if j == len(x.s) || !isQuote(x.s[j]) {
		return i
	}
	j++
	gap := x.end(j, 8, isBlank)
	if x.has(gap, ",") {
		gap = x.end(gap+1, 64, isSpace)
	} else if gap == j {
		return i
	}
	q := gap
	for x.has(q, `\`) && q < gap+8 {
		q++
	}
	if q < len(x.s) && isQuote(x.s[q]) && !x.has(q+1, "-") {
		return gap
	}
	return i
}

// dashed returns where the next item of a YAML list begins behind the line
// break at i; i where there is none.
func (x *scanner) dashed(i int) int {
	j := i
	if x.has(j, "\r") {
		j++
	}
	if !x.has(j, "\n") {
		return i
	}
	if j = x.end(j+1, 64, isBlank); !x.has(j, "- ") {
		return i
	}
	return x.end(j+2, 8, isBlank)
}

// userFlag masks the "name:password" of "curl -u name:password" at v. Numbers
// alone are a user and a group.
func (x *scanner) userFlag(v int) {
	if v < len(x.s) && isQuote(x.s[v]) {
		v++
	}
	end, colon, letters := v, false, false
	for ; end < len(x.s) && end < v+256 && class[x.s[end]]&isSpace == 0 && !isQuote(x.s[end]); end++ {
		colon = colon || x.s[end] == ':'
		letters = letters || class[x.s[end]]&isLetter != 0
	}
	x.touch(end)
	if colon && letters && x.is(v, isAlnum) && maskLen(x.s[v:end]) == 0 {
		x.mask(v, end, ruleAssignment)
	}
}

// short are flags of one letter that hold a password, and the commands that
// say so. Where glued, the password follows without a blank.
var short = [...]struct {
	letter   byte
	glued    bool
	commands []string
}{
	{'p', true, []string{"mysql", "mariadb", "sshpass", "7z"}},
	{'p', false, []string{"sshpass", "login", "mongo"}}, // mongosh, mongodump too
	{'P', false, []string{"sqlcmd", "bcp", "zip"}},
	{'a', false, []string{"redis-cli"}},
	{'w', false, []string{"ldapsearch", "ldapmodify", "ldapadd", "ldapdelete"}},
	{'k', false, []string{"openssl enc"}},
}

// reachCommand is how far before a flag its command is looked for.
const reachCommand = 128

// shortFlag judges the "-" at i that begins a word: "mysql -pSECRET",
// "sshpass -p x", "curl -u name:password".
func (x *scanner) shortFlag(i int) int {
	if i+3 >= len(x.s) {
		x.touched = true
		return i + 1
	}
	if x.s[i+1] == '-' || class[x.s[i+1]]&isLetter == 0 {
		return i + 1
	}
	c, v := x.s[i+1], x.end(i+2, 8, isBlank)
	if c == 'u' || c == 'U' {
		if c == 'u' || isCommand(x.before(i), "curl") {
			x.userFlag(v)
		}
		return i + 1
	}
	var line []byte
	for k := range short {
		f := &short[k]
		if f.letter != c || f.glued != (v == i+2) || v >= len(x.s) || x.s[v] == '-' {
			continue
		}
		if line == nil {
			line = x.before(i)
		}
		for _, name := range f.commands {
			if isCommand(line, name) {
				x.value(v, kindPassword, ' ', i)
				return i + 1
			}
		}
	}
	return i + 1
}

// before returns the line before i, as far as a flag's command is looked for.
func (x *scanner) before(i int) []byte {
	line := x.s[max(0, i-reachCommand):i]
	return line[bytes.LastIndexByte(line, '\n')+1:]
}

// isCommand says whether a command stands on a line.
func isCommand(line []byte, name string) bool {
	for {
		at := bytes.Index(line, []byte(name))
		if at < 0 {
			return false
		}
		if at == 0 || class[line[at-1]]&isWord == 0 {
			return true
		}
		line = line[at+len(name):]
	}
}

// setters are the words before a name and its value with a blank between:
// ENV of a Dockerfile, setenv of csh, set of others.
var setters = [...]string{"env", "setenv", "set", "configure set", "-x", "-gx", "-ux"}

// setting judges the "_" at i of a name such as API_KEY: "ENV API_KEY x".
func (x *scanner) setting(i int) {
	b := i
	for b > 0 && i-b < 48 && class[x.s[b-1]]&isIdent != 0 {
		b--
	}
	e := x.end(i, 48, isIdent)
	if e-i < 4 || !x.is(b-1, isBlank) || !x.is(e, isBlank) {
		return
	}
	w := b - 1
	for w > 0 && b-w < 6 && class[x.s[w-1]]&isBlank != 0 {
		w--
	}
	word := x.s[max(0, w-16):w]
	for _, name := range setters {
		if !endsFold(word, name) || len(word) > len(name) && class[word[len(word)-len(name)-1]]&isSpace == 0 {
			continue
		}
		v := x.end(e, 8, isBlank)
		if k := kindOfName(x.s[b:e]); k.secret() && v < len(x.s) && x.s[v] != '-' && x.s[v] != '=' && v >= x.low {
			x.value(v, k, ' ', b)
		}
		return
	}
}

// reachMachine is how far before a password a .netrc names its machine.
const reachMachine = 200

// netrc masks the password of "machine h login n password x", whose "w"
// stands at i; the three may stand on lines of their own.
func (x *scanner) netrc(i int) int {
	if !x.has(i-4, "password") || !x.begins(i-4) || !x.is(i+4, isSpace) {
		return i + 1
	}
	v := x.end(i+4, 8, isSpace)
	before := x.s[max(0, i-4-reachMachine) : i-4]
	at := max(bytes.LastIndex(before, []byte("machine ")), bytes.LastIndex(before, []byte("default")))
	if at < 0 || !bytes.Contains(before[at:], []byte("login ")) || v >= len(x.s) || v < x.low {
		return i + 1
	}
	e := v
	for e < len(x.s) && e < v+256 && class[x.s[e]]&isSpace == 0 {
		e++
	}
	if maskLen(x.s[v:]) == 0 {
		x.mask(v, e, ruleAssignment)
	}
	return i + 1
}

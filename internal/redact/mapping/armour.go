package mapping

import (
	"bytes"
	"strings"
)

// rulePrivateKey finds private keys, and their lines.
const rulePrivateKey = "secret.private_key"

// isArmour reports whether a value is a block such as a private key in PEM, or the beginning of one.
func isArmour(value []byte) bool {
	return bytes.HasPrefix(value, []byte("-----BEGIN ")) && bytes.Count(value, []byte("-----")) > 1
}

// replaceArmour replaces each line of base64 in a block by a placeholder, and leaves what is around the lines. So
// a key is restored however a model indents, quotes or escapes its lines, and one line of it is known in later texts.
// It returns nil if less than three fourths of the block are in lines.
func (r *Request) replaceArmour(rule string, text []byte) []byte {
	lines, body := listArmourLines(text)
	inLines := 0
	for _, l := range lines {
		inLines += countMixed(text[l.start:l.end])
	}
	if inLines*4 < countMixed(body)*3 || inLines == 0 {
		return nil
	}
	var out []byte
	at := 0
	for _, l := range lines {
		out = append(out, text[at:l.start]...)
		at = l.end
		line := bytes.ReplaceAll(text[l.start:l.end], []byte(`\/`), []byte("/"))
		p, known := r.findPlaceholder(rule, line)
		if !known {
			p = r.addDerived(rule, line, false)
		}
		if len(line) < l.end-l.start {
			p = bytes.ReplaceAll(p, []byte("/"), []byte(`\/`))
		}
		out = append(out, p...)
	}
	return append(out, text[at:]...)
}

// armourLine is a line of base64 in a block, or the value of a header.
type armourLine struct{ start, end int }

// listArmourLines returns the lines of base64 in a block, and all that is between its first line and its last.
func listArmourLines(text []byte) (list []armourLine, body []byte) {
	from, to := 0, len(text)
	if isArmour(text) {
		from = bytes.Index(text[5:], []byte("-----")) + 10
	}
	if foot := bytes.LastIndex(text, []byte("-----END ")); foot >= from {
		to = foot
	}
	var hasPlus, noPlus int
	for i := from; i < to; {
		if n := breakLen(text[i:to]); n > 0 {
			i += n
			continue
		}
		end := i
		for end < to && breakLen(text[end:to]) == 0 {
			end++
		}
		if l := trimLine(text, i, end); l.end > l.start {
			if list = append(list, l); text[l.start] == '+' {
				hasPlus++
			} else {
				noPlus++
			}
		}
		i = end
	}
	for i, l := range list { // the sign of a diff does not belong to a line
		if isAdded := noPlus == 0 && hasPlus > 1 || (l.end-l.start)%4 == 1; text[l.start] == '+' && isAdded {
			list[i].start++
		}
	}
	return list, text[from:to]
}

// breakLen returns the length of the break of a line that text begins with, escaped or not; 0 for none.
func breakLen(text []byte) int {
	switch text[0] {
	case '\n', '\r':
		return 1
	case '\\', '%':
	default:
		return 0
	}
	n := 0
	for n < len(text) && text[n] == '\\' {
		n++
	}
	switch {
	case n > 0 && n < len(text) && (text[n] == 'n' || text[n] == 'r'):
		return n + 1
	case n > 0 && len(text) >= n+5 && (string(text[n:n+5]) == "u000a" || string(text[n:n+5]) == "u000d"):
		return n + 5
	case len(text) >= 3 && (strings.EqualFold(string(text[:3]), "%0a") || strings.EqualFold(string(text[:3]), "%0d")):
		return 3
	}
	return 0
}

// trimLine returns the longest run of base64 in text[start:end], or what follows the name of a header. It ignores
// short words.
func trimLine(text []byte, start, end int) (longest armourLine) {
	line := text[start:end]
	if name, value, ok := bytes.Cut(line, []byte(": ")); ok && !bytes.ContainsAny(name, `"'`) && len(name) < 40 {
		if countMixed(value) < minMixed {
			return armourLine{}
		}
		return armourLine{end - len(value), end}
	}
	for i := start; i < end; {
		n := 0
		for i+n < end {
			if c := text[i+n]; isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '=' {
				n++
			} else if c == '\\' && i+n+1 < end && text[i+n+1] == '/' {
				n += 2
			} else {
				break
			}
		}
		if n > longest.end-longest.start {
			longest = armourLine{i, i + n}
		}
		i += n + 1
	}
	if n := longest.end - longest.start; n < 4 || n < 16 && n%4 > 1 {
		return armourLine{}
	}
	return longest
}

// isKnownArmour reports whether all lines of a block are placeholders of the session. mu must be held.
func (s *Session) isKnownArmour(text []byte) bool {
	lines, _ := listArmourLines(text)
	for _, l := range lines {
		if s.byPlaceholder[strings.ReplaceAll(string(text[l.start:l.end]), `\/`, "/")] == nil {
			return false
		}
	}
	return len(lines) > 0
}

// makeArmour is makeLike, with what begins and ends the block unchanged.
func (s *source) makeArmour(value []byte) string {
	var out []byte
	head := bytes.Index(value[5:], []byte("-----")) + 10
	foot := bytes.LastIndex(value, []byte("-----END "))
	if foot < head {
		foot = len(value)
	}
	out = append(append(append(out, value[:head]...), s.makeLike(value[head:foot], 0)...), value[foot:]...)
	return string(out)
}

package redact

// A block is the value of a name on the lines under it, as YAML writes it.

// maxBlock is how much of a block is masked: the reach of a detector.
const maxBlock = 4096

// block masks the block of a name that begins at name, with the value's place
// at v: behind "|" or ">", or one plain word on the next line. It says whether
// it is one. A block that begins with a mask is done.
func (x *scanner) block(v, name int, k kind) bool {
	indent, ok := x.indentation(name)
	if !ok || !k.secret() {
		return false
	}
	line, plain := v, true
	if v < len(x.s) && (x.s[v] == '|' || x.s[v] == '>') {
		plain = false
		for line++; x.is(line, isDigit) || x.has(line, "-") || x.has(line, "+"); {
			line++
		}
		line = x.end(line, 8, isBlank)
	}
	if x.has(line, "\r") {
		line++
	}
	if !x.has(line, "\n") {
		return false
	}
	start, end := x.indented(line, indent, v+maxBlock, plain)
	if end == start {
		return !plain
	}
	if text := x.s[start:end]; maskLen(text) > 0 || plain && !isPlain(text) || innocuous(text, k) {
		return true
	}
	x.mask(start, end, ruleAssignment)
	return true
}

// indentation is the column of the name at i, over a list's dash and a quote;
// false where something else stands before it on its line.
func (x *scanner) indentation(i int) (int, bool) {
	b := i
	for b > 0 && i-b < 64 && (class[x.s[b-1]]&isBlank != 0 || x.s[b-1] == '-' || isQuote(x.s[b-1])) {
		b--
	}
	return i - b, b == 0 || x.s[b-1] == '\n'
}

// indented returns the lines behind the line break at i that stand deeper
// than indent, to limit; one line where they are to be plain.
func (x *scanner) indented(i, indent, limit int, plain bool) (start, end int) {
	for i < len(x.s) && i < limit {
		text := x.end(i+1, 128, isBlank)
		e := text
		for e < len(x.s) && e < limit && x.s[e] != '\n' {
			e++
		}
		x.touch(e)
		if blank := e == text || e == text+1 && x.s[text] == '\r'; !blank {
			if text-i-1 <= indent {
				break
			}
			if start == 0 {
				start = text
			}
			for end = e; end > start && class[x.s[end-1]]&isSpace != 0; {
				end--
			}
			if plain {
				break
			}
		} else if plain {
			break
		}
		i = e
	}
	return start, end
}

// isPlain says whether a line is one word that is a value, not a member or an
// item of a list.
func isPlain(v []byte) bool {
	for _, c := range v {
		if class[c]&isSpace != 0 {
			return false
		}
	}
	return v[0] != '-' && v[0] != '#' && v[0] != '{' && v[0] != '[' && v[len(v)-1] != ':'
}

package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// A block is the value of a name on the lines under it, as YAML writes it.

// maxBlock bounds how far a block is masked, in bytes: as far as a search reaches.
const maxBlock = 4096

// block masks the block of a name that begins at name, with the value's place
// at v: after "|" or ">", or one plain word on the next line. It reports whether
// it is one. A block that begins with a mask is done.
func (x *Scanner) block(v, name int, k fieldname.Kind) bool {
	indent, ok := x.indentation(name)
	if !ok || !k.IsSecret() {
		return false
	}
	if x.tagged(v) {
		if at := x.End(x.End(v+1, maxTail, char.Ident), 8, char.Blank); x.Has(at, "|") || x.Has(at, ">") {
			if v = at; at+1 == len(x.S) {
				return true
			}
		}
	}
	line, plain := v, true
	if v < len(x.S) && (x.S[v] == '|' || x.S[v] == '>') {
		plain = false
		for line++; x.Is(line, char.Digit) || x.Has(line, "-") || x.Has(line, "+"); {
			line++
		}
		line = x.End(line, 8, char.Blank)
	}
	if x.Has(line, "\r") {
		line++
	}
	if !x.Has(line, "\n") {
		return false
	}
	start, end := x.indented(line, indent, v+maxBlock, plain)
	if end == start {
		return !plain
	}
	if plain && x.Has(start, "- ") {
		x.maskItems(start, k)
		return true
	}
	if text := x.S[start:end]; mask.Len(text) > 0 || plain && !isPlain(text) || !fieldname.CanHold(k, text) {
		return true
	}
	x.mask(start, end, rule.Assignment)
	return true
}

// indentation is the column of the name at i, over a list's dash and a quote;
// false where something else stands before it on its line.
func (x *Scanner) indentation(i int) (int, bool) {
	b := i
	for b > 0 && i-b < 64 && (char.Class[x.S[b-1]]&char.Blank != 0 || x.S[b-1] == '-' || char.IsQuote(x.S[b-1])) {
		b--
	}
	return i - b, b == 0 || x.S[b-1] == '\n'
}

// indented returns the lines after the line break at i that are deeper
// than indent, to limit; one line where they are to be plain.
func (x *Scanner) indented(i, indent, limit int, plain bool) (start, end int) {
	for i < len(x.S) && i < limit {
		text := x.End(i+1, 128, char.Blank)
		e := text
		for e < len(x.S) && e < limit && x.S[e] != '\n' {
			e++
		}
		x.Touch(e)
		if blank := e == text || e == text+1 && x.S[text] == '\r'; !blank {
			if text-i-1 <= indent {
				break
			}
			if start == 0 {
				start = text
			}
			for end = e; end > start && char.Class[x.S[end-1]]&char.Space != 0; {
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
		if char.Class[c]&char.Space != 0 || char.IndexByte("(){};", c) >= 0 {
			return false
		}
	}
	return v[0] != '-' && v[0] != '#' && v[0] != '{' && v[0] != '[' && v[len(v)-1] != ':'
}

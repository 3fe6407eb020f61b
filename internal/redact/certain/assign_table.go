package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
)

// maxTable is the number of bytes of a table that are masked by its head.
const maxTable = MaxAhead / 2

// maskTableCell judges the cell of a table of Markdown after the "|" at i: a head above values, or
// a name before one.
func (x *Scanner) maskTableCell(i int) int {
	b := x.End(i+1, 8, char.Blank)
	if b == i+1 || i < x.low || b < len(x.S) && char.Class[x.S[b]]&char.Word == 0 && x.S[b] != '*' && x.S[b] != '`' &&
		x.S[b] != '_' {
		return i + 1
	}
	e := x.endOfCell(b, '|')
	if e < 0 || !mayEndName(x.S[e-1]) {
		return i + 1
	}
	k := fieldname.OfName(x.S[b:e])
	if k != fieldname.Password && k != fieldname.Secret || e-b > 40 {
		return i + 1
	}
	eol := lineEnd(x.S, e, i+MaxBefore)
	x.Touch(eol)
	next := x.End(eol+1, 8, char.Blank)
	rule := lineEnd(x.S, next, next+MaxBefore)
	x.Touch(rule)
	if eol < len(x.S) && isRuler(x.S[min(next, rule):rule]) {
		low := max(0, i-MaxBefore)
		first := low + bytes.LastIndexByte(x.S[low:i], '\n') + 1
		x.maskColumn(rule+1, '|', bytes.Count(x.S[first:i], []byte("|")), k)
		return i + 1
	}
	sep := b + bytes.IndexByte(x.S[b:eol], '|')
	if begin := x.back(i, max(0, i-8), char.Blank, ""); sep < b || begin > 0 && x.S[begin-1] != '\n' {
		return i + 1
	}
	v := x.End(sep+1, 8, char.Blank)
	if end := x.endOfCell(v, '|'); end > v {
		x.maskCell(v, end, k)
	}
	return i + 1
}

// mayEndName reports whether c ends a word for a secret.
func mayEndName(c byte) bool {
	return char.IndexByte("ndtysehw*`", c|0x20) >= 0 || c == '*' || c == '`'
}

// lineEnd returns the offset of the line break after i, at most stop.
func lineEnd(s []byte, i, stop int) int {
	stop = min(stop, len(s))
	if i >= stop {
		return stop
	}
	if n := bytes.IndexByte(s[i:stop], '\n'); n >= 0 {
		return i + n
	}
	return stop
}

// endOfCell returns the end of the cell at b without the blanks at it, or -1 if its line
// ends first or it is empty.
func (x *Scanner) endOfCell(b int, sep byte) int {
	e := b
	for e < len(x.S) && e < b+MaxBefore && x.S[e] != sep && x.S[e] != '\n' {
		e++
	}
	x.Touch(e)
	if e == b || e >= len(x.S) || sep == '|' && x.S[e] != sep {
		return -1
	}
	for e > b && char.Class[x.S[e-1]]&char.Space != 0 {
		e--
	}
	if e == b {
		return -1
	}
	return e
}

// isRuler reports whether a line is the one below the head of a table.
func isRuler(s []byte) bool {
	for _, c := range s {
		if char.IndexByte("|-: \t\r", c) < 0 {
			return false
		}
	}
	return bytes.Contains(s, []byte("--"))
}

// maskCell masks what is in the cell [b, e) if it looks like a secret.
func (x *Scanner) maskCell(b, e int, k fieldname.Kind) {
	for b < e && char.IndexByte("\"'`*", x.S[b]) >= 0 && x.S[e-1] == x.S[b] {
		b, e = b+1, e-1
	}
	if b < e && b >= x.low && isAssigned(x.S[b:e], k, true) {
		x.mask(b, e, ruleOf(k, false))
	}
}

// maskColumn masks the cells of the nth column of the rows from i on.
func (x *Scanner) maskColumn(i int, sep byte, n int, k fieldname.Kind) {
	for stop := min(len(x.S), i+maxTable); i < stop; {
		end := lineEnd(x.S, i, len(x.S))
		row := x.S[i:end]
		b, ok := nthCell(row, sep, n)
		if !ok {
			break
		}
		e := b
		for e < len(row) && row[e] != sep {
			e++
		}
		cell := bytes.TrimSpace(row[b:e])
		if len(cell) > 0 {
			at := i + b + bytes.Index(row[b:e], cell)
			x.maskCell(at, at+len(cell), k)
		}
		i = end + 1
	}
	x.Touch(i)
}

// nthCell returns the offset after the nth sep of a row.
func nthCell(row []byte, sep byte, n int) (int, bool) {
	at := 0
	for ; n >= 0; n-- {
		if sep != '|' && n == 0 {
			return at, len(bytes.TrimSpace(row)) > 0
		}
		k := bytes.IndexByte(row[at:], sep)
		if k < 0 {
			return 0, false
		}
		at += k + 1
	}
	return at, true
}

// maskBelowHead masks the column below the name around i where that is in the head of a table
// whose cells a comma, a semicolon or a tab ends.
func (x *Scanner) maskBelowHead(i int) {
	low := max(0, i-MaxBefore)
	first := bytes.LastIndexByte(x.S[low:i], '\n')
	if first < 0 && low > 0 {
		return
	}
	b := low + first + 1
	e := lineEnd(x.S, i, i+MaxBefore)
	x.Touch(e)
	if e >= len(x.S) || e < x.low {
		return
	}
	head := bytes.TrimSuffix(x.S[b:e], []byte("\r"))
	sep := byte(0)
	for _, c := range head {
		switch {
		case c == ',' || c == ';' || c == '\t':
			if sep != 0 && sep != c {
				return
			}
			sep = c
		case char.Class[c]&char.Word == 0 && char.IndexByte("_- \"", c) < 0:
			return
		}
	}
	if sep == 0 || bytes.Contains(head, []byte{sep, ' '}) || char.Class[head[0]]&char.Space != 0 ||
		head[len(head)-1] == sep {
		return
	}
	n := bytes.Count(x.S[b:i], []byte{sep})
	from, _ := nthCell(head, sep, n)
	name := head[from:]
	if to := bytes.IndexByte(name, sep); to >= 0 {
		name = name[:to]
	}
	if k := fieldname.OfName(name); k == fieldname.Password || k == fieldname.Secret {
		x.maskColumn(e+1, sep, n, k)
	}
}

// headBehind judges the cell after the "," at i as the head of a table.
func (x *Scanner) headBehind(i int) int {
	if !x.Is(i+1, char.Letter) {
		return i + 1
	}
	e := x.End(i+1, 40, char.Ident)
	if e < len(x.S) && x.S[e] != ',' && x.S[e] != '\n' && x.S[e] != '\r' || char.IndexByte("nty", x.S[e-1]|0x20) < 0 {
		return i + 1
	}
	if k := fieldname.OfName(x.S[i+1 : e]); k == fieldname.Secret {
		x.maskBelowHead(i + 1)
	}
	return i + 1
}

// maskInserted masks the values that SQL inserts into the column whose name ends at e:
// INSERT INTO t (a, password) VALUES (1, 'x').
func (x *Scanner) maskInserted(start, e int) {
	low := max(0, start-MaxBefore)
	open := bytes.LastIndexByte(x.S[low:start], '(')
	if open < 0 || bytes.ContainsAny(x.S[low+open+1:start], ")\"'=;") {
		return
	}
	n := bytes.Count(x.S[low+open+1:start], []byte(","))
	stop := min(len(x.S), e+MaxBefore)
	x.Touch(e + MaxBefore)
	end := bytes.IndexByte(x.S[e:stop], ')')
	if end < 0 {
		return
	}
	v := x.End(e+end+1, 16, char.Space)
	if !x.Fold(v, "values") {
		return
	}
	v = x.End(v+6, 16, char.Space)
	for tuple := 0; tuple < 32 && x.Has(v, "("); tuple++ {
		at := v + 1
		for k := 0; ; k++ {
			at = x.End(at, 16, char.Space)
			b, to, after := x.stringAt(at)
			if after == 0 {
				for after = at; after < len(x.S) && after < at+MaxBefore && x.S[after] != ',' &&
					x.S[after] != ')'; after++ {
				}
			} else if k == n && b >= x.low && isAssigned(x.S[b:to], fieldname.Password, false) {
				x.mask(b, to, ruleOf(fieldname.Password, false))
			}
			if at = x.End(after, 16, char.Space); !x.Has(at, ",") {
				break
			}
			at++
		}
		if !x.Has(at, ")") {
			return
		}
		if v = x.End(at+1, 16, char.Space); !x.Has(v, ",") {
			return
		}
		v = x.End(v+1, 16, char.Space)
	}
}

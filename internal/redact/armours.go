package redact

import "bytes"

// armours counts the private keys whose armour has begun and has not ended, by
// the two forms that their ends have: one may lie in another, or across its
// end, and all of it is hidden until every one has ended.
type armours struct{ pem, ssh2 int }

// maxArmours bounds how many are counted; of more none ends any more.
const maxArmours = 64

// armourMark is what may stand behind dashes.
type armourMark uint8

const (
	markNone  armourMark = iota
	markShort            // only more text can tell
	markPEM
	markPEMEnd
	markSSH2
	markSSH2End
)

// endOfArmours finds where the last of the open armours ends, from i on: where
// its end begins, and where that ends. Where some do not end, left is those,
// and the search for their ends goes on at end.
func (x *scanner) endOfArmours(i int, open armours) (stop, end int, left armours) {
	for {
		n := bytes.Index(x.s[i:], []byte("----"))
		if n < 0 {
			x.touched = true
			return len(x.s), max(i, len(x.s)-len("---")), open
		}
		start := i + n
		for i = start + len("----"); i < len(x.s) && x.s[i] == '-'; i++ {
		}
		start = max(start, i-len("-----"))
		m, end := x.armourAt(start, i)
		if m == markShort {
			x.touched = true
			return len(x.s), start, open
		}
		if open.count(m); open == (armours{}) {
			return start, end, armours{}
		}
		if m == markPEM {
			i = end // its last dashes are no end's
		}
	}
}

// count takes one mark. An end without a beginning ends nothing.
func (a *armours) count(m armourMark) {
	switch {
	case a.pem+a.ssh2 > maxArmours:
	case m == markPEM:
		a.pem++
	case m == markSSH2:
		a.ssh2++
	case m == markPEMEnd && a.pem > 0:
		a.pem--
	case m == markSSH2End && a.ssh2 > 0:
		a.ssh2--
	}
}

// armourAt tells what the dashes in [start, i), of which none follows, begin,
// and where that ends.
func (x *scanner) armourAt(start, i int) (armourMark, int) {
	switch {
	case x.cut(i, "BEGIN "), x.cut(i, "END"), x.cut(i, " BEGIN SSH2 "), x.cut(i, " END SSH2"):
		return markShort, i
	case i-start == len("-----") && x.has(i, "BEGIN "):
		return x.pemMark(i+len("BEGIN "), markPEM)
	case i-start == len("-----") && x.has(i, "END"):
		return x.pemMark(i+len("END"), markPEMEnd)
	case x.has(i, " BEGIN SSH2 "):
		return x.ssh2Mark(i + len(" BEGIN SSH2 "))
	case x.has(i, " END SSH2"):
		return markSSH2End, x.end(i+len(" END SSH2"), 64, isUpper|isBlank|isSymbol)
	}
	return markNone, i
}

// cut says whether more text could make word of what stands at i.
func (x *scanner) cut(i int, word string) bool {
	rest := x.s[i:]
	return x.more && len(rest) < len(word) && string(rest) == word[:len(rest)]
}

// pemMark reads the label behind a BEGIN or an END. One that is not a private
// key's begins nothing, and ends nothing; an END may have none.
func (x *scanner) pemMark(label int, m armourMark) (armourMark, int) {
	n := bytes.Index(x.s[label:min(len(x.s), label+maxLabel)], []byte("-----"))
	if n < 0 {
		if x.more && label+maxLabel > len(x.s) {
			return markShort, label
		}
		if m == markPEM {
			m = markNone
		}
		return m, label
	}
	private := isPrivate(x.s[label : label+n])
	switch {
	case m == markPEM && !private, m == markPEMEnd && !private && isArmourLabel(x.s[label:label+n]):
		return markNone, label
	}
	return m, label + n + len("-----")
}

// isArmourLabel says whether s is the label of an armour, of any kind.
func isArmourLabel(s []byte) bool {
	if len(s) < 2 || s[0] != ' ' {
		return false
	}
	for _, c := range s[1:] {
		if class[c]&(isUpper|isDigit) == 0 && c != ' ' {
			return false
		}
	}
	return true
}

func (x *scanner) ssh2Mark(label int) (armourMark, int) {
	n := bytes.IndexByte(x.s[label:min(len(x.s), label+maxLabel)], '\n')
	switch {
	case n < 0 && x.more && label+maxLabel > len(x.s):
		return markShort, label
	case n < 0 || !isPrivate(x.s[label:label+n]):
		return markNone, label
	}
	return markSSH2, label + n
}

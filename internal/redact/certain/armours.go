package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

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
func (x *Scanner) endOfArmours(i int, open armours) (stop, end int, left armours) {
	for {
		n := bytes.Index(x.S[i:], []byte("----"))
		if n < 0 {
			x.Touched = true
			return len(x.S), max(i, len(x.S)-len("---")), open
		}
		start := i + n
		for i = start + len("----"); i < len(x.S) && x.S[i] == '-'; i++ {
		}
		start = max(start, i-len("-----"))
		m, end := x.armourAt(start, i)
		if m == markShort {
			x.Touched = true
			return len(x.S), start, open
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
func (x *Scanner) armourAt(start, i int) (armourMark, int) {
	switch {
	case x.cut(i, "BEGIN "), x.cut(i, "END"), x.cut(i, " BEGIN SSH2 "), x.cut(i, " END SSH2"):
		return markShort, i
	case i-start == len("-----") && x.Has(i, "BEGIN "):
		return x.pemMark(i+len("BEGIN "), markPEM)
	case i-start == len("-----") && x.Has(i, "END"):
		return x.pemMark(i+len("END"), markPEMEnd)
	case x.Has(i, " BEGIN SSH2 "):
		return x.ssh2Mark(i + len(" BEGIN SSH2 "))
	case x.Has(i, " END SSH2"):
		return markSSH2End, x.End(i+len(" END SSH2"), 64, char.Upper|char.Blank|char.Symbol)
	}
	return markNone, i
}

// cut says whether more text could make word of what stands at i.
func (x *Scanner) cut(i int, word string) bool {
	rest := x.S[i:]
	return x.more && len(rest) < len(word) && string(rest) == word[:len(rest)]
}

// pemMark reads the label behind a BEGIN or an END. One that is not a private
// key's begins nothing, and ends nothing; an END may have none.
func (x *Scanner) pemMark(label int, m armourMark) (armourMark, int) {
	n := bytes.Index(x.S[label:min(len(x.S), label+maxLabel)], []byte("-----"))
	if n < 0 {
		if x.more && label+maxLabel > len(x.S) {
			return markShort, label
		}
		if m == markPEM {
			m = markNone
		}
		return m, label
	}
	private := isPrivate(x.S[label : label+n])
	switch {
	case m == markPEM && !private, m == markPEMEnd && !private && isArmourLabel(x.S[label:label+n]):
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
		if char.Class[c]&(char.Upper|char.Digit) == 0 && c != ' ' {
			return false
		}
	}
	return true
}

func (x *Scanner) ssh2Mark(label int) (armourMark, int) {
	n := bytes.IndexByte(x.S[label:min(len(x.S), label+maxLabel)], '\n')
	switch {
	case n < 0 && x.more && label+maxLabel > len(x.S):
		return markShort, label
	case n < 0 || !isPrivate(x.S[label:label+n]):
		return markNone, label
	}
	return markSSH2, label + n
}

// Package certain finds values that have a form of their own, or the name of a secret next to
// them: tokens and keys of known forms (files token*, secrets, armours), credentials in addresses
// (conn), values after a name (assign*), numbers and addresses that name a person (numbers*,
// ident*). A Scanner reads a text from one trigger to the next: find.go skips to the triggers,
// scan.go selects the search for each (look), stretch.go ends long findings.
//
// Every search decides within MaxBefore bytes before its trigger and MaxAhead after
// it; a span may continue over a run of one class, to its line's end, a closing quote or
// an armour's end. Words for a number are looked for in 40 bytes before it (reachNear), a
// flag's command in 128 (command.Reach), the rest of a connection string in 160 and six
// settings (reachSettings), a .netrc's machine in 200 (reachMachine), the name of a pair in
// 200 on both sides (reachPair), a type before "=" in 64 (reachType), the verb of a sentence
// in 60 (reachSentence); package line reads 200 bytes before a name and after its value. A
// block of YAML is read 4096 bytes far (maxBlock), the rows below a table's head 2048
// (maxTable), a webhook's path and a hash in the PHC form 512, an authority 256, what
// follows a token's prefix 128 (token.MaxFollow). A mask begins in the word of its trigger or
// after it, except after the words that Leads knows.
package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// trigger has the bytes at which the scanner stops and searches around.
var trigger = triggers()

func triggers() (t [256]bool) {
	for _, c := range []byte("0123456789@:=>+%-_.JKSzbBwW(|?,#ie\x9a") {
		t[c] = true
	}
	return t
}

// The reach of a search, which streaming relies on. To decide, it reads at most
// MaxBefore bytes before its trigger and MaxAhead after it. A span may then
// continue over a run of one class, to a line's end, a closing quote or an
// armour's end. One longer than span.MaxLen hides the rest of its line, without
// a further search. maxTail bounds the bytes that are cut from its end,
// maxBlanks the blanks before a value, and maxJudged the bytes of a value that
// are read to reject it.
const (
	MaxBefore = 256
	MaxAhead  = 4096
	maxTail   = 64
	maxBlanks = 256
	maxJudged = 2048
)

// Scanner reads one text once. A finding does not end the search inside it,
// because what is masked may be the head of something longer ("password:"
// before a key's armour); spans that overlap are joined afterwards.
type Scanner struct {
	state
	// lately is only what s says: a judgement that is undone leaves it.
	lately lately
}

// state is what a scanner has found and where it is.
type state struct {
	cursor.Cursor
	spans []span.Span
	// low is the end of what is masked so far, joined whether spans overlap.
	low    int
	joined bool
	// What keeps the time linear: atLow is where the last "@" was, so that
	// no byte is read leftwards twice; jwtLow the end of a run that has been
	// judged, pemLow where the last armour ends.
	atLow, jwtLow, pemLow int
	// [wordless, wordlessEnd) has no letter: numbers that follow each other look
	// for a word before them once.
	wordless, wordlessEnd int
	// A span longer than span.MaxLen extends to the end of its line. Nothing but an
	// armour is looked for in [deaf, wake), which ends MaxAhead before that.
	deaf, wake int
	// more says that text may follow, and ending what of a long span has not
	// been seen yet.
	more   bool
	ending ending
	// sought is where that has been looked for, top where the other spans
	// end; body is the armour that has not ended, unended the one in hand.
	sought, top   int
	body, unended armourBody
	// keyed is the end of the value that maskKey has read last.
	keyed int
	// webKeyEnd is where the JSON Web Key ends at the latest whose type was read.
	webKeyEnd int
	// last makes every span extend to the end of its line (see engine.MaxPasses).
	last bool
}

func (x *Scanner) run() {
	f := newFinder(x.S)
	for i := f.next(0); i < len(x.S); i = f.next(i) {
		if i >= x.wake {
			i = max(i+1, x.look(i))
		} else {
			i = x.listen(i)
		}
	}
}

// look searches at the trigger at i, and returns the place from which to continue.
func (x *Scanner) look(i int) int {
	s := x.S
	c := s[i]
	if c-'0' <= 9 {
		return x.digits(i)
	}
	switch c {
	case '@':
		if x.driverAddress(i) {
			return i + 1
		}
		return x.email(i, 1)
	case ':', '=':
		if end := mask.PseudonymEnd(s, i); end > 0 && c == ':' {
			return end
		}
		if c == ':' && x.webKeyMember(i) {
			return i + 1
		}
		return x.assign(i, 1, c)
	case '>':
		return x.element(i)
	case '+':
		return x.plusPhone(i, 1)
	case '%':
		return x.percent(i)
	case '-':
		x.longFlag(i)
		return x.dash(i)
	case '(':
		return x.maskArgument(i)
	case '|', '?':
		return x.maskBehindOperator(i)
	case ',':
		return x.headBehind(i)
	case '#':
		return x.maskMacro(i)
	case 'i', 'e':
		if i+1 >= len(s) || s[i+1] == 's' {
			return x.maskAfterVerb(i)
		}
	case 0x9a:
		return x.wideColon(i)
	case '_', '.':
		return x.prefix(i)
	case 'J':
		return x.jwt(i)
	case 'K', 'S':
		return x.awsKeyID(i)
	case 'z':
		return x.google(i)
	case 'b', 'B':
		if x.sqlPassword(i, "by", "identified") {
			return i + 1
		}
		return x.scheme(i)
	case 'w', 'W':
		if i > 4 && x.sqlPassword(i-4, "password", "with", "encrypted", "set") {
			return i + 1
		}
		if i >= 4 && s[i-1]|0x20 == 's' {
			x.maskSpoken(i)
		}
		if i > 4 && s[i-1] == 's' {
			return x.netrc(i)
		}
	}
	return i + 1
}

// mask records [start, end).
func (x *Scanner) mask(start, end int, r rule.Rule) {
	if end-start > span.MaxLen || x.last {
		x.maskLong(start, end, r)
		return
	}
	if x.ending != endNone {
		x.top = max(x.top, end)
	}
	x.joined = x.joined || start < x.low
	x.spans = append(x.spans, span.Span{Start: start, End: end, Rule: r})
	x.low = max(x.low, end)
}

// rest returns the end of the run that begins at i, read from low on: what is
// masked already is not read again.
func (x *Scanner) rest(i int, bits uint16) int {
	return x.End(max(i, x.low), len(x.S), bits)
}

// percent reads the URL-encoded forms of "@", ":", "=" and "+".
func (x *Scanner) percent(i int) int {
	if i+3 > len(x.S) {
		return i + 1
	}
	switch hi, lo := x.S[i+1], x.S[i+2]|0x20; {
	case hi == '4' && lo == '0'|0x20:
		return x.email(i, 3)
	case hi == '3' && lo == 'd':
		return x.assign(i, 3, '=')
	case hi == '3' && lo == 'a':
		return x.assign(i, 3, ':')
	case hi == '2' && lo == 'b':
		return x.plusPhone(i, 3)
	}
	return i + 1
}

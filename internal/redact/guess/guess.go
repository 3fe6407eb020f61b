// Package guess finds what only surroundings show: opaque secrets (generic), phone
// numbers without a country code (phone), names of people (person) and postal addresses
// (place). What it finds never touches what is certain.
package guess

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/placeholder"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// Probable is a set of kinds that only surroundings tell. What is masked for
// it is a guess: rule names "guess.…".
type Probable uint8

const (
	// Secrets are long random strings that no format tells.
	Secrets Probable = 1 << iota
	// Phones are numbers without a country code.
	Phones
	// Names are names of people.
	Names
	// Addresses are postal addresses.
	Addresses

	// Everything is all of them.
	Everything = Secrets | Phones | Names | Addresses
)

// Guesser finds what only its surroundings tell. It reads a text once, from
// trigger to trigger: a sign of assignment, a number, a word that announces a
// name, a long run of characters. It looks at most 256 bytes behind a trigger
// and 1024 ahead to decide, so its time is linear in the text; a value that an
// assignment names may go on over one run of opaque characters (D25b).
type Guesser struct{ want Probable }

// New returns one that finds what is wanted.
func New(want Probable) *Guesser { return &Guesser{want} }

// guessBehind and guessAhead bound how far a decision looks.
const (
	guessBehind = 256
	guessAhead  = 1024
)

// Find returns guesses in order and apart; none touches one of taken, which
// is in order and apart too.
func (g *Guesser) Find(s []byte, taken []span.Span) []span.Span {
	x := reader{Cursor: cursor.Cursor{S: s}, want: g.want, taken: taken}
	x.wall()
	x.read()
	if x.joined {
		return span.Union(x.spans)
	}
	return x.spans
}

// reader is one reading of one text.
type reader struct {
	cursor.Cursor
	spans []span.Span
	// low is where the last guess ends, joined whether guesses overlap.
	low    int
	joined bool
	want   Probable
	taken  []span.Span
	// lo and hi are the walls: what is certain, and masks, end before lo and
	// begin at hi. Nothing is read or masked beyond them.
	lo, hi int
	// groupLow is where the last number's groups end.
	groupLow int
	// placeLow is where the last address ends.
	placeLow int
	// valueLow is where the last value ends that was looked at.
	valueLow int
	// email says that what begins at hi is an address.
	email bool
}

// wall puts hi before the next certain thing.
func (x *reader) wall() {
	x.hi, x.email = len(x.S), false
	if len(x.taken) > 0 {
		x.hi, x.email = x.taken[0].Start, x.taken[0].Rule == rule.Email
	}
}

func (x *reader) read() {
	for i := 0; i < len(x.S); {
		if i >= x.hi {
			i = max(i, x.taken[0].End)
			x.lo, x.taken = i, x.taken[1:]
			x.wall()
			continue
		}
		if char.Class[x.S[i]]&char.Word == 0 {
			i = x.sign(i)
			continue
		}
		if w := space(x.S, i); w > 0 {
			i += w
			continue
		}
		i = x.run(i)
	}
}

// sign judges a byte that is of no word and returns where to go on.
func (x *reader) sign(i int) int {
	switch x.S[i] {
	case '=', ':':
		if x.want&Secrets != 0 {
			x.opaqueValue(i)
		}
		if x.want&Names != 0 {
			x.personField(i)
		}
	case '[', '<', '*':
		if n := placeholder.Len(x.S[i:x.hi]); n > 0 {
			x.lo = i + n
			return i + n
		}
		if x.S[i] == '<' && x.want&Names != 0 {
			x.displayName(i)
		}
	}
	return i + 1
}

// space returns the width of a space, a quote or a dash of typography at i:
// they stand above ASCII but belong to no word. 0 is none.
func space(s []byte, i int) int {
	if s[i] < 0xc2 || i+1 >= len(s) {
		return 0
	}
	switch c, d := s[i], s[i+1]; {
	case c == 0xc2 && (d == 0xa0 || d == 0xab || d == 0xbb || d == 0xb7):
		return 2
	case c == 0xe2 && d == 0x80, c == 0xe3 && d == 0x80, c == 0xef && d == 0xbc:
		return min(3, len(s)-i)
	}
	return 0
}

// run reads the run of words at i, joined by single signs, and has it judged.
func (x *reader) run(i int) int {
	var have uint16
	first, j := 0, i
	joins := uint(0)
	for j < x.hi && char.Class[x.S[j]]&char.Alnum != 0 { // most runs are one plain word
		have |= char.Class[x.S[j]]
		j++
	}
	for j < x.hi {
		c := x.S[j]
		if c >= 0xc2 && space(x.S, j) > 0 {
			break
		}
		if char.Class[c]&char.Word == 0 {
			if first == 0 {
				first = j
			}
			k := joint(c)
			if k == 0 || j+1 >= x.hi || char.Class[x.S[j+1]]&char.Word == 0 && joint(x.S[j+1]) == 0 {
				break
			}
			joins |= k
		}
		have |= char.Class[c]
		j++
	}
	if first == 0 {
		first = j
	}
	x.words(i, first)
	if x.want&Secrets != 0 && j-i >= minNearSecret && i >= x.low {
		x.opaqueRun(token{at: i, end: j, have: have, joins: joins})
	}
	return j
}

// The signs that join words to one run.
const (
	joinDash uint = 1 << iota
	joinLine
	joinDot
	joinSlash
	joinPlus
)

func joint(c byte) uint {
	switch c {
	case '-':
		return joinDash
	case '_':
		return joinLine
	case '.':
		return joinDot
	case '/':
		return joinSlash
	case '+':
		return joinPlus
	}
	return 0
}

// words has the first word of a run, at [i, end), judged as what announces a
// person, or as a number.
func (x *reader) words(i, end int) {
	switch bits := char.Class[x.S[i]]; {
	case bits&char.Digit != 0:
		if x.want&Addresses != 0 {
			x.place(i)
		}
		if x.want&Phones != 0 && i >= x.low {
			x.phoneAt(i)
		}
	case bits&(char.Letter|char.Word) != 0:
		if x.want&Addresses != 0 && bits&char.Upper != 0 && end-i <= 4 {
			x.postcodeAt(i)
		}
		if x.want&Names != 0 && end-i <= maxNameWord {
			x.person(i, end)
		}
	}
}

// guess records [start, end), cut to what lies between the walls.
func (x *reader) guess(start, end int, r rule.Rule) {
	start, end = max(start, x.lo), min(end, x.hi)
	if start < end {
		x.mask(start, end, r)
	}
}

// mask records [start, end). A guess longer than span.MaxLen is extended to its line's end.
func (x *reader) mask(start, end int, r rule.Rule) {
	if end-start > span.MaxLen {
		if n := bytes.IndexByte(x.S[end:], '\n'); n >= 0 {
			end += n
		} else {
			end = len(x.S)
		}
	}
	x.joined = x.joined || start < x.low
	x.spans = append(x.spans, span.Span{Start: start, End: end, Rule: r})
	x.low = max(x.low, end)
}

// smallCased writes the ASCII capitals of w small; a word longer than buf is
// cut to nothing, because no list holds it.
func smallCased(buf *[24]byte, w []byte) []byte {
	if len(w) > len(buf) {
		return buf[:0]
	}
	for k, c := range w {
		buf[k] = char.ToLower(c)
	}
	return buf[:len(w)]
}

// wordBefore returns the word that ends before i, over at most gap bytes that
// are of no word, on the same line and behind the wall.
func (x *reader) wordBefore(i, gap int) (start, end int) {
	e := i
	for ; e > x.lo && i-e < gap && char.Class[x.S[e-1]]&char.Word == 0; e-- {
		if x.S[e-1] == '\n' {
			return e, e
		}
	}
	b := e
	for b > x.lo && e-b < 32 && char.Class[x.S[b-1]]&char.Word != 0 {
		b--
	}
	return b, e
}

// insideGuess says whether a word of small letters may stand inside a name or
// an address: a text that ends in one must not be cut there. No guess holds
// two other small words.
func insideGuess(w []byte) bool {
	if smallFrench(w) || smallGerman(w) || isParticle(w) {
		return true
	}
	switch string(w) {
	case "upon", "on", "an", "der", "en", "la", "de", "im", "bis", "ter", "and", "und", "et", "a", "b", "c", "d":
		return true
	}
	return frenchStreetWord(w)
}

// MayBelong reports whether a word of small letters may belong to a name or an
// address, or begin the number of a flat.
func MayBelong(w []byte) bool { return insideGuess(w) || unit(w) }

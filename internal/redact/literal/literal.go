// Package literal finds registered secrets in every encoding.
package literal

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/memory"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const (
	MinLen     = 4
	maxLiteral = 65_536
	// maxCount and maxLiterals bound them all: their forms take some eighty
	// times their own bytes, in memory of which little may be locked.
	maxCount    = 1024
	maxLiterals = 262_144
)

// Set finds known secrets in any of their forms. A table of the first
// two bytes decides in one step per byte whether any can begin here, and a
// sieve of the first four what is left.
type Set struct {
	begins *twoBytes           // with what any form may begin in a text; the zero value faults
	first  twoBytes            // the first two bytes
	heads  [256]bool           // the first bytes
	sieve  sieve               // the first four
	forms  map[uint32][][]byte // in memory, by their first four
	loose  loose
	folded *Set // the secrets in small letters, for text whose case is lost
	memory *memory.Memory
	rule   rule.Rule // under which they are reported
}

// New returns the set of secrets, nil for none. The error is a ValueError: one is too
// short or too long, or there are too many.
func New(secrets []holdfast.Secret) (*Set, error) {
	return NewIn(new(memory.Memory), secrets, AllForms)
}

// Forms says in which forms secrets are found.
type Forms uint8

const (
	// AllForms are all of them.
	AllForms Forms = iota
	// FewForms are the secret itself and, if it has enough letters and digits, what is found however it is broken,
	// escaped or encoded. A set is made of them five times as fast. HasFold finds nothing.
	FewForms
)

// NewIn is New with the memory in which the forms are kept, and these forms.
func NewIn(m *memory.Memory, secrets []holdfast.Secret, which Forms) (*Set, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	l := &Set{loose: newLoose(), forms: map[uint32][][]byte{}, memory: m, rule: rule.Literal}
	l.folded = &Set{loose: newLoose(), forms: map[uint32][][]byte{}, memory: l.memory}
	most, all := 0, 0
	for i, s := range secrets {
		n := len(memory.Bytes(s))
		if n < MinLen || n > maxLiteral {
			return nil, invalid("literal "+strconv.Itoa(i)+" has "+strconv.Itoa(n)+" bytes", "a registered secret is 4 to 65536 bytes long")
		}
		most, all = max(most, n), all+n
	}
	if all > maxLiterals || len(secrets) > maxCount {
		return nil, invalid(strconv.Itoa(len(secrets))+" literals have "+strconv.Itoa(all)+" bytes", "at most 1024 secrets of 262144 bytes together can be registered")
	}
	scratch := l.memory.Buffer(maxGrowth*(most+16) + maxGrowth*most)
	defer clear(scratch)
	for _, s := range secrets {
		f := former{text: memory.Bytes(s), scratch: scratch, take: l.add}
		if which == FewForms && countMixed(f.text) >= minLoose && len(f.text) <= maxLoose {
			l.add(f.text)
			f.loose(l.addLoose)
			continue
		}
		f.forms()
		f.loose(l.addLoose)
		small := toSmall(scratch[:0], memory.Bytes(s))
		l.folded.add(small)
		if len(small) <= maxLoose {
			l.folded.addLoose(core(small[len(small):], small))
		}
	}
	l.folded.buildTables()
	l.buildTables()
	return l, nil
}

// WithRule returns the set, whose secrets are reported under another rule.
func (l *Set) WithRule(r rule.Rule) *Set {
	if l == nil {
		return nil
	}
	other := *l
	other.rule = r
	return &other
}

// Rule returns the rule under which the secrets are reported.
func (l *Set) Rule() rule.Rule {
	if l == nil {
		return rule.Literal
	}
	return l.rule
}

// buildTables makes the tables by which the forms are found.
func (l *Set) buildTables() {
	for _, list := range l.forms {
		slices.SortFunc(list, func(a, b []byte) int { return len(b) - len(a) })
	}
	l.sieve, l.loose.sieve = newSieve(l.forms), newSieve(l.loose.forms)
	l.begins = new(twoBytes)
	l.begins.join(&l.first)
	l.begins.join(&l.loose.begins)
}

// toSmall appends s with its capitals of ASCII made small.
func toSmall(to, s []byte) []byte {
	for _, c := range s {
		to = append(to, char.ToLower(c))
	}
	return to
}

// HasFold reports whether a secret is in s in any case: names of header fields and of
// hosts lose theirs on their way.
func (l *Set) HasFold(s []byte) bool {
	return l != nil && l.folded.Find(toSmall(nil, s)) != nil
}

func invalid(why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K6, Rule: "redact/literal", Why: why, Hint: hint}
}

// add keeps a form that is long enough to be told from ordinary text.
func (l *Set) add(f []byte) {
	if len(f) < MinLen {
		return
	}
	k := keyOf(f)
	for _, have := range l.forms[k] {
		if bytes.Equal(have, f) {
			return
		}
	}
	l.first.add(f[0], f[1])
	l.heads[f[0]] = true
	l.forms[k] = append(l.forms[k], l.memory.Keep(f))
}

// Trouble returns why the secrets could reach a disk, or "".
func (l *Set) Trouble() string {
	if l == nil {
		return ""
	}
	return l.memory.Trouble()
}

// Find returns where literals stand, in order and without overlap. The nil set
// has none.
func (l *Set) Find(s []byte) []span.Span {
	if l == nil {
		return nil
	}
	out, _ := l.Scan(s, 0, true, nil)
	return out
}

// Scan appends where literals stand from i on, and returns where to go on: the
// end, or if the text is not final the first place where one may have begun.
// It looks for one at each place, inside another too, whose end it may pass: so
// the time at a place is bounded by the longest form, and what is found does
// not depend on where the text is cut. Those that overlap
// are one.
func (l *Set) Scan(s []byte, i int, final bool, out []span.Span) ([]span.Span, int) {
	end := 0
	for ; ; i++ {
		if i = l.next(s, i); i+1 >= len(s) {
			break
		}
		k := uint16(s[i])<<8 | uint16(s[i+1])
		n := 0
		if l.first.has(k) {
			n = l.at(s, i, final)
		}
		if n >= 0 && l.loose.begins.has(k) && l.loose.near(s[i:]) {
			if m := l.loose.at(s, i, final); m < 0 || m > n {
				n = m
			}
		}
		if n < 0 {
			return out, i
		}
		switch {
		case n == 0 || i+n <= end:
		case i < end:
			end = i + n
			out[len(out)-1].End = end
		default:
			end = i + n
			out = append(out, span.Span{Start: i, End: end, Rule: l.rule})
		}
	}
	if i < len(s) && !final && l.heads[s[i]] {
		return out, i
	}
	return out, len(s)
}

// next returns the first place from i on with whose two bytes a literal may
// begin, or the last byte's.
func (l *Set) next(s []byte, i int) int {
	if i >= len(s) {
		return i
	}
	k := uint16(s[i])
	for n, c := range s[i+1:] {
		if k = k<<8 | uint16(c); l.begins.has(k) {
			return i + n
		}
	}
	return len(s) - 1
}

// at returns the length of the longest literal at i, 0 for none, or -1 where
// only more text can tell.
func (l *Set) at(s []byte, i int, final bool) int {
	if len(s)-i < MinLen {
		if final {
			return 0
		}
		return -1
	}
	k := keyOf(s[i:])
	if !l.sieve.has(k) {
		return 0
	}
	for _, f := range l.forms[k] {
		if len(s)-i < len(f) {
			if !final && bytes.HasPrefix(f, s[i:]) {
				return -1
			}
			continue
		}
		if !bytes.HasPrefix(s[i:], f) {
			continue
		}
		if !final && len(s)-i < mask.MaxLen && bytes.ContainsAny(s[max(0, i-mask.MaxLen):i+1], "[<*") {
			return -1 // a mask may stand here, whose own words are not secret
		}
		if !mask.IsWithin(s, i, i+len(f)) {
			return len(f)
		}
	}
	return 0
}

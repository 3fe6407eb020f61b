package goalrule

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// many is a part of a capability that is a star and nothing else: it takes in
// one piece and whatever follows it.
const many = "*"

// pieces are the words of a capability, which are what a blocked pattern is
// compared with: a name that is joined by another sign than the colon is the
// same name.
func (c Capability) pieces() []string {
	names := constitution.CapabilityWords()
	var out []string
	for _, part := range c {
		if part == many {
			out = append(out, many)
			continue
		}
		for _, p := range strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune("-._/", r) }) {
			if p == many {
				p = "**" // any one piece, of this part
			}
			if other, ok := names[p]; ok {
				p = other
			}
			out = append(out, p)
		}
	}
	return out
}

// takesIn says whether blocked stands in the pieces one after another, so that a
// scheme before it, such as federation, hides nothing. A star on either side
// stands for whatever it may stand for: what may be blocked is.
func takesIn(pieces, blocked []string) bool {
	if len(blocked) == 0 {
		return false
	}
	// ok[j] is whether the pieces from i on begin with blocked[j:].
	ok, next := make([]bool, len(blocked)+1), make([]bool, len(blocked)+1)
	next[len(blocked)] = true
	for i := len(pieces) - 1; i >= 0; i-- {
		ok[len(blocked)] = true
		for j := len(blocked) - 1; j >= 0; j-- {
			switch {
			case pieces[i] == many:
				ok[j] = ok[j+1] || next[j+1]
			case blocked[j] == many:
				ok[j] = next[j] || next[j+1]
			default:
				ok[j] = next[j+1] && meet(pieces[i], blocked[j])
			}
		}
		if ok[0] {
			return true
		}
		ok, next = next, ok
	}
	return false
}

// meet says whether one word is matched by both, in which a star stands for any
// letters or none.
func meet(a, b string) bool {
	if !strings.Contains(a, "*") && !strings.Contains(b, "*") {
		return a == b
	}
	// ok[j] is whether a[i:] and b[j:] meet.
	ok, next := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			endA, endB := i == len(a), j == len(b)
			switch {
			case endA && endB:
				ok[j] = true
			case !endA && a[i] == '*':
				ok[j] = next[j] || !endB && ok[j+1]
			case !endB && b[j] == '*':
				ok[j] = ok[j+1] || !endA && next[j]
			default:
				ok[j] = !endA && !endB && a[i] == b[j] && next[j+1]
			}
		}
		ok, next = next, ok
	}
	return next[0]
}
